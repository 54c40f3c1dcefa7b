import type { BackendError } from '../backends/lock-backend.js';
import { LockBusyError, LockKeyError, LockUnavailableError } from './errors.js';
import type { HeldLock } from './held-lock.js';
import type { Lease } from './lease.js';
import type { Moment } from './lease-clock.js';
import { validity } from './lease-clock.js';
import { abortedError, type LockEngine } from './lock-engine.js';
import type { AcquisitionTerms } from './lock-options.js';
import { findReentry } from './lock-scope.js';
import { shareMode } from './reentry.js';
import type { ShareGate, ShareMode } from './share-gate.js';
import { Waiter } from './waiter.js';

/** One of the locks: to be taken from its queue, or to be shared with the scope that holds it. */
interface Wanted {
  readonly name: string;
  readonly key: string;
  readonly share: { readonly held: HeldLock; readonly gate: ShareGate; readonly mode: ShareMode } | undefined;
  held: HeldLock | undefined;
}

/** The lock that was not free, and what is known of its holder. */
interface Obstacle {
  readonly wanted: Wanted;
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
  const all = names.map((name) => toWanted(engine, name, terms, what));
  const scoped = engine.admit(what);
  const title = names.join(', ');
  if (terms.signal?.aborted) throw abortedError(title, terms.signal);
  return new Promise((resolve, reject) => {
    const caller = new Waiter<Lease>(title, title, engine.newOwner(), terms, engine.parts.runtime, resolve, reject);
    caller.scoped = scoped;
    const work = new SeveralAcquisition(engine, all, terms, caller);
    caller.watch(() => work.departureError());
    engine.several.add(caller);
    work.run().then(
      () => engine.several.delete(caller),
      (error) => {
        engine.several.delete(caller);
        caller.refuse(error);
      },
    );
  });
}

function toWanted(engine: LockEngine, name: string, terms: AcquisitionTerms, what: string): Wanted {
  const key = engine.keyOf(name, what);
  const reentry = findReentry(engine, key, terms.type);
  if (reentry === undefined) return { name, key, share: undefined, held: undefined };
  const { scope, held } = reentry;
  return { name, key, share: { held, gate: scope.gate(key), mode: shareMode(held, terms.type) }, held: undefined };
}

class SeveralAcquisition {
  private failure: BackendError | undefined;
  private obstacle: Obstacle | undefined;

  constructor(
    private readonly engine: LockEngine,
    private readonly all: readonly Wanted[],
    private readonly terms: AcquisitionTerms,
    private readonly caller: Waiter<Lease>,
  ) {}

