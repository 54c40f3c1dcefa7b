import { BackOff, FIRST_PAUSE } from '../../backends/back-off.js';
import { BackendError, type Busy, noAnswer, withReason } from '../../backends/lock-backend.js';
import { Attempt } from '../attempt.js';
import type { EngineContext } from '../engine-context.js';
import { LockBusyError, LockError, LockKeyError, LockUnavailableError } from '../errors.js';
import { announceAcquired, startTime } from '../lease/announce.js';
import type { HeldLock } from '../lease/held-lock.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { Milliseconds } from '../terms/duration.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { InterruptibleSleep } from '../waiting/interruptible-sleep.js';
import type { WaitingQueue } from '../waiting/outages.js';
import { ofClient } from '../waiting/wait-errors.js';
import { abortedError, type Caller, Waiter } from '../waiting/waiter.js';
import { HoldAndWait } from './hold-and-wait.js';
import { WantedLock } from './wanted-lock.js';

/** A caller that wants several locks and has not got them yet. */
export class SeveralCaller extends Waiter<LockLease> implements WaitingQueue {
  /** Of the locks that it wants. */
  keys: readonly string[] = [];

  override get what(): string {
    return `the locks ${this.name}`;
  }

  refuseWhere(errorOf: (caller: Caller<never>) => Error | undefined): void {
    const error = errorOf(this);
    if (error !== undefined) this.refuse(error);
  }
}

/**
 * Acquires several locks: all of them, or none. It does not hold a lock while it waits for another one, so that no order of names can
 * deadlock: when one is busy, all that was taken is given back, the busy lock is waited for like any other, and with it in hand the rest is
 * tried again. A caller that was passed over for long may hold and wait for a bounded time: see {@link HoldAndWait}.
 */
export function acquireSeveral(
  context: EngineContext,
  names: readonly string[],
  terms: AcquisitionTerms,
  what: string,
): Promise<LockLease> {
  const all = names.map((name) => new WantedLock(context, name, terms, what));
  const title = names.join(', ');
  const scoped = context.admit(what, title);
  const { outages, runtime, work } = context;
  return new Promise((resolve, reject) => {
    const refused = (error: Error) => {
      acquisition.wakeUp();
      reject(error);
    };
    const caller = new SeveralCaller(title, context.newOwner, terms, runtime, resolve, refused);
    caller.keys = all.map(({ key }) => key);
    caller.scoped = scoped;
    const acquisition = new SeveralAcquisition(context, all, terms, caller);
    if (terms.signal?.aborted) return caller.refuse(abortedError(caller, terms.signal));
    const refusal = outages.active ? outages.arrived(caller, caller.keys) : undefined;
    if (refusal !== undefined) return caller.refuse(refusal);
    caller.watch(() => acquisition.departureError());
    work.several.add(caller);
    acquisition
      .run()
      .catch((error) => caller.refuse(error))
      .finally(() => {
        work.severalEnded(caller);
        outages.left();
      });
  });
}

class SeveralAcquisition {
  private failure: BackendError | undefined;
  private busy: BusyLock | undefined;
  private readonly attempt: SeveralAttempt;
  private readonly started: number | undefined;
  private readonly backOff: BackOff;
  private readonly pause: InterruptibleSleep;
  /** Created when it was passed over for the first time. */
  private holdAndWait: HoldAndWait | undefined;

  constructor(
    private readonly context: EngineContext,
    private readonly all: readonly WantedLock[],
    private readonly terms: AcquisitionTerms,
    private readonly caller: SeveralCaller,
  ) {
    const { runtime } = context;
    this.attempt = new SeveralAttempt(context, all, terms);
    this.started = startTime(context);
    this.backOff = new BackOff(runtime);
    this.pause = new InterruptibleSleep(runtime);
  }

  /** Ends a pause. */
  wakeUp(): void {
    this.pause.wake();
  }

