import { type AcquireRequest, type BackendError, noAnswer, withReason } from '../backends/lock-backend.js';
import type { Milliseconds } from './duration.js';
import { LockBusyError, LockError, LockKeyError, LockUnavailableError } from './errors.js';
import type { HeldLock } from './held-lock.js';
import type { Lease } from './lease.js';
import { abortedError, type LockEngine } from './lock-engine.js';
import type { AcquisitionTerms } from './lock-options.js';
import { Waiter } from './waiter.js';
import { WantedLock } from './wanted-lock.js';

/** The lock that was not free, and what is known of its holder. */
interface Obstacle {
  readonly wanted: WantedLock;
  readonly remaining: number;
  readonly holder: string | undefined;
}

const PAUSE = 50;
const LONGEST_PAUSE = 1_000;

/**
 * Acquires several locks: all, or none. It never holds one while it waits for another, so that no order of names can deadlock:
 * when one is busy, what was taken is given back, the busy one is waited for like any other lock, and with it in hand the
 * rest is tried again.
 */
export function acquireSeveral(
  engine: LockEngine,
  names: readonly string[],
  terms: AcquisitionTerms,
  what: string,
): Promise<Lease> {
  const all = names.map((name) => new WantedLock(engine, name, terms, what));
  const scoped = engine.admit(what);
  const title = names.join(', ');
  if (terms.signal?.aborted) throw abortedError(title, terms.signal);
  return new Promise((resolve, reject) => {
    const caller = new Waiter<Lease>(title, engine.newOwner, terms, engine.parts.runtime, resolve, reject);
    caller.scoped = scoped;
    const work = new SeveralAcquisition(engine, all, terms, caller);
    caller.watch(() => {
      work.wakeUp();
      return work.departureError();
    });
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
  private obstacle: Obstacle | undefined;
  private owner: string;
  private readonly began: number | undefined;

  constructor(
    private readonly engine: LockEngine,
    private readonly all: readonly WantedLock[],
    private readonly terms: AcquisitionTerms,
    private readonly caller: Waiter<Lease>,
  ) {
    this.owner = caller.owner;
    this.began = engine.began();
  }

  async run(): Promise<void> {
    for (let pause = PAUSE, inVain = 0; !this.caller.settled; ) {
      const waited = this.all.some(({ held }) => held !== undefined);
      try {
        this.obstacle = await this.takeRest();
        this.failure = undefined;
      } catch (error) {
        await this.giveBackAll();
        this.judge(error as Error);
        if (pause === PAUSE) this.engine.parts.events.emit('error', this.departureError());
        await this.sleep(pause);
        pause = Math.min(pause * 2, LONGEST_PAUSE);
        continue;
      }
      if (this.obstacle === undefined) return this.finish();
      await this.giveBackAll();
      if (this.caller.triesOnce) throw this.departureError();
      // Callers of this process who each bring what the other one lacks could go on swapping for ever.
      if (waited) await this.sleep(this.engine.parts.runtime.random() * Math.min(2 ** inVain++, PAUSE));
      if (!this.caller.settled) await this.waitFor(this.obstacle.wanted);
    }
    await this.giveBackAll();
  }

  departureError(): Error {
    const { name, terms } = this.caller;
    const within = terms.waitTime > 0 ? ` within ${terms.waitTime} ms` : '';
    if (this.failure !== undefined || this.obstacle === undefined) {
      const { backend } = this.engine.parts;
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
  private async takeRest(): Promise<Obstacle | undefined> {
    const missing = this.all.filter(({ held }) => held === undefined);
    for (const wanted of missing) wanted.look();
    for (const [i, wanted] of missing.entries()) {
      if (wanted.claim()) continue;
      for (const claimed of missing.slice(0, i)) claimed.unclaim();
      return { wanted, remaining: -1, holder: wanted.holder };
    }
    const obstacle = await this.takeClaimed(missing.filter(({ shared }) => !shared)).catch((error) => {
      for (const wanted of missing) if (wanted.held === undefined) wanted.unclaim();
      throw error;
    });
    for (const wanted of missing) {
      if (wanted.held !== undefined) continue;
      if (obstacle !== undefined) wanted.unclaim();
      else wanted.share();
    }
    return obstacle;
  }

  private async takeClaimed(locks: readonly WantedLock[]): Promise<Obstacle | undefined> {
    const { backend, clock } = this.engine.parts;
    const requests = locks.map(({ key }) => this.request(key));
    if (locks.length > 1 && this.terms.type !== 'fair' && backend.together(requests.map(({ key }) => key))) {
      const sent = clock.now();
      const reply = await this.ask(backend.acquireAll(requests), requests);
      if (!reply.acquired) return { wanted: locks[reply.index], remaining: reply.remaining, holder: reply.holder };
      for (const [i, wanted] of locks.entries()) wanted.fulfil(requests[i].owner, sent, reply.tokens[i]);
      return undefined;
    }
    for (const [i, wanted] of locks.entries()) {
      const sent = clock.now();
      const reply = await this.ask(backend.acquire(requests[i]), [requests[i]]);
      if (!reply.acquired) return { wanted, remaining: reply.remaining, holder: reply.holder };
      wanted.fulfil(requests[i].owner, sent, reply.token);
    }
    return undefined;
  }

  /** Without an answer, what may have been acquired is given back in the background; the next attempt must not be taken for it. */
  private ask<T>(reply: Promise<T>, requests: readonly AcquireRequest[]): Promise<T> {
    return reply.catch((error: BackendError) => {
      if (error.outcome !== 'refused') {
        for (const request of requests) this.engine.parts.orphans.giveBack(request, this.terms.leaseTime);
        this.owner = this.engine.newOwner();
      }
      throw error;
    });
  }

  private request(key: string): AcquireRequest {
    const { type, leaseTime } = this.terms;
    const { preferWriters } = this.engine.parts;
    return { key, type, owner: this.owner, leaseTime, reserve: 0, placeTimeout: 0, preferWriters };
  }

  private waitFor(wanted: WantedLock): Promise<void> {
    const patience = Math.max(1, this.caller.patience) as Milliseconds;
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
    const gates = this.all.flatMap(({ gate }) => gate ?? []);
    const lease = this.engine.lease(locks, this.terms, gates);
    this.engine.announce(lease, this.began);
    this.caller.grant(lease);
  }

  private sleep(pause: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.engine.parts.runtime.timer(pause, resolve, 'keep-alive');
      this.wakeUp = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}
