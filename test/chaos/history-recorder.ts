import type { HeldType } from '../../lib/backends/lock-backend.js';
import { LockAbortedError, LockBusyError, LockLostError } from '../../lib/engine/errors.js';
import type { LockLease } from '../../lib/engine/lease/lock-lease.js';
import type { Lease } from '../../lib/engine/terms/lease.js';
import type { LockOptions } from '../../lib/engine/terms/lock-options.js';
import type { LockService } from '../../lib/service/lock-service.js';
import type { History, HistoryEvent, Kind } from './history.js';

/**
 * The fraction of a lease that certainly lasts by the backend's clock, because clocks of machines run at slightly
 * different rates.
 */
const CERTAIN = 0.99;

/** A lease whose history is recorded. */
export interface RecordedLease {
  readonly call: string;
  readonly lease: LockLease;
  /** Never rejects. The outcome is recorded in the history. */
  release(): Promise<void>;
}

/** A detached lock that any process can adopt. */
export interface RecordedTicket {
  /** The call under which the ticket is recorded as the holder. */
  readonly call: string;
  readonly lock: string;
  readonly ticket: string;
  /** How many may hold the lock. */
  readonly mostHolders: number | undefined;
}

interface Live {
  readonly call: string;
  readonly lease: LockLease;
}

/**
 * Records in a history what one process observes of its locks.
 *
 *     const recorder = new HistoryRecorder(new HistoryFile(path), 'p1', locks, machineTime);
 *     const recorded = await recorder.acquire('order', { waitTime: 500 });
 *     await recorded?.release();
 */
export class HistoryRecorder {
  private calls = 0;
  private readonly live = new Map<string, Set<Live>>();

  /**
   * @param now milliseconds on the clock of the history
   * @param rate how many milliseconds of that clock pass in one millisecond of this process's clock
   */
  constructor(
    readonly history: History,
    readonly process: string,
    readonly locks: LockService,
    readonly now: () => number,
    private readonly rate = 1,
  ) {
    locks.on('renewed', ({ name, owner }) => this.confirmed(name, owner));
    locks.on('lost', ({ name, owner, error }) => this.lost(name, owner, error));
  }

  /** Returns undefined if the caller was refused. */
  async acquire(names: string | readonly string[], options: LockOptions = {}, within?: string) {
    return this.track(names, options, () => this.locks.acquire(names, options) as Promise<Lease>, within);
  }

  async tryAcquire(names: string | readonly string[], options: LockOptions = {}, within?: string) {
    return this.track(
      names,
      { waitTime: 0, ...options },
      () => this.locks.tryAcquire(names, options) as Promise<Lease | null>,
      within,
    );
  }

  /** As `LockService.withLock`, but without the result of the body, and without errors. */
  async withLock(
    names: string | readonly string[],
    options: LockOptions,
    body: (recorded: RecordedLease) => Promise<void>,
    settings: { within?: string; holdAtLeast?: number } = {},
  ): Promise<void> {
    const { engine } = this.locks;
    const acquire = () => engine.acquireToRun(names, options, 'withLock()');
    const recorded = await this.track(names, options, acquire, settings.within);
    if (recorded === undefined) return;
    const { call, lease } = recorded;
    const inside = async () => {
      try {
        await body(recorded);
      } finally {
        this.releaseAsked(call, lease);
      }
    };
    await this.released(call, engine.holdWhile(lease, inside, settings.holdAtLeast));
  }

  /** @returns undefined if the lock was lost, or is left to lapse after shutdown */
  async detach({ call, lease }: RecordedLease, leaseTime: number): Promise<RecordedTicket | undefined> {
    const [{ name: lock, type: held, permits: mostHolders }] = lease.locks;
    const type = kindOf(held);
    this.releaseAsked(call, lease);
    const asked = this.now();
    let ticket: string;
    try {
      ticket = await lease.detach({ for: leaseTime });
    } catch (error) {
      if (error instanceof LockAbortedError) this.add({ kind: 'release-answered', call, outcome: 'kept' });
      else await this.released(call, Promise.reject(error));
      return undefined;
    }
    this.add({ kind: 'release-answered', call, outcome: 'released' });
    const holder = `${call} ticket`;
    // The ticket belongs to no process, because it outlives the one that detached the lock.
    const add = (event: HistoryEvent) => this.history.add('ticket', this.now(), event);
    add({ kind: 'sent', call: holder, locks: [lock], patient: false, mostHolders });
    const validUntil = asked + leaseTime * CERTAIN;
    add({ kind: 'granted', call: holder, lock, type, owner: holder, validUntil, detached: true });
    return { call: holder, lock, ticket, mostHolders };
  }

