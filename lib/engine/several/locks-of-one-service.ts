import { BackendError, noAnswer, withReason } from '../../backends/lock-backend.js';
import { Attempt, type AttemptReply, type FoundBusy, type Granted, type Outcome } from '../ask/attempt.js';
import { announceAcquired, startTime } from '../events/lease-events.js';
import type { HeldLock } from '../hold/held-lock.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { LockTable } from '../lock-table.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { isTraced, traceAcquisition } from '../trace/trace-acquisition.js';
import type { Awaited, AwaitingQueue } from '../wait/awaited.js';
import type { Caller } from '../wait/caller.js';
import { acquireAllOrNone, type BusyLock, type WantedGroup } from './all-or-none.js';
import { WantedLock } from './wanted-lock.js';

/** Acquires several locks of one service: all of them, or none. */
export async function acquireSeveral(
  table: LockTable,
  names: readonly string[],
  terms: AcquisitionTerms,
  what: string,
): Promise<LockLease> {
  const locks = new LocksOfOneService(table, names, terms, what);
  const fixed = terms.fixed ? terms.leaseTime : undefined;
  const [lease] = await acquireAllOrNone([locks], names.join(', '), terms, fixed, table.services.runtime);
  return lease;
}

/**
 * Several locks of one service and type that one caller wants. Each attempt uses new owner ids, because a late release
 * would otherwise free what a later attempt has taken under the same id.
 */
export class LocksOfOneService implements WantedGroup<LockLease>, AwaitingQueue {
  readonly all: readonly WantedLock[];
  readonly keys: readonly string[];
  /** The caller runs in a lock scope of this service. */
  readonly scoped: boolean;
  private readonly services: LockTable['services'];
  private readonly started: number | undefined;
  private caller: Caller<never> | undefined;
  /** Whether the last attempt failed. */
  private failing = false;

  /**
   * @param what the name of the call in errors
   * @throws LockKeyError, LockUpgradeError, LockConfigurationError; LockAbortedError when the service is closed
   */
  constructor(
    private readonly table: LockTable,
    private readonly names: readonly string[],
    private readonly terms: AcquisitionTerms,
    what: string,
  ) {
    const wanted = names.map((name) => new WantedLock(table, name, terms, what));
    const { services } = table;
    this.services = services;
    this.scoped = services.admission.admit(what, names.join(', '));
    for (const one of wanted) one.scoped = this.scoped;
    this.all = wanted;
    this.keys = wanted.map(({ key }) => key);
    this.started = startTime(services);
  }

  /** Runs the acquisition that includes these locks, and publishes its outcome. */
  traced(acquire: () => Promise<LockLease>): Promise<LockLease> {
    const { services, names, terms } = this;
    return isTraced(services) ? traceAcquisition(services, names, terms, acquire) : acquire();
  }

  arrived(caller: Caller<never>): Error | undefined {
    const { outages, work } = this.services;
    this.caller = caller;
    const refusal = outages.arrived(caller, this.keys);
    if (refusal === undefined) work.several.add(this);
    return refusal;
  }

  left(): void {
    const { outages, work } = this.services;
    work.severalEnded(this);
    outages.left();
  }

  /** In a scope, its caller may keep waiting: the waiters of its single locks are refused if they have to be. */
  get awaited(): Awaited {
    if (this.failing) return 'the end of an outage';
    const all = this.scoped ? [] : this.all.map(({ awaited }) => awaited);
    return all.find((awaited) => awaited !== 'an answer') ?? 'an answer';
  }

  refuseWhere(errorOf: (caller: Caller<never>) => Error | undefined): void {
    const { caller } = this;
    const error = caller && errorOf(caller);
    if (error !== undefined) caller?.refuse(error);
  }

  async takeMissing(): Promise<BusyLock | undefined> {
    try {
      const busy = await this.tryToTake(2);
      this.failing = false;
      return busy;
    } catch (error) {
      this.failing = true;
      const { admission, work } = this.services;
      if (admission.isEnding) work.changed();
      throw error;
    }
  }

  /** @param attempts how often to ask if the lock is busy by an owner of this process whose release is under way */
  private async tryToTake(attempts: number): Promise<BusyLock | undefined> {
    const missing = this.all.filter(({ taken }) => !taken);
    for (const wanted of missing) wanted.refreshReentry();
    const waits = claimAll(missing);
    if (waits !== undefined) return this.behindRelease(this.busyAt(waits, -1, waits.holder ?? waits.leaving), attempts);
    let busy: BusyLock | undefined;
    try {
      busy = await this.takeClaimed(missing.filter(({ shared }) => !shared));
      const unsure = this.all.filter((wanted) => wanted.unsure);
      if (unsure.length > 0) await Promise.all(unsure.map((wanted) => wanted.confirm()));
    } catch (error) {
      for (const wanted of missing) if (!wanted.taken) wanted.unclaim();
      throw error;
    }
    for (const wanted of missing) {
      if (wanted.taken) continue;
      if (busy !== undefined) wanted.unclaim();
      else wanted.share();
    }
    return busy && this.behindRelease(busy, attempts);
  }

