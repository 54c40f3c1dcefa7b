import {
  type AcquireAllReply,
  type AcquireReply,
  type AcquireRequest,
  BackendError,
  noAnswer,
  withReason,
} from '../../backends/lock-backend.js';
import type { Milliseconds } from '../duration.js';
import { LockBusyError, LockError, LockKeyError, LockUnavailableError } from '../errors.js';
import type { HeldLock } from '../lease/held-lock.js';
import type { LockLease } from '../lease/lock-lease.js';
import { PendingOwner } from '../lease/pending-acquisitions.js';
import { abortedError, type LockEngine } from '../lock-engine.js';
import type { AcquisitionTerms } from '../lock-options.js';
import { Waiter } from '../waiting/waiter.js';
import { HoldAndWait } from './hold-and-wait.js';
import { WantedLock } from './wanted-lock.js';

/** The lock that was not free, and what is known of its holder. */
interface BusyLock {
  readonly wanted: WantedLock;
  readonly remaining: number;
  readonly holder: string | undefined;
}

const PAUSE = 50;
const LONGEST_PAUSE = 1_000;

/**
 * Acquires several locks: all, or none. It does not hold one while it waits for another, so that no order of names can deadlock:
 * when one is busy, what was taken is given back, the busy one is waited for like any other lock, and with it in hand the
 * rest is tried again. A caller that was passed over for long may do so for a bounded time: see {@link HoldAndWait}.
 */
export function acquireSeveral(
  engine: LockEngine,
  names: readonly string[],
  terms: AcquisitionTerms,
  what: string,
): Promise<LockLease> {
  const all = names.map((name) => new WantedLock(engine, name, terms, what));
  const title = names.join(', ');
  const scoped = engine.admit(what, title);
  if (terms.signal?.aborted) throw abortedError(title, terms.signal);
  return new Promise((resolve, reject) => {
    const refused = (error: Error) => {
      work.wakeUp();
      reject(error);
    };
    const caller = new Waiter<LockLease>(title, engine.newOwner, terms, engine.context.runtime, resolve, refused);
    caller.scoped = scoped;
    const work = new SeveralAcquisition(engine, all, terms, caller);
    caller.watch(() => work.departureError());
    engine.several.add(caller);
    void work
      .run()
      .catch((error) => caller.refuse(error))
      .finally(() => {
        engine.several.delete(caller);
        engine.settled();
      });
  });
}

class SeveralAcquisition {
  /** Ends a pause. */
  wakeUp: () => void = () => {};
  private failure: BackendError | undefined;
  private obstacle: BusyLock | undefined;
  private owner: string;
  private readonly began: number | undefined;
  /** Since it was passed over for the first time. */
  private holdAndWait: HoldAndWait | undefined;

  constructor(
    private readonly engine: LockEngine,
    private readonly all: readonly WantedLock[],
    private readonly terms: AcquisitionTerms,
    private readonly caller: Waiter<LockLease>,
  ) {
    this.owner = caller.owner;
    this.began = engine.began();
  }

  async run(): Promise<void> {
    for (let pause = PAUSE; !this.caller.settled; ) {
      const waited = this.all.some(({ held }) => held !== undefined);
      const holds = !waited && this.holdAndWait?.due;
      try {
        if (holds) await this.holdAndWait?.run();
        this.obstacle = await this.takeRest();
        this.failure = undefined;
      } catch (error) {
        await this.giveBackAll();
        this.judge(error as Error);
        if (pause === PAUSE) this.engine.context.events.emit('error', this.departureError());
        await this.sleep(pause);
        pause = Math.min(pause * 2, LONGEST_PAUSE);
        continue;
      }
      if (this.obstacle === undefined) return this.finish();
      await this.giveBackAll();
      if (this.caller.triesOnce) throw this.departureError();
      if (waited) await this.standBack();
      if (!this.caller.settled && !this.holdAndWait?.due) await this.waitFor(this.obstacle.wanted);
    }
    await this.giveBackAll();
  }

  departureError(): Error {
    const { name, terms } = this.caller;
    const within = terms.waitTime > 0 ? ` within ${terms.waitTime} ms` : '';
    if (this.failure !== undefined || this.obstacle === undefined) {
      const { backend } = this.engine.context;
      const cause = this.failure === undefined ? noAnswer(backend, terms.waitTime) : withReason(backend, this.failure);
      return new LockUnavailableError(`The locks ${name} could not be acquired: ${cause.message}`, name, { cause });
    }
    const { wanted, remaining, holder } = this.obstacle;
    return new LockBusyError(
      `Not all of the locks ${name} were free${within}: '${wanted.name}' is held by ${holder ?? 'another owner'}; none was taken`,
      name,
      remaining,
      holder,
    );
  }

  /** Returns when it makes sense to try again after this error. */
  private judge(error: Error): void {
    if (error instanceof LockError) throw error;
    this.failure = error as BackendError;
    const { name, settled, triesOnce } = this.caller;
    if (this.failure.kind === 'key')
      throw new LockKeyError(`The locks ${name} cannot be used: ${error.message}`, name, { cause: error });
    if (settled || triesOnce || this.failure.kind !== 'unavailable') throw this.departureError();
  }