  async run(): Promise<void> {
    for (let pause = PAUSE, inVain = 0; !this.caller.settled; ) {
      const waited = this.all.some((wanted) => wanted.held !== undefined);
      try {
        this.obstacle = await this.takeRest();
        this.failure = undefined;
      } catch (error) {
        await this.giveBackAll();
        this.failure = error as BackendError;
        if (this.failure.kind === 'key')
          throw new LockKeyError(
            `The locks ${this.caller.name} cannot be used: ${this.failure.message}`,
            this.caller.name,
            { cause: error },
          );
        if (this.failure.kind !== 'unavailable' || this.caller.triesOnce) throw this.departureError();
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
      const why = this.failure?.message ?? `${this.engine.parts.backend.description} gave no answer${within}`;
      return new LockUnavailableError(`The locks ${name} could not be acquired: ${why}`, name, { cause: this.failure });
    }
    const { wanted, remaining, holder } = this.obstacle;
    return new LockBusyError(
      `Not all of the locks ${name} were free${within}: '${wanted.name}' is held by ${holder ?? 'another owner'}; none was taken`,
      name,
      remaining,
      holder,
    );
  }

  /** Tries what is not in hand yet, without waiting. */
  private async takeRest(): Promise<Obstacle | undefined> {
    const missing = this.all.filter((wanted) => wanted.held === undefined);
    for (const [i, wanted] of missing.entries()) {
      if (this.claim(wanted)) continue;
      for (const claimed of missing.slice(0, i)) this.unclaim(claimed);
      return { wanted, remaining: -1, holder: wanted.share?.held.owner };
    }
    const locks = missing.filter((wanted) => wanted.share === undefined);
    const obstacle = await this.takeClaimed(locks).catch((error) => {
      for (const wanted of missing) if (wanted.held === undefined) this.unclaim(wanted);
      throw error;
    });
    for (const wanted of missing) {
      if (wanted.held !== undefined) continue;
      if (obstacle !== undefined) this.unclaim(wanted);
      else wanted.held = wanted.share?.held;
    }
    return obstacle;
  }

  private async takeClaimed(locks: readonly Wanted[]): Promise<Obstacle | undefined> {
    if (locks.length === 0) return undefined;
    const { backend, clock, orphans } = this.engine.parts;
    const requests = locks.map(({ key }) => this.request(key));
    if (locks.length > 1 && this.terms.type !== 'fair' && backend.together(requests.map(({ key }) => key))) {
      const sent = clock.now();
      const reply = await backend.acquireAll(requests).catch((error: BackendError) => {
        if (error.outcome !== 'refused')
          for (const request of requests) orphans.giveBack(request, this.terms.leaseTime);
        throw error;
      });
      if (!reply.acquired) return { wanted: locks[reply.index], remaining: reply.remaining, holder: reply.holder };
      for (const [i, wanted] of locks.entries()) this.fulfil(wanted, sent, reply.tokens[i]);
      return undefined;
    }
    for (const [i, wanted] of locks.entries()) {
      const sent = clock.now();
      const reply = await backend.acquire(requests[i]).catch((error: BackendError) => {
        if (error.outcome !== 'refused') orphans.giveBack(requests[i], this.terms.leaseTime);
        throw error;
      });
      if (!reply.acquired) return { wanted, remaining: reply.remaining, holder: reply.holder };
      this.fulfil(wanted, sent, reply.token);
    }
    return undefined;
  }

  private request(key: string) {
    const { type, leaseTime } = this.terms;
    const { preferWriters } = this.engine.parts;
    return { key, type, owner: this.caller.owner, leaseTime, reserve: 0, placeTimeout: 0, preferWriters };
  }

  private claim({ key, share }: Wanted): boolean {
    if (share === undefined) return this.engine.queue(this.terms.type, key).claim();
    if (!share.gate.open(share.mode)) return false;
    share.gate.enter(share.mode);
    return true;
  }

  private unclaim({ key, share }: Wanted): void {
    if (share === undefined) this.engine.queue(this.terms.type, key).unclaim();
    else share.gate.leave();
  }

  private fulfil(wanted: Wanted, sent: Moment, token: number): void {
    wanted.held = this.engine
      .queue(this.terms.type, wanted.key)
      .fulfil(wanted.name, this.caller.owner, this.terms, sent, token);
  }

  /** Waits for one lock in its queue, and takes it. */
  private waitFor(wanted: Wanted): Promise<void> {
    const { name, key, share } = wanted;
    const { runtime } = this.engine.parts;
    return new Promise((resolve, reject) => {
      const taken = (held: HeldLock) => {
        wanted.held = held;
        resolve();
      };
      const patience = Math.max(1, this.caller.patience) as AcquisitionTerms['waitTime'];
      const terms = { ...this.terms, waitTime: patience };
      const waiter: Waiter = new Waiter(name, key, this.engine.newOwner(), terms, runtime, taken, reject);
      waiter.scoped = this.caller.scoped;
      if (share === undefined) return this.engine.queue(terms.type, key).enqueue(waiter);
      const turn = () => (waiter.settled ? share.gate.leave() : waiter.grant(share.held));
      if (share.gate.open(share.mode)) {
        share.gate.enter(share.mode);
        return turn();
      }
      share.gate.wait(waiter, share.mode, turn);
      waiter.watch(() => {
        share.gate.abandon(waiter);
        return this.departureError();
      });
    });
  }

  private async giveBackAll(): Promise<void> {
    const taken = this.all.filter((wanted) => wanted.held !== undefined);
    await Promise.all(
      taken.map(async (wanted) => {
        const held = wanted.held as HeldLock;
        wanted.held = undefined;
        if (wanted.share !== undefined) wanted.share.gate.leave();
        else await held.keeper.giveBack(held);
      }),
    );
  }

  private async finish(): Promise<void> {
    const locks = this.all.map((wanted) => wanted.held as HeldLock);
    const { clock } = this.engine.parts;
    const stale = locks.some((held) => held.lost !== undefined || clock.age(held.confirmed) >= validity(held.validFor));
    if (this.caller.settled || stale) {
      await this.giveBackAll();
      if (stale) return this.run();
      return;
    }
    const gates = this.all.flatMap((wanted) => wanted.share?.gate ?? []);
    const lease = this.engine.lease(locks, this.terms, gates);
    this.engine.announce(lease, this.caller.since);
    this.caller.grant(lease);
  }

  private sleep(pause: number): Promise<void> {
    return new Promise((resolve) => void this.engine.parts.runtime.timer(pause, resolve, 'keep-alive'));
  }
}
