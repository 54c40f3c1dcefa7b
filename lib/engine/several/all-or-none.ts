import { FIRST_PAUSE } from '../../backends/back-off.js';
import type { BackendError } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { HolderClient } from '../describe-holder.js';
import { LockBusyError, LockError, LockKeyError, LockLostError, LockUnavailableError } from '../errors.js';
import type { Milliseconds } from '../terms/duration.js';
import type { WaitTerms } from '../terms/wait-terms.js';
import { RetryPause } from '../time/retry-pause.js';
import { abortedError, Caller } from '../wait/caller.js';
import { ofClient } from '../wait/wait-errors.js';
import { HoldAndWait, type Wanted } from './hold-and-wait.js';

/** A busy lock, and the known details of its holder. */
export interface BusyLock {
  readonly wanted: Wanted;
  readonly remaining: number;
  readonly holder: string | undefined;
  /** Settles at the next answer to the holder's release, if it is an owner of this process that is being released. */
  readonly released?: Promise<void> | undefined;
}

/** Locks that are tried together and get one lease, such as the locks of one service. */
export interface WantedGroup<L> {
  readonly all: readonly Wanted[];
  /** @returns the error if the caller is refused at once */
  arrived?(caller: Caller<never>): Error | undefined;
  /** Called when the caller has got all locks, or has left. */
  left?(): void;
  /**
   * Takes the missing locks, without waiting. If one of them is busy, those that were taken are kept until
   * {@link Wanted.giveBack}.
   *
   * @returns the first lock that is busy
   * @throws BackendError, or the LockError that the caller gets
   */
  takeMissing(): Promise<BusyLock | undefined>;
  /** The outage because of which a caller was not served in time; undefined if there was none. */
  outage(caller: Caller<never>): BackendError | undefined;
  /** Adds details to a failure of {@link takeMissing}, if it has not all of them. */
  explained?(failure: BackendError): BackendError;
  /** The error for a caller that wants nothing but this group, if it knows more than the name of a busy lock. */
  busyError?(): LockBusyError | undefined;
  /** Called after a first failure, when the caller continues to wait. */
  failedOnce?(error: () => Error): void;
  /** Called when all locks are held. */
  createLease(): L;
}

/** A caller that wants several locks and has not got them yet. */
class SeveralCaller<L> extends Caller<readonly L[]> {
  override get what(): string {
    return `the locks ${this.name}`;
  }
}

/**
 * Acquires the locks of all groups, or none of them. A caller holds no lock while it waits for another one, so callers
 * cannot deadlock, whatever the order of their names. When a lock is busy, the caller gives back what it has taken and
 * waits for the busy lock alone. After it has got that lock, it tries the others again. A caller that has been
 * unsuccessful for long may hold locks while it waits, but only for a bounded time: see {@link HoldAndWait}.
 *
 * @param name the names of all locks, joined by `, `
 * @param fixed the leaseTime if the leases are not renewed
 * @returns a lease for each group
 */
export function acquireAllOrNone<L>(
  groups: readonly WantedGroup<L>[],
  name: string,
  terms: WaitTerms,
  fixed: number | undefined,
  runtime: Runtime,
): Promise<readonly L[]> {
  return new Promise((resolve, reject) => {
    const refused = (error: Error) => {
      acquisition.end(error);
      reject(error);
    };
    const caller = new SeveralCaller<L>(name, terms, runtime, resolve, refused);
    const acquisition = new AllOrNone(groups, caller, fixed, runtime);
    if (terms.signal?.aborted) return caller.refuse(abortedError(caller, terms.signal));
    const arrived: WantedGroup<L>[] = [];
    for (const group of groups) {
      arrived.push(group);
      const refusal = group.arrived?.(caller);
      if (refusal === undefined) continue;
      for (const one of arrived) one.left?.();
      return caller.refuse(refusal);
    }
    caller.watch(() => acquisition.departureError());
    void acquisition.serve();
  });
}

class AllOrNone<L> {
  /** In sorted order. */
  private readonly all: readonly Wanted[];
  private failed: { readonly group: WantedGroup<L>; readonly failure: BackendError } | undefined;
  private busy: BusyLock | undefined;
  /** The group whose answer is awaited. */
  private asked: WantedGroup<L> | undefined;
  private readonly pause: RetryPause;
  /** Created at the first attempt in which the caller got one lock while another was busy. */
  private holdAndWait: HoldAndWait | undefined;

  constructor(
    private readonly groups: readonly WantedGroup<L>[],
    private readonly caller: SeveralCaller<L>,
    private readonly fixed: number | undefined,
    private readonly runtime: Runtime,
  ) {
    this.all = groups.length === 1 ? groups[0].all : groups.flatMap(({ all }) => all).sort(bySortKey);
    this.pause = new RetryPause(runtime);
  }

  /**
   * Called when the caller was refused. Ends its pause or its wait for a lock, and gives back the locks that it holds.
   * A group whose answer is awaited gives back its locks after the answer.
   */
  end(error: Error): void {
    this.pause.wake();
    for (const wanted of this.all) wanted.stopWaiting(error);
    for (const group of this.groups)
      if (group !== this.asked) for (const wanted of group.all) wanted.giveBack().catch(() => {});
  }

  /** Serves or refuses the caller. Never rejects. */
  async serve(): Promise<void> {
    try {
      await this.run();
    } catch (error) {
      this.caller.refuse(error as Error);
    } finally {
      for (const group of this.groups) group.left?.();
    }
  }