  async run(): Promise<void> {
    while (!this.caller.settled) {
      const waited = this.all.some(({ held }) => held !== undefined);
      try {
        if (!waited && this.holdAndWait?.due) await this.holdAndWait.run();
        this.busy = await this.attempt.takeMissing();
        this.failure = undefined;
        this.backOff.reset();
      } catch (error) {
        await this.giveBackAll();
        await this.pauseAfter(error as Error);
        continue;
      }
      if (this.busy === undefined) return this.finish();
      await this.giveBackAll();
      if (this.caller.triesOnce) throw this.departureError();
      if (waited) await this.standBack();
      if (!this.caller.settled && !this.holdAndWait?.due) await this.waitFor(this.busy.wanted);
    }
    await this.giveBackAll();
  }

  departureError(): Error {
    const { name, terms } = this.caller;
    const within = terms.waitTime > 0 ? ` within ${terms.waitTime} ms` : '';
    if (this.failure !== undefined || this.all.some((wanted) => wanted.isUnavailableTo(this.caller))) {
      const { backend, outages } = this.context;
      const failure = this.failure ?? outages.failure(this.caller.keys);
      const cause = failure === undefined ? noAnswer(backend, terms.waitTime) : withReason(backend, failure);
      return new LockUnavailableError(`The locks ${name} could not be acquired: ${cause.message}`, name, { cause });
    }
    if (this.busy === undefined)
      return new LockBusyError(`Not all of the locks ${name} were free${within}; none was taken`, name, -1, undefined);
    const { wanted, remaining, holder } = this.busy;
    const { holders } = this.context;
    const client = holders.known(holder);
    const who = `${holder ?? 'another owner'}${ofClient(client, holders.unrecorded(holder))}`;
    return new LockBusyError(
      `Not all of the locks ${name} were free${within}: '${wanted.name}' is held by ${who}; none was taken`,
      name,
      remaining,
      holder,
      false,
      client,
    );
  }

  /** @throws the error for the caller, where another attempt cannot help */
  private async pauseAfter(error: Error): Promise<void> {
    if (error instanceof LockError) throw error;
    const failure = error as BackendError;
    const isFirst = this.failure === undefined;
    this.failure = failure;
    const { name, settled, triesOnce } = this.caller;
    if (failure.kind === 'key')
      throw new LockKeyError(`The locks ${name} cannot be used: ${error.message}`, name, { cause: error });
    if (settled || triesOnce || failure.kind !== 'unavailable') throw this.departureError();
    if (isFirst) this.context.outages.attemptFailed(() => this.departureError());
    await this.pause.sleep(this.backOff.next());
  }

  /** Two callers of this process, each of which has what the other one lacks, could go on swapping for ever. */
  private standBack(): Promise<void> {
    const { runtime } = this.context;
    this.holdAndWait ??= new HoldAndWait(runtime, {
      all: this.all,
      // At half of a lease there is enough time to renew it.
      longestHold: this.terms.fixed ? this.terms.leaseTime / 2 : Number.POSITIVE_INFINITY,
      waitFor: async (wanted) => {
        if (this.caller.settled) throw this.departureError();
        wanted.refreshReentry();
        await this.waitFor(wanted);
      },
      sleep: (delay) => this.pause.sleep(delay),
    });
    return this.pause.sleep(runtime.random() * Math.min(2 ** this.holdAndWait.inVain(), FIRST_PAUSE));
  }

  private async waitFor(wanted: WantedLock): Promise<void> {
    const remainingWait = Math.max(1, this.caller.remainingWait) as Milliseconds;
    try {
      await wanted.wait(remainingWait, this.caller, () => this.departureError());
    } catch (error) {
      // Its time and the caller's are over at the same moment: the caller hears of all its locks, whichever timer is first.
      throw error instanceof LockBusyError ? this.departureError() : error;
    }
  }

  private async giveBackAll(): Promise<void> {
    await Promise.all(this.all.map((wanted) => wanted.giveBack()));
  }

  private async finish(): Promise<void> {
    if (this.all.some(({ stale }) => stale)) {
      await this.giveBackAll();
      return this.run();
    }
    if (this.caller.settled) return this.giveBackAll();
    const locks = this.all.map(({ held }) => held as HeldLock);
    const gates = this.all.flatMap(({ entered }) => entered);
    const lease = this.context.createLease(locks, this.terms, gates);
    announceAcquired(this.context, lease, this.started);
    this.caller.grant(lease);
  }
}

/** A lock that was not free, and what is known about its holder. */
interface BusyLock {
  readonly wanted: WantedLock;
  readonly remaining: number;
  readonly holder: string | undefined;
}

