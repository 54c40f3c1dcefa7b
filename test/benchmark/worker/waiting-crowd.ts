import { setTimeout as delay } from 'node:timers/promises';
import type { LockClient } from '../contestants/contestant.js';
import { sent } from './sent-commands.js';

/** The cost of a process that does nothing but wait. */
export interface Waited {
  /** CPU time in µs. */
  readonly cpu: number;
  /** Undefined if they were not counted. */
  readonly sent: number | undefined;
}

export interface Drained {
  readonly served: number;
  /** Milliseconds from the release until the last caller was served, or until the time limit. */
  readonly elapsed: number;
}

/** Many callers that wait for one lock, which another connection holds. */
export class WaitingCrowd {
  private served = 0;
  private everybody: Promise<unknown> = Promise.resolve();
  private handle: unknown;

  constructor(
    private readonly holder: LockClient,
    private readonly waiters: LockClient,
  ) {}

  async gather(key: string, count: number): Promise<void> {
    this.handle = await this.holder.acquire(key);
    const wait = async () => {
      await this.waiters.release(await this.waiters.acquire(key));
      this.served++;
    };
    this.everybody = Promise.all(Array.from({ length: count }, wait));
  }

  async watch(duration: number): Promise<Waited> {
    const before = { cpu: process.cpuUsage(), sent: sent.commands };
    await delay(duration);
    const { user, system } = process.cpuUsage(before.cpu);
    return { cpu: user + system, sent: sent.commands - before.sent };
  }

  async drain(patience: number): Promise<Drained> {
    const start = performance.now();
    await this.holder.release(this.handle);
    await Promise.race([this.everybody, delay(patience)]);
    return { served: this.served, elapsed: performance.now() - start };
  }
}
