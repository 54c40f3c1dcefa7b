import { BackOff } from '../../backends/back-off.js';
import { type BackendError, noAnswer, withReason } from '../../backends/lock-backend.js';
import { LockBusyError, LockError, LockKeyError, LockUnavailableError } from '../errors.js';
import { announceAcquired, startTime } from '../lease/announce.js';
import type { HeldLock } from '../lease/held-lock.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { LockAcquirer } from '../lock-acquirer.js';
import type { Milliseconds } from '../terms/duration.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { abortedError, type Caller } from '../waiting/caller.js';
import { InterruptibleSleep } from '../waiting/interruptible-sleep.js';
import type { WaitingQueue } from '../waiting/outages.js';
import { ofClient } from '../waiting/wait-errors.js';
import { Waiter } from '../waiting/waiter.js';
import { HoldAndWait } from './hold-and-wait.js';
import { type BusyLock, SeveralAttempt } from './several-attempt.js';
import { WantedLock } from './wanted-lock.js';

/** The first and the longest pause after a failure, in milliseconds. */
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1_000;

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
 *
 * @param track is told of the caller and, when it needs nothing any more, calls the function that it returned
 */
export function acquireSeveral(
  engine: LockAcquirer,
  names: readonly string[],
  terms: AcquisitionTerms,
  what: string,
  track: (caller: SeveralCaller) => () => void,
): Promise<LockLease> {
  const all = names.map((name) => new WantedLock(engine, name, terms, what));
  const title = names.join(', ');
  const scoped = engine.admit(what, title);
  return new Promise((resolve, reject) => {
    const refused = (error: Error) => {
      acquisition.wakeUp();
      reject(error);
    };
    const { outages, runtime } = engine.context;
    const caller = new SeveralCaller(title, engine.newOwner, terms, runtime, resolve, refused);
    caller.keys = all.map(({ key }) => key);
    caller.scoped = scoped;
    const acquisition = new SeveralAcquisition(engine, all, terms, caller);
    if (terms.signal?.aborted) return caller.refuse(abortedError(caller, terms.signal));
    const refusal = outages.active ? outages.arrived(caller, caller.keys) : undefined;
    if (refusal !== undefined) return caller.refuse(refusal);
    caller.watch(() => acquisition.departureError());
    const ended = track(caller);
    acquisition
      .run()
      .catch((error) => caller.refuse(error))
      .finally(ended);
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
    private readonly engine: LockAcquirer,
    private readonly all: readonly WantedLock[],
    private readonly terms: AcquisitionTerms,
    private readonly caller: SeveralCaller,
  ) {
    const { runtime } = engine.context;
    this.attempt = new SeveralAttempt(engine, all, terms);
    this.started = startTime(engine.context);
    this.backOff = new BackOff(runtime, FIRST_PAUSE, LONGEST_PAUSE);
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
      const { backend, outages } = this.engine.context;
      const failure = this.failure ?? outages.failure(this.caller.keys);
      const cause = failure === undefined ? noAnswer(backend, terms.waitTime) : withReason(backend, failure);
      return new LockUnavailableError(`The locks ${name} could not be acquired: ${cause.message}`, name, { cause });
    }
    if (this.busy === undefined)
      return new LockBusyError(`Not all of the locks ${name} were free${within}; none was taken`, name, -1, undefined);
    const { wanted, remaining, holder } = this.busy;
    const { holders } = this.engine.context;
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
    if (isFirst) this.engine.context.outages.attemptFailed(() => this.departureError());
    await this.pause.sleep(this.backOff.next());
  }

  /** Two callers of this process, each of which has what the other one lacks, could go on swapping for ever. */
  private standBack(): Promise<void> {
    const { runtime } = this.engine.context;
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
    const lease = this.engine.createLease(locks, this.terms, gates);
    announceAcquired(this.engine.context, lease, this.started);
    this.caller.grant(lease);
  }
}