/**
 * Tries to take several locks, or what is missing of them, without waiting. Each lock has a new owner id in each attempt, because a release
 * that arrives late would free what a later attempt has taken under the same id.
 */
class SeveralAttempt {
  constructor(
    private readonly context: EngineContext,
    private readonly all: readonly WantedLock[],
    private readonly terms: AcquisitionTerms,
  ) {}

  /**
   * Takes what is not held yet. What was taken before a busy lock was found stays taken: see {@link WantedLock.giveBack}.
   *
   * @returns the first lock that is busy
   * @throws BackendError, LockUpgradeError, LockConfigurationError
   */
  async takeMissing(): Promise<BusyLock | undefined> {
    const missing = this.all.filter(({ held }) => held === undefined);
    for (const wanted of missing) wanted.refreshReentry();
    for (const [i, wanted] of missing.entries()) {
      if (wanted.claim()) continue;
      for (const claimed of missing.slice(0, i)) claimed.unclaim();
      return { wanted, remaining: -1, holder: wanted.holder };
    }
    let busy: BusyLock | undefined;
    try {
      busy = await this.takeClaimed(missing.filter(({ shared }) => !shared));
      await Promise.all(this.all.map((wanted) => wanted.confirm()));
    } catch (error) {
      for (const wanted of missing) if (wanted.held === undefined) wanted.unclaim();
      throw error;
    }
    for (const wanted of missing) {
      if (wanted.held !== undefined) continue;
      if (busy !== undefined) wanted.unclaim();
      else wanted.share();
    }
    return busy;
  }

  private async takeClaimed(locks: readonly WantedLock[]): Promise<BusyLock | undefined> {
    const { backend } = this.context;
    const areTaken = locks.length > 1 && this.terms.type !== 'fair';
    if (areTaken && backend.canAcquireTogether(locks.map(({ key }) => key))) return this.takeTogether(locks);
    for (const wanted of locks) {
      const attempt = this.attemptAt(wanted);
      const reply = await backend.acquire(attempt).catch((error) => giveUp([attempt], error));
      attempt.answered(reply);
      settle(wanted, attempt, reply.acquired ? reply.token : 0);
      if (!reply.acquired) return busyAt(wanted, reply);
    }
    return undefined;
  }

  /** By one command. */
  private async takeTogether(locks: readonly WantedLock[]): Promise<BusyLock | undefined> {
    const attempts = locks.map((wanted) => this.attemptAt(wanted));
    const reply = await this.context.backend.acquireAll(attempts).catch((error) => giveUp(attempts, error));
    const { validUntil } = reply;
    for (const [i, attempt] of attempts.entries()) {
      if (reply.acquired) attempt.answered({ acquired: true, token: reply.tokens[i], reserved: 0, validUntil });
      else attempt.answered(reply);
    }
    const failures = attempts.flatMap((attempt, i) => {
      try {
        settle(locks[i], attempt, reply.acquired ? reply.tokens[i] : 0);
        return [];
      } catch (error) {
        return [error];
      }
    });
    if (failures.length > 0) throw failures[0];
    return reply.acquired ? undefined : busyAt(locks[reply.index], reply);
  }

  private attemptAt({ key }: WantedLock): Attempt {
    return new Attempt(this.context, key, this.context.newOwner(), this.terms);
  }
}

function busyAt(wanted: WantedLock, { remaining, holder }: Pick<Busy, 'remaining' | 'holder'>): BusyLock {
  return { wanted, remaining, holder };
}

/** There was no answer: what may have been taken is released in the background. */
function giveUp(attempts: readonly Attempt[], error: BackendError): never {
  for (const attempt of attempts) {
    attempt.failed(error);
    attempt.abandon();
  }
  throw error;
}

/** @throws BackendError when the lock was granted, but cannot be used any more */
function settle(wanted: WantedLock, attempt: Attempt, token: number): void {
  if (attempt.state === 'granted') return wanted.fulfil(attempt, token);
  attempt.abandon();
  if (attempt.state === 'busy') return;
  throw (
    attempt.error ?? new BackendError('a lock was released by force while it was acquired', 'unavailable', 'unknown')
  );
}
