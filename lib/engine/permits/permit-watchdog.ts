import type { Timer } from '../../backends/runtime.js';
import type { SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import { LockLostError } from '../errors.js';
import { type Moment, validity } from '../lease/lease-clock.js';
import type { Synchronizer } from './permit-request.js';

/** More would keep the server busy for too long in one call. */
const MOST_IN_ONE_CALL = 512;

const UNDISTURBED = { renewing: false, failing: false, retry: undefined };

/** Permits of one semaphore. */
interface KeptPermits {
  readonly semaphore: Synchronizer;
  /** Each with the moment before its lease was last set. */
  readonly ids: Map<string, Moment>;
  renewing: boolean;
  /** The last renewal failed. */
  failing: boolean;
  retry: Timer | undefined;
}

/**
 * Renews the permits that this process acquired without a leaseTime, at a third of their lease: all of a semaphore in one call. One
 * that is gone, or was not confirmed before its lease ended, is lost, and an event.
 */
export class PermitWatchdog {
  private readonly kept = new Map<string, KeptPermits>();
  private beat: Timer | undefined;

  constructor(
    private readonly backend: () => SynchronizerBackend,
    private readonly context: AcquisitionContext,
    readonly leaseTime: number,
    private readonly onEmpty: () => void,
  ) {}

  get isEmpty(): boolean {
    return this.kept.size === 0;
  }

  /** Permits that are renewed. */
  get size(): number {
    return [...this.kept.values()].reduce((sum, { ids }) => sum + ids.size, 0);
  }

  keep(semaphore: Synchronizer, ids: readonly string[], sent: Moment): void {
    const { key } = semaphore;
    const kept = this.kept.get(key) ?? { semaphore, ids: new Map(), ...UNDISTURBED };
    this.kept.set(key, kept);
    for (const id of ids) kept.ids.set(id, sent);
    // What was long under way may fall due before the next beat.
    if (this.context.clock.age(sent) >= this.leaseTime / 10) this.beat?.cancel();
    else if (this.beat !== undefined) return;
    this.beat = this.schedule();
  }

  /** Renews it no more, and says when its lease was set last; undefined: it was not kept. */
  drop({ key }: Synchronizer, id: string): Moment | undefined {
    const kept = this.kept.get(key);
    const confirmed = kept?.ids.get(id);
    if (kept === undefined || confirmed === undefined) return undefined;
    kept.ids.delete(id);
    if (kept.ids.size === 0) {
      kept.retry?.cancel();
      this.kept.delete(key);
    }
    if (this.isEmpty) {
      this.beat?.cancel();
      this.beat = undefined;
      this.onEmpty();
    }
    return confirmed;
  }

  /** Renews nothing any more, and says how many permits it kept. */
  close(): readonly { readonly semaphore: Synchronizer; readonly count: number }[] {
    const all = [...this.kept.values()].map(({ semaphore, ids }) => ({ semaphore, count: ids.size }));
    for (const { retry, ids } of this.kept.values()) {
      retry?.cancel();
      ids.clear();
    }
    this.kept.clear();
    this.beat?.cancel();
    this.beat = undefined;
    return all;
  }

  private schedule(): Timer {
    return this.context.runtime.timer(Math.max(1, this.untilDue()), () => {
      this.beat = undefined;
      for (const kept of [...this.kept.values()]) {
        this.loseOverdue(kept);
        void this.renew(kept);
      }
      if (!this.isEmpty) this.beat ??= this.schedule();
    });
  }

  /** A third of the lease, or until the first of all permits is lost, where its renewal has no answer. */
  private untilDue(): number {
    const { clock } = this.context;
    const now = clock.now();
    let oldest = 0;
    for (const { ids } of this.kept.values())
      for (const confirmed of ids.values()) oldest = Math.max(oldest, clock.age(confirmed, now));
    return Math.min(this.leaseTime / 3, validity(this.leaseTime) - oldest);
  }

  private async renew(kept: KeptPermits): Promise<void> {
    if (kept.renewing || kept.retry !== undefined) return;
    kept.renewing = true;
    try {
      for (const due of inParts([...kept.ids.keys()])) await this.renewSome(kept, due);
      kept.failing = false;
    } catch (error) {
      this.renewSoon(kept, error as Error);
    } finally {
      kept.renewing = false;
    }
  }

  private async renewSome({ semaphore, ids }: KeptPermits, part: readonly string[]): Promise<void> {
    // Those that were dropped while other parts were renewed may have a lease of another length by now.
    const due = part.filter((id) => ids.has(id));
    if (due.length === 0) return;
    const sent = this.context.clock.now();
    const there = await this.backend().renewPermits(semaphore.key, due, this.leaseTime);
    for (const [index, id] of due.entries()) {
      if (!there[index]) this.lose(semaphore, id, 'it was not there any more when it was to be renewed');
      else if (ids.has(id)) ids.set(id, sent);
    }
  }

  private renewSoon(kept: KeptPermits, { message }: Error): void {
    const { runtime, events } = this.context;
    this.loseOverdue(kept);
    if (kept.ids.size === 0) return;
    if (!kept.failing) {
      const { what } = kept.semaphore;
      events.logger.warn(`Renewing permits of ${what} failed, and is tried again until their leases end: ${message}`);
    }
    kept.failing = true;
    kept.retry = runtime.timer(Math.min(1_000, this.leaseTime / 20), () => {
      kept.retry = undefined;
      void this.renew(kept);
    });
  }

  private loseOverdue({ semaphore, ids }: KeptPermits): void {
    for (const [id, confirmed] of [...ids]) {
      if (this.context.clock.age(confirmed) < validity(this.leaseTime)) continue;
      this.lose(semaphore, id, 'it could not be renewed before its lease ended');
    }
  }

  private lose(semaphore: Synchronizer, id: string, why: string): void {
    if (this.drop(semaphore, id) === undefined) return;
    const message = `A permit of ${semaphore.what} was lost: ${why}. Others may have it; stop what it stands for`;
    const error = new LockLostError(message, semaphore.name);
    this.context.events.emit('lost', { name: semaphore.name, owner: id, error });
  }
}

function inParts(ids: readonly string[]): readonly (readonly string[])[] {
  const count = Math.ceil(ids.length / MOST_IN_ONE_CALL);
  return Array.from({ length: count }, (_, n) => ids.slice(n * MOST_IN_ONE_CALL, (n + 1) * MOST_IN_ONE_CALL));
}
