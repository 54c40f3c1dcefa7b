import { chunksOf } from '../../backends/chunks.js';
import type { Timer } from '../../backends/runtime.js';
import type { SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import { LockLostError } from '../errors.js';
import { type Moment, validity } from '../lease/lease-clock.js';
import type { Synchronizer } from './synchronizer.js';

/** How many permits one call renews: more would keep the server busy for too long. */
const LARGEST_CALL = 512;

/** What events say of every permit. */
const PERMIT = { type: 'semaphore', group: '', method: '' } as const;

/** Permits of one semaphore. */
interface RenewedPermits {
  readonly semaphore: Synchronizer;
  /** Each id with the moment before its lease was last set. */
  readonly ids: Map<string, Moment>;
  renewing: boolean;
  /** The last renewal failed. */
  failing: boolean;
  retry: Timer | undefined;
}

/**
 * Renews the permits that this process acquired without a leaseTime after a third of their lease, all of one semaphore in one call. A
 * permit that is gone, or was not renewed before its lease ended, is lost, and emitted as an event.
 */
export class PermitWatchdog {
  private readonly renewed = new Map<string, RenewedPermits>();
  private timer: Timer | undefined;

  constructor(
    private readonly backend: () => SynchronizerBackend,
    private readonly context: AcquisitionContext,
    readonly leaseTime: number,
    private readonly onEmpty: () => void,
  ) {}

  /** How many permits it renews. */
  get size(): number {
    return [...this.renewed.values()].reduce((sum, { ids }) => sum + ids.size, 0);
  }

  get isEmpty(): boolean {
    return this.renewed.size === 0;
  }

  /** Renews these permits from now on. `sent` is the moment before their lease was set. */
  add(semaphore: Synchronizer, ids: readonly string[], sent: Moment): void {
    const permits = this.renewed.get(semaphore.key) ?? newEntry(semaphore);
    this.renewed.set(semaphore.key, permits);
    for (const id of ids) permits.ids.set(id, sent);
    this.context.presence.noticed();
    // When the answer was slow, these permits may be due before the timer.
    if (this.context.clock.age(sent) >= this.leaseTime / 10) this.timer?.cancel();
    else if (this.timer !== undefined) return;
    this.timer = this.schedule();
  }

  /** Stops renewing a permit, and returns when its lease was last set; undefined: it was not renewed here. */
  remove({ key }: Synchronizer, id: string): Moment | undefined {
    const permits = this.renewed.get(key);
    const confirmed = permits?.ids.get(id);
    if (permits === undefined || confirmed === undefined) return undefined;
    permits.ids.delete(id);
    if (permits.ids.size === 0) {
      permits.retry?.cancel();
      this.renewed.delete(key);
    }
    if (this.isEmpty) {
      this.timer?.cancel();
      this.timer = undefined;
      this.onEmpty();
    }
    return confirmed;
  }

  /** Stops renewing, and says how many permits of which semaphores it renewed. */
  close(): readonly { readonly semaphore: Synchronizer; readonly count: number }[] {
    const counts = [...this.renewed.values()].map(({ semaphore, ids }) => ({ semaphore, count: ids.size }));
    for (const { retry, ids } of this.renewed.values()) {
      retry?.cancel();
      ids.clear();
    }
    this.renewed.clear();
    this.timer?.cancel();
    this.timer = undefined;
    return counts;
  }

  private schedule(): Timer {
    return this.context.runtime.timer(Math.max(1, this.untilDue()), () => {
      this.timer = undefined;
      for (const permits of [...this.renewed.values()]) {
        this.loseExpired(permits);
        this.context.events.unawaited(this.renew(permits));
      }
      if (!this.isEmpty) this.timer ??= this.schedule();
    });
  }

  /** A third of the lease, or less if a permit's lease ends before that. */
  private untilDue(): number {
    const { clock } = this.context;
    const now = clock.now();
    let oldest = 0;
    for (const { ids } of this.renewed.values())
      for (const confirmed of ids.values()) oldest = Math.max(oldest, clock.age(confirmed, now));
    return Math.min(this.leaseTime / 3, validity(this.leaseTime) - oldest);
  }

  private async renew(permits: RenewedPermits): Promise<void> {
    if (permits.renewing || permits.retry !== undefined) return;
    permits.renewing = true;
    try {
      for (const ids of chunksOf([...permits.ids.keys()], LARGEST_CALL)) await this.renewChunk(permits, ids);
      permits.failing = false;
    } catch (error) {
      this.renewSoon(permits, error as Error);
    } finally {
      permits.renewing = false;
    }
  }

  private async renewChunk({ semaphore, ids }: RenewedPermits, chunk: readonly string[]): Promise<void> {
    // Permits that were removed while other chunks were renewed may have a lease of another length by now.
    const due = chunk.filter((id) => ids.has(id));
    if (due.length === 0) return;
    const { clock, events } = this.context;
    const sent = clock.now();
    const renewed = await this.backend().renewPermits(semaphore.key, due, this.leaseTime);
    for (const [index, id] of due.entries()) {
      if (!renewed[index]) this.lose(semaphore, id, 'it was gone when it was to be renewed');
      else if (ids.has(id)) {
        ids.set(id, sent);
        if (events.hears('renewed')) events.emit('renewed', { ...PERMIT, name: semaphore.name, owner: id });
      }
    }
  }

  private renewSoon(permits: RenewedPermits, error: Error): void {
    const { runtime, events } = this.context;
    this.loseExpired(permits);
    if (permits.ids.size === 0) return;
    if (events.hears('renewalFailed')) this.announceFailed(permits, error);
    if (!permits.failing) {
      const { what } = permits.semaphore;
      events.logger.warn(`Renewing permits of ${what} failed and is retried until their leases end: ${error.message}`);
    }
    permits.failing = true;
    permits.retry = runtime.timer(Math.min(1_000, this.leaseTime / 20), () => {
      permits.retry = undefined;
      this.context.events.unawaited(this.renew(permits));
    });
  }

  /** Those of a chunk that was renewed before another one failed are renewed again with the rest. */
  private announceFailed({ semaphore: { name }, ids }: RenewedPermits, error: Error): void {
    const { clock, events } = this.context;
    for (const [owner, confirmed] of [...ids]) {
      const remainingTime = Math.round(validity(this.leaseTime) - clock.age(confirmed));
      events.emit('renewalFailed', { ...PERMIT, name, owner, remainingTime, error });
    }
  }

  private loseExpired({ semaphore, ids }: RenewedPermits): void {
    for (const [id, confirmed] of [...ids]) {
      if (this.context.clock.age(confirmed) < validity(this.leaseTime)) continue;
      this.lose(semaphore, id, 'it could not be renewed before its lease ended');
    }
  }

  private lose(semaphore: Synchronizer, id: string, why: string): void {
    if (this.remove(semaphore, id) === undefined) return;
    const message = `A permit of ${semaphore.what} was lost: ${why}. Another process may hold it now; stop the work that needs it`;
    const error = new LockLostError(message, semaphore.name);
    this.context.events.emit('lost', { ...PERMIT, name: semaphore.name, owner: id, held: undefined, error });
  }
}

function newEntry(semaphore: Synchronizer): RenewedPermits {
  return { semaphore, ids: new Map(), renewing: false, failing: false, retry: undefined };
}
