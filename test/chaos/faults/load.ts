import { setTimeout as sleep } from 'node:timers/promises';
import type { Lease } from '../../../lib/engine/lease.js';
import type { LockOptions } from '../../../lib/engine/lock-options.js';
import type { LockService } from '../../../lib/nest/lock.service.js';

/** Something that a caller did or was told, at a time that all processes of this machine measure alike. */
export interface LoadEvent {
  /** Milliseconds of the monotonic clock. */
  readonly at: number;
  readonly process: string;
  /** Which call of that process. */
  readonly call: number;
  readonly what: 'asks' | 'holds' | 'renewed' | 'ends' | 'lost' | 'served' | 'told';
  readonly name: string;
  readonly shared: boolean;
  readonly token?: number;
  /** Until when the lease counts as valid, if nothing else happens; same clock. */
  readonly until?: number;
  /** Name and message of the error that the caller was told. */
  readonly error?: string;
}

/** Callers that go round one lock, each in a loop. */
export interface Crew {
  readonly name: string;
  readonly type: NonNullable<LockOptions['type']>;
  readonly callers: number;
  /** How long a body runs, in ms. */
  readonly hold: number;
  readonly waitTime?: number;
}

/** Same for all processes of a machine, and not changed by anybody. */
export function machineTime(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Keeps locks of one service busy, and tells all that happens. */
export class Load {
  private running = true;
  private calls = 0;
  private readonly loops: Promise<void>[];
  private readonly held = new Map<Lease, (what: LoadEvent['what']) => void>();

  constructor(
    private readonly process: string,
    private readonly locks: LockService,
    crews: readonly Crew[],
    private readonly tell: (event: LoadEvent) => void,
  ) {
    locks.on('renewed', ({ name, owner }) => {
      for (const [lease, note] of this.held) if (lease.name === name && lease.owner === owner) note('renewed');
    });
    this.loops = crews.flatMap((crew) => Array.from({ length: crew.callers }, () => this.loop(crew)));
  }

  /** Calls nothing new, and waits until everything that was called has an answer. */
  async stop(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
  }

  private async loop(crew: Crew): Promise<void> {
    while (this.running) {
      if (!(await this.callOnce(crew))) await sleep(20);
    }
  }

  private async callOnce({ name, type, hold, waitTime }: Crew): Promise<boolean> {
    const call = ++this.calls;
    const tell = (what: LoadEvent['what'], more: Partial<LoadEvent> = {}) =>
      this.tell({ at: machineTime(), process: this.process, call, what, name, shared: type === 'read', ...more });
    tell('asks');
    try {
      await this.locks.withLock(name, waitTime === undefined ? { type } : { type, waitTime }, async (lease) => {
        const note = (what: LoadEvent['what']) =>
          tell(what, { token: lease.fencingToken, until: machineTime() + lease.remainingTime() });
        note('holds');
        lease.signal.addEventListener('abort', () => tell('lost', { error: String(lease.signal.reason) }));
        this.held.set(lease, note);
        try {
          await sleep(hold);
        } finally {
          this.held.delete(lease);
          tell('ends');
        }
      });
      tell('served');
      return true;
    } catch (error) {
      tell('told', { error: String(error) });
      return false;
    }
  }
}