  /** Tries what is not in hand yet, without waiting. */
  private async takeRest(): Promise<BusyLock | undefined> {
    const missing = this.all.filter(({ held }) => held === undefined);
    for (const wanted of missing) wanted.look();
    for (const [i, wanted] of missing.entries()) {
      if (wanted.claim()) continue;
      for (const claimed of missing.slice(0, i)) claimed.unclaim();
      return { wanted, remaining: -1, holder: wanted.holder };
    }
    let obstacle: BusyLock | undefined;
    try {
      obstacle = await this.takeClaimed(missing.filter(({ shared }) => !shared));
      await Promise.all(this.all.map((wanted) => wanted.makeCertain()));
    } catch (error) {
      for (const wanted of missing) if (wanted.held === undefined) wanted.unclaim();
      throw error;
    }
    for (const wanted of missing) {
      if (wanted.held !== undefined) continue;
      if (obstacle !== undefined) wanted.unclaim();
      else wanted.share();
    }
    return obstacle;
  }

  private async takeClaimed(locks: readonly WantedLock[]): Promise<BusyLock | undefined> {
    const { backend, clock } = this.engine.context;
    const requests = locks.map(({ key }) => this.request(key));
    if (locks.length > 1 && this.terms.type !== 'fair' && backend.canAcquireTogether(requests.map(({ key }) => key))) {
      const sent = clock.now();
      const reply = await this.ask(backend.acquireAll(requests), requests);
      if (!reply.acquired) return { wanted: locks[reply.index], remaining: reply.remaining, holder: reply.holder };
      for (const [i, wanted] of locks.entries())
        wanted.fulfil(requests[i].owner, sent, reply.tokens[i], reply.validUntil);
      return undefined;
    }
    for (const [i, wanted] of locks.entries()) {
      const sent = clock.now();
      const reply = await this.ask(backend.acquire(requests[i]), [requests[i]]);
      if (!reply.acquired) return { wanted, remaining: reply.remaining, holder: reply.holder };
      wanted.fulfil(requests[i].owner, sent, reply.token, reply.validUntil);
    }
    return undefined;
  }

  /** What may be acquired without our knowledge is given back in the background; the next attempt must not be taken for it. */
  private ask<T extends AcquireReply | AcquireAllReply>(
    reply: Promise<T>,
    requests: readonly AcquireRequest[],
  ): Promise<T> {
    return this.undisturbed(reply, requests).then(
      (answer) => {
        if (!answer.acquired && answer.validUntil !== undefined) this.disown(requests, answer.validUntil);
        return answer;
      },
      (error: BackendError) => {
        if (error.outcome !== 'refused') this.disown(requests, error.validUntil);
        throw error;
      },
    );
  }

  private disown(requests: readonly AcquireRequest[], validUntil: number | undefined): void {
    const { backgroundReleases } = this.engine.context;
    for (const { key, type, owner, leaseTime } of requests)
      backgroundReleases.release({ key, type, owner, leaseTime, validUntil });
    this.owner = this.engine.newOwner();
  }

  /** An acquisition that was released by force before its answer came has failed. */
  private async undisturbed<T>(reply: Promise<T>, requests: readonly AcquireRequest[]): Promise<T> {
    const { pendingAcquisitions } = this.engine.context;
    const own = requests.map(({ key, owner }) => new PendingOwner(key, owner));
    for (const flight of own) pendingAcquisitions.begin(flight);
    const answer = await reply.finally(() => {
      for (const flight of own) pendingAcquisitions.end(flight);
    });
    if (!own.some(({ interference }) => interference === 'removed')) return answer;
    throw new BackendError('a lock was released by force while it was acquired', 'unavailable', 'unknown');
  }

  private request(key: string): AcquireRequest {
    const { type, leaseTime } = this.terms;
    const { preferWriters } = this.engine.context;
    return { key, type, owner: this.owner, leaseTime, reserve: 0, fairWaitTimeout: 0, preferWriters };
  }

  /** Callers of this process who each bring what the other one lacks could go on swapping for ever. */
  private standBack(): Promise<void> {
    const { runtime } = this.engine.context;
    this.holdAndWait ??= new HoldAndWait(runtime, {
      all: this.all,
      // At half of a lease there is time enough to renew it.
      longestHold: this.terms.fixed ? this.terms.leaseTime / 2 : Number.POSITIVE_INFINITY,
      waitFor: async (wanted) => {
        if (this.caller.settled) throw this.departureError();
        wanted.look();
        await this.waitFor(wanted);
      },
      sleep: (pause) => this.sleep(pause),
    });
    return this.sleep(runtime.random() * Math.min(2 ** this.holdAndWait.inVain(), PAUSE));
  }

  private waitFor(wanted: WantedLock): Promise<void> {
    const patience = Math.max(1, this.caller.remainingWait) as Milliseconds;
    return wanted.wait(patience, this.caller.scoped, () => this.departureError());
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
    const lease = this.engine.lease(locks, this.terms, gates);
    this.engine.announce(lease, this.began);
    this.caller.grant(lease);
  }

  private sleep(pause: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.engine.context.runtime.timer(pause, resolve, 'keep-alive');
      this.wakeUp = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}
