import { setTimeout as delay } from 'node:timers/promises';
import type { LockClient } from '../contestants/contestant.js';
import { watchEventLoop } from '../measure/loop-delay.js';

export interface Held {
  /** Bytes of heap for each lease, in addition to what the process used before. */
  readonly heap: number;
}

export interface Kept {
  /** CPU time in µs. */
  readonly cpu: number;
  /** Milliseconds. */
  readonly elapsed: number;
  /** p99 in ms. */
  readonly loopDelay: number;
}

const AT_ONCE = 500;

/** Leases that are only held and renewed. */
export class HeldLeases {
  private readonly handles: unknown[] = [];

  constructor(private readonly client: LockClient) {}

  /** Needs node --expose-gc. */
  async take(key: string, count: number): Promise<Held> {
    await this.client.release(await this.client.acquire(`${key}:first`));
    this.handles.length = count;
    this.handles.fill(undefined);
    const before = await usedHeap();
    for (let next = 0; next < count; next += AT_ONCE) {
      const names = Array.from({ length: Math.min(AT_ONCE, count - next) }, (_, i) => `${key}:${next + i}`);
      const handles = await Promise.all(names.map((name) => this.client.acquire(name)));
      for (const [i, handle] of handles.entries()) this.handles[next + i] = handle;
    }
    return { heap: ((await usedHeap()) - before) / count };
  }

  /**
   * Keeps them for `duration` ms, and then for the same time with the event loop observed, because observing costs CPU
   * time too.
   */
  async keep(duration: number): Promise<Kept> {
    const before = { cpu: process.cpuUsage(), time: performance.now() };
    await delay(duration);
    const { user, system } = process.cpuUsage(before.cpu);
    const elapsed = performance.now() - before.time;
    const stopWatching = watchEventLoop();
    await delay(duration);
    return { cpu: user + system, elapsed, loopDelay: stopWatching() };
  }
}

/** Objects may become garbage only after a turn of the event loop. */
async function usedHeap(): Promise<number> {
  await delay(50);
  (globalThis as { gc?: () => void }).gc?.();
  return process.memoryUsage().heapUsed;
}
