import { LockBusyError, LockNotOwnedError } from '../../lib/engine/errors.js';
import { validity } from '../../lib/engine/time/lease-clock.js';
import type { LatchStep } from './history.js';
import type { HistoryRecorder } from './history-recorder.js';

/** How long a caller waits. With neither of them, it waits without a limit. */
export interface Patience {
  readonly waitTime?: number;
  readonly signal?: AbortSignal;
}

/** Permits whose history is recorded. */
export interface RecordedPermits {
  readonly call: string;
  readonly ids: readonly string[];
  /** Never rejects. The outcome is recorded in the history. */
  release(): Promise<void>;
}

/** Records in a history what one process observes of its semaphores and latches. */
export class PermitRecorder {
  /** The calls, by the first id of each. */
  private readonly live = new Map<string, string>();
  private readonly given = new Set<string>();
  private readonly deadlines = new Map<string, number>();

  /**
   * @param now milliseconds on the clock of the history
   * @param certain for how long permits are certainly leased after they were asked for, where nothing calls
   *   {@link leased}
   */
  constructor(
    private readonly recorder: HistoryRecorder,
    private readonly now: () => number,
    private readonly certain?: number,
  ) {
    recorder.locks.on('lost', ({ name, owner, error }) => {
      const call = this.live.get(owner);
      if (call !== undefined) recorder.add({ kind: 'lost', call, lock: name, reason: error.message });
      if (this.given.has(owner)) recorder.left({ 'losses of permits that were given back': 1 });
    });
  }

  /** Records that these permits certainly have a lease until then. */
  leased(ids: readonly string[], deadline: number): void {
    for (const id of ids) {
      this.deadlines.set(id, deadline);
      const call = this.live.get(id);
      if (call !== undefined) this.recorder.add({ kind: 'confirmed', call, validUntil: deadline });
    }
  }

  /** Takes permits without ids. Returns undefined if the caller was refused. */
  async take(name: string, permits: number, patience: Patience = {}): Promise<RecordedPermits | undefined> {
    const semaphore = this.recorder.locks.getSemaphore(name);
    const { waitTime, signal } = patience;
    const call = this.recorder.sent(name, { ...patience, taken: permits });
    const taken = await this.answer(call, async () => {
      if (waitTime !== undefined) return semaphore.tryAcquire(permits, waitTime, { signal });
      await semaphore.acquire(permits, { signal });
      return true;
    });
    return taken ? this.counted(name, call, permits) : undefined;
  }

  /** Takes all available permits. */
  async drain(name: string, total: number): Promise<RecordedPermits | undefined> {
    const call = this.recorder.sent(name, { waitTime: 0, taken: total });
    const drained = await this.answer(call, () => this.recorder.locks.getSemaphore(name).drainPermits());
    return drained ? this.counted(name, call, drained) : undefined;
  }

  /** Takes permits with ids. Without a leaseTime, they are renewed. */
  async lease(
    name: string,
    permits: number,
    leaseTime?: number,
    patience: Patience = {},
  ): Promise<RecordedPermits | undefined> {
    const semaphore = this.recorder.locks.getPermitExpirableSemaphore(name);
    const { waitTime, signal } = patience;
    const call = this.recorder.sent(name, { ...patience, taken: permits });
    const certainUntil = this.certain && this.now() + this.certain;
    const ids = await this.answer(call, () => {
      return waitTime === undefined
        ? semaphore.acquireMany(permits, leaseTime, { signal })
        : semaphore.tryAcquireMany(permits, waitTime, leaseTime, { signal });
    });
    if (!ids) return undefined;
    const [owner] = ids;
    const validUntil = this.deadlines.get(owner) ?? certainUntil;
    const kept = leaseTime === undefined;
    this.recorder.add({ kind: 'granted', call, lock: name, type: 'permits', owner, permits, validUntil, kept });
    this.live.set(owner, call);
    return { call, ids, release: () => this.release(call, () => semaphore.release(ids), owner) };
  }

  /** Changes the length of a fixed lease. Until the answer, the process relies only on the shorter lease. */
  async adjust(name: string, { call, ids }: RecordedPermits, leaseTime: number): Promise<void> {
    const semaphore = this.recorder.locks.getPermitExpirableSemaphore(name);
    const shorter = Math.min(this.deadlines.get(ids[0]) ?? 0, this.now() + validity(leaseTime));
    this.recorder.add({ kind: 'confirmed', call, validUntil: shorter });
    this.live.delete(ids[0]);
    await Promise.all(ids.map((id) => semaphore.updateLeaseTime(id, leaseTime).catch(() => false)));
  }

  /** Waits for a latch. */
  async pass(name: string, { waitTime, signal }: Patience = {}): Promise<void> {
    const call = this.recorder.sent(name, { waitTime, signal });
    const open = await this.answer(call, () => this.recorder.locks.getCountDownLatch(name).await(waitTime, { signal }));
    if (open) this.recorder.add({ kind: 'granted', call, lock: name, type: 'latch', owner: call });
  }

  /** Makes one step of a latch, and records request and answer. Returns whether it was answered. */
  async step(lock: string, asked: LatchStep, count: number, work: () => Promise<unknown>, answered?: LatchStep) {
    this.recorder.add({ kind: 'latch', lock, step: asked, count });
    const done = await work().then(
      () => true,
      () => false,
    );
    if (done && answered !== undefined) this.recorder.add({ kind: 'latch', lock, step: answered, count });
    return done;
  }

  private counted(lock: string, call: string, permits: number): RecordedPermits {
    this.recorder.add({ kind: 'granted', call, lock, type: 'permits', owner: call, permits });
    const semaphore = this.recorder.locks.getSemaphore(lock);
    return { call, ids: [], release: () => this.release(call, () => semaphore.release(permits)) };
  }

  private async release(call: string, give: () => Promise<void>, owner?: string): Promise<void> {
    if (owner !== undefined) {
      this.live.delete(owner);
      this.given.add(owner);
    }
    this.recorder.add({ kind: 'release-asked', call });
    try {
      await give();
      this.recorder.add({ kind: 'release-answered', call, outcome: 'released' });
    } catch (error) {
      const outcome = error instanceof LockNotOwnedError ? 'lost' : 'failed';
      this.recorder.add({ kind: 'release-answered', call, outcome, reason: (error as Error).message });
    }
  }

  /** Returns undefined if the request was refused, and records that. */
  private async answer<T>(call: string, ask: () => Promise<T>): Promise<T | undefined> {
    try {
      const answer = await ask();
      if (answer) return answer;
      this.recorder.refused(call, new LockBusyError('there was none', call, -1, undefined));
    } catch (error) {
      this.recorder.refused(call, error as Error);
    }
    return undefined;
  }
}