  /** @returns undefined if the ticket was refused */
  async adopt({ call, lock, ticket, mostHolders }: RecordedTicket): Promise<RecordedLease | undefined> {
    this.add({ kind: 'adopting', call });
    const asked = { waitTime: 0, permits: mostHolders };
    return this.track(lock, asked, () => this.locks.adopt(ticket), undefined, call);
  }

  /**
   * Records that a caller asks for locks. This is the first record of a call.
   *
   * @param options those of a lock; `taken`: how many permits of a semaphore it wants
   */
  sent(
    names: string | readonly string[],
    { waitTime, signal, newest, permits: mostHolders, taken }: LockOptions & { taken?: number } = {},
    ticket?: string,
  ): string {
    const call = `${this.process}/${++this.calls}`;
    const locks = typeof names === 'string' ? [names] : [...new Set(names)].sort();
    this.add({
      kind: 'sent',
      call,
      locks,
      patient: waitTime === undefined && signal === undefined,
      waitTime: typeof waitTime === 'number' ? waitTime : undefined,
      permits: taken,
      mostHolders,
      once: waitTime === 0 || undefined,
      newest,
      ticket,
    });
    return call;
  }

  granted(call: string, lease: LockLease, within?: string): void {
    const validUntil = this.deadline(lease);
    for (const { name: lock, type: held, owner } of lease.locks) {
      const type = kindOf(held);
      const token = lease.tokens.get(lock);
      this.add({ kind: 'granted', call, lock, type, owner, token, validUntil, within });
      const key = liveKey(lock, owner);
      const live = this.live.get(key) ?? new Set();
      this.live.set(key, live.add({ call, lease }));
    }
  }

  refused(call: string, error: Error): void {
    this.add({ kind: 'refused', call, error: error.name, message: error.message });
  }

  /** Records that `extend()` has made the lease longer or shorter. */
  extended(call: string, lease: LockLease): void {
    // The answer may have come after the lease has ended, because this process stood still.
    if (lease.live && lease.remainingTime() > 0)
      this.add({ kind: 'confirmed', call, validUntil: this.deadline(lease) });
  }

  releaseAsked(call: string, lease: LockLease): void {
    // A body that is about to release the lock may have checked that the lease is held, and have relied on that.
    if (lease.held) this.extended(call, lease);
    for (const { name, owner } of lease.locks) {
      const key = liveKey(name, owner);
      const live = this.live.get(key);
      for (const entry of live ?? []) if (entry.call === call) live?.delete(entry);
      if (live?.size === 0) this.live.delete(key);
    }
    this.add({ kind: 'release-asked', call });
  }

  async released(call: string, release: Promise<unknown>): Promise<void> {
    try {
      await release;
      this.add({ kind: 'release-answered', call, outcome: 'released' });
    } catch (error) {
      const outcome = error instanceof LockLostError ? 'lost' : 'failed';
      this.add({ kind: 'release-answered', call, outcome });
    }
  }

  /** Ends the record of this process with what it has left behind, by name. */
  left(counts: Readonly<Record<string, number>>): void {
    this.add({ kind: 'left', counts });
  }

  add(event: HistoryEvent): void {
    this.history.add(this.process, this.now(), event);
  }

  private async track(
    names: string | readonly string[],
    options: LockOptions,
    acquire: () => Promise<Lease | null>,
    within?: string,
    ticket?: string,
  ): Promise<RecordedLease | undefined> {
    const call = this.sent(names, options, ticket);
    let lease: LockLease | null;
    try {
      lease = (await acquire()) as LockLease | null;
    } catch (error) {
      this.refused(call, error as Error);
      return undefined;
    }
    if (lease === null) {
      this.refused(call, new LockBusyError('tried once', String(names), -1, undefined));
      return undefined;
    }
    this.granted(call, lease, within);
    return { call, lease, release: () => this.release(call, lease) };
  }

  private release(call: string, lease: LockLease): Promise<void> {
    this.releaseAsked(call, lease);
    return this.released(call, lease.release());
  }

  /** A renewal has made the lease of this owner longer. */
  confirmed(name: string, owner: string): void {
    for (const { call, lease } of this.live.get(liveKey(name, owner)) ?? []) this.extended(call, lease);
  }

  private lost(lock: string, owner: string, error: Error): void {
    for (const { call, lease } of this.live.get(liveKey(lock, owner)) ?? []) {
      // A writer that also reads has two locks under one owner.
      if (lease.locks.some((held) => held.lost === error)) {
        this.add({ kind: 'lost', call, lock, reason: error.message });
      }
    }
  }

  private deadline(lease: LockLease): number {
    return this.now() + lease.remainingTime() * this.rate;
  }
}

/** The permits of semaphores have the other name. */
function kindOf(held: HeldType): Kind {
  return held === 'permits' ? 'place' : held;
}

function liveKey(name: string, owner: string): string {
  return `${owner}\0${name}`;
}