  private async run(): Promise<void> {
    const { caller, all } = this;
    while (!caller.settled) {
      const waited = all.some(({ taken }) => taken);
      try {
        const holdsAndWaits = !waited && this.holdAndWait?.due === true;
        if (holdsAndWaits) await this.holdAndWait?.run();
        this.busy = await this.takeMissing();
        // Fixed leases grew older while the caller waited for other locks, or asked another service.
        if (this.busy === undefined && (holdsAndWaits || this.groups.length > 1)) await this.restartAgedLeases();
      } catch (error) {
        await this.giveBackAll();
        await this.pauseAfter(error as Error);
        continue;
      }
      if (this.busy === undefined) {
        if (!caller.settled && !all.some(({ stale }) => stale))
          return caller.grant(this.groups.map((group) => group.createLease()));
        await this.giveBackAll();
        continue;
      }
      await this.giveBackAll();
      if (caller.triesOnce) throw this.departureError();
      if (waited) await this.standBack();
      if (!caller.settled && !this.holdAndWait?.due) await this.waitFor(this.busy.wanted);
    }
    await this.giveBackAll();
  }

  departureError(): Error {
    const { caller, failed, groups, busy } = this;
    const { name, terms } = caller;
    const within = terms.waitTime > 0 ? ` within ${terms.waitTime} ms` : '';
    const cause =
      failed === undefined ? outageOf(groups, caller) : (failed.group.explained?.(failed.failure) ?? failed.failure);
    if (cause !== undefined)
      return new LockUnavailableError(`The locks ${name} could not be acquired: ${cause.message}`, name, { cause });
    const own = groups.length === 1 ? groups[0].busyError?.() : undefined;
    if (own !== undefined) return own;
    if (busy === undefined)
      return new LockBusyError(`Not all of the locks ${name} were free${within}; none was taken`, name, -1, undefined);
    const { wanted, remaining, holder } = busy;
    const { client, who } = wanted.describe(holder);
    return new LockBusyError(
      `Not all of the locks ${name} were free${within}: '${wanted.name}' is held by ${who}; none was taken`,
      name,
      remaining,
      holder,
      false,
      client,
    );
  }

  private async takeMissing(): Promise<BusyLock | undefined> {
    let busy: BusyLock | undefined;
    for (const group of this.groups) {
      this.asked = group;
      try {
        busy = await group.takeMissing();
      } catch (error) {
        this.noteFailure(group, error as Error);
        throw error;
      } finally {
        this.asked = undefined;
      }
      if (busy !== undefined || this.caller.settled) break;
    }
    this.failed = undefined;
    this.pause.reset();
    return busy;
  }

  private noteFailure(group: WantedGroup<L>, error: Error): void {
    if (error instanceof LockError) return;
    const failure = error as BackendError;
    const isFirst = this.failed === undefined;
    this.failed = { group, failure };
    if (isFirst && failure.kind === 'unavailable' && !this.caller.settled && !this.caller.triesOnce)
      group.failedOnce?.(() => this.departureError());
  }

  /** @throws the error for the caller, when another attempt cannot help */
  private async pauseAfter(error: Error): Promise<void> {
    if (error instanceof LockError && !(error instanceof LockLostError)) throw error;
    const { name, settled, triesOnce } = this.caller;
    const { kind = 'unavailable' } = error as Partial<BackendError>;
    if (kind === 'key')
      throw new LockKeyError(`The locks ${name} cannot be used: ${error.message}`, name, { cause: error });
    if (settled || triesOnce || kind !== 'unavailable') throw this.departureError();
    await this.pause.sleep();
  }

  /**
   * Pauses for a random time. Otherwise two callers that each hold the lock that the other one needs could give them
   * back and take them again at the same moments forever.
   */
  private standBack(): Promise<void> {
    const { runtime, fixed } = this;
    this.holdAndWait ??= new HoldAndWait(runtime, {
      all: this.all,
      // Half a lease leaves enough time to renew it.
      longestHold: fixed === undefined ? Number.POSITIVE_INFINITY : fixed / 2,
      waitFor: async (wanted) => {
        if (this.caller.settled) throw this.departureError();
        await this.waitFor(wanted);
      },
      sleep: (delay) => this.pause.sleep(delay),
    });
    return this.pause.sleep(runtime.random() * Math.min(2 ** this.holdAndWait.noteFailedAttempt(), FIRST_PAUSE));
  }

  private async waitFor(wanted: Wanted): Promise<void> {
    const remainingWait = Math.max(1, this.caller.remainingWait) as Milliseconds;
    try {
      await wanted.wait(remainingWait, this.caller, () => this.departureError());
    } catch (error) {
      // The wait for this lock and the whole wait end at the same time. The error has to name all locks, whichever
      // timer fires first.
      throw error instanceof LockBusyError ? this.departureError() : error;
    }
  }

  private async restartAgedLeases(): Promise<void> {
    await Promise.all(this.all.filter(({ aged }) => aged).map((wanted) => wanted.restartLease()));
  }

  private async giveBackAll(): Promise<void> {
    await Promise.all(this.all.map((wanted) => wanted.giveBack()));
  }
}

function outageOf<L>(groups: readonly WantedGroup<L>[], caller: Caller<never>): BackendError | undefined {
  for (const group of groups) {
    const outage = group.outage(caller);
    if (outage !== undefined) return outage;
  }
  return undefined;
}

/** The order that all processes use. */
export function bySortKey(one: Pick<Wanted, 'sortKey'>, other: Pick<Wanted, 'sortKey'>): number {
  return Number(one.sortKey > other.sortKey) - Number(one.sortKey < other.sortKey);
}

/** Describes the holder of a busy lock in an error. */
export function holderInWords(
  holder: string | undefined,
  client: HolderClient | undefined,
  unrecorded: string | undefined,
): string {
  return `${holder ?? 'another owner'}${ofClient(client, unrecorded)}`;
}