  /** Asks again after the release if the busy lock belongs to an owner of this process that is being released. */
  private async behindRelease(busy: BusyLock, attempts: number): Promise<BusyLock | undefined> {
    if (busy.released === undefined || attempts <= 1) return busy;
    await busy.released;
    return this.caller?.settled ? busy : this.tryToTake(attempts - 1);
  }

  outage(caller: Caller<never>): BackendError | undefined {
    if (!this.all.some((wanted) => wanted.isUnavailableTo(caller))) return undefined;
    const { backend, outages } = this.services;
    const failure = outages.failure(this.keys);
    return failure === undefined ? noAnswer(backend, caller.terms.waitTime) : withReason(backend, failure);
  }

  explained(failure: BackendError): BackendError {
    return withReason(this.services.backend, failure);
  }

  failedOnce(error: () => Error): void {
    this.services.outages.attemptFailed(error);
  }

  createLease(): LockLease {
    const { services, table, all, terms, started } = this;
    const locks = all.map(({ held }) => held as HeldLock);
    const lease = table.createLease(
      locks,
      terms,
      all.flatMap(({ entered }) => entered),
    );
    announceAcquired(services, lease, started);
    return lease;
  }

  private takeClaimed(locks: readonly WantedLock[]): Promise<BusyLock | undefined> {
    const isTogether =
      locks.length > 1 &&
      this.terms.type !== 'fair' &&
      this.services.backend.canAcquireTogether(locks.map(({ key }) => key));
    return isTogether ? this.takeTogether(locks) : this.takeOneByOne(locks);
  }

  private async takeOneByOne(locks: readonly WantedLock[]): Promise<BusyLock | undefined> {
    const { backend } = this.services;
    for (const wanted of locks) {
      const attempt = this.attemptAt(wanted);
      const busy = await attempt.outcome(backend.acquire(attempt), (outcome) => {
        const reply = takeGranted(wanted, outcome, ({ token }) => token);
        return reply && this.busyAt(wanted, reply.remaining, reply.holder);
      });
      if (busy !== undefined) return busy;
    }
    return undefined;
  }

  /** Takes all these locks by one command. */
  private async takeTogether(locks: readonly WantedLock[]): Promise<BusyLock | undefined> {
    const attempts = locks.map((wanted) => this.attemptAt(wanted));
    let busy: BusyLock | undefined;
    await Attempt.outcomes(attempts, this.services.backend.acquireAll(attempts), (outcome, i) => {
      const reply = takeGranted(locks[i], outcome, ({ tokens }) => tokens[i]);
      if (reply !== undefined) busy ??= this.busyAt(locks[reply.index], reply.remaining, reply.holder);
    });
    return busy;
  }

  /** Called in the turn in which the lock was found busy, before the holder's release may be answered. */
  private busyAt(wanted: WantedLock, remaining: number, holder: string | undefined): BusyLock {
    return { wanted, remaining, holder, released: this.services.unsettledReleases.nextAnswer(holder) };
  }

  private attemptAt({ key }: WantedLock): Attempt {
    return new Attempt(this.services, key, this.services.newOwner(), this.terms);
  }
}

/**
 * Claims all of these locks, or none.
 *
 * @returns the first lock for which the attempt would have to wait
 * @throws LockUpgradeError as {@link WantedLock.claim} does
 */
function claimAll(locks: readonly WantedLock[]): WantedLock | undefined {
  let claimed = 0;
  try {
    while (claimed < locks.length && locks[claimed].claim()) claimed++;
    return locks[claimed];
  } finally {
    if (claimed < locks.length) for (const wanted of locks.slice(0, claimed)) wanted.unclaim();
  }
}

/**
 * Fulfils the claim of a lock that was granted. Otherwise, what may have been taken is released in the background.
 *
 * @returns the answer if the lock is busy
 * @throws BackendError when there was no answer, or the lock was granted but cannot be used any more
 */
function takeGranted<Reply extends AttemptReply>(
  wanted: WantedLock,
  outcome: Outcome<Reply>,
  tokenIn: (reply: Granted<Reply>['reply']) => number,
): FoundBusy<Reply>['reply'] | undefined {
  if (outcome.state === 'granted') {
    wanted.fulfil(outcome, tokenIn(outcome.reply));
    return undefined;
  }
  outcome.abandon();
  if (outcome.state === 'busy') return outcome.reply;
  if (outcome.state === 'failed') throw outcome.error;
  throw new BackendError('a lock was released by force while it was acquired', 'unavailable', 'unknown');
}
