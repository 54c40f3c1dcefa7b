import { type BackendError, withReason } from '../backends/lock-backend.js';
import { type Duration, toLeaseTime } from './duration.js';
import { LockError, LockLostError, LockNotOwnedError, LockUnavailableError } from './errors.js';
import type { HeldLock, ReleaseOutcome } from './held-lock.js';
import { type Moment, validity } from './lease-clock.js';
import type { LockEngine } from './lock-engine.js';
import { LockScope, lockScopes } from './lock-scope.js';
import type { ShareGate } from './share-gate.js';

const NOTHING_TOLD: readonly HeldLock[] = [];
const ENDED: Promise<void> = Promise.resolve();

/**
 * One successful acquisition of one lock, or of several at once: proof that this code holds it, for as long as `held` says so.
 *
 * A lease is released once; a released lease never sends anything again. Whether it still holds is judged by this
 * process's clocks, more strictly than the backend does: it can be lost here a moment before others can take the lock, not after.
 *
 * ```ts
 * await using lease = await locks.acquire('import:nightly');
 * for (const file of files) {
 *   lease.assertHeld();
 *   await load(file, { signal: lease.signal, fencingToken: lease.fencingToken });
 * }
 * ```
 *
 * @publicApi
 */
export class Lease {
  /** @internal */
  readonly service: LockEngine;
  /** Links of the list that it stands in. @internal */
  previous: Lease | undefined;
  /** @internal */
  next: Lease | undefined;
  /** The locks' own tokens go on growing when they are handed on. */
  private readonly token: number;
  private readonly tokenList: readonly number[] | undefined;
  private ending: Promise<void> | undefined;
  private abort: AbortController | undefined;
  private loss: LockLostError | undefined;

  /** @internal made by the engine alone */
  constructor(
    service: LockEngine,
    /** @internal */
    readonly locks: readonly HeldLock[],
    private readonly onLost: 'throw' | 'warn',
    private readonly gates: readonly ShareGate[],
  ) {
    this.service = service;
    this.token = locks[0].token;
    this.tokenList = locks.length > 1 ? locks.map(({ token }) => token) : undefined;
    for (const lock of locks) lock.share(this);
  }

  /** The lock's name; several are joined by `, `. */
  get name(): string {
    return this.locks.length === 1 ? this.locks[0].name : this.names.join(', ');
  }

  /** The owner's field in Redis: `<clientId>:<n>`. A lease that was handed on inside the process, or re-entered, has its predecessor's. */
  get owner(): string {
    return this.locks[0].owner;
  }

  /** The names of all locks, sorted. */
  get names(): readonly string[] {
    return this.locks.map((lock) => lock.name);
  }

  /**
   * A number that grows with each acquisition of this lock. Hand it to the resource, which refuses a lower one than it has seen, and takes the
   * same one again: a lease may write several times. It is above 10¹⁵: a database needs 64 bits for it (`bigint`).
   *
   * @throws LockError for several locks whose tokens differ: use {@link tokens}
   */
  get fencingToken(): number {
    const { token } = this;
    if (this.tokenList?.some((other) => other !== token)) {
      throw new LockError(`The locks ${this.name} have a fencing token each: read lease.tokens.get(name)`, this.name);
    }
    return token;
  }

  /** The fencing token of each lock by its name. */
  get tokens(): ReadonlyMap<string, number> {
    return new Map(this.locks.map((lock, i) => [lock.name, this.tokenList?.[i] ?? this.token]));
  }

  /** Aborts with LockLostError the moment the lease is lost, or with LockAbortedError when shutdown stops waiting for it. */
  get signal(): AbortSignal {
    if (this.abort === undefined) {
      this.abort = new AbortController();
      if (this.loss !== undefined) this.abort.abort(this.loss);
    }
    return this.abort.signal;
  }

  /** Neither released nor lost, as far as was noticed. @internal */
  get live(): boolean {
    return this.ending === undefined && this.loss === undefined;
  }

  /** Its share was given back, or is on its way. @internal */
  get released(): boolean {
    return this.ending !== undefined;
  }

  /** Whether the lock is certainly held at this moment. */
  get held(): boolean {
    const { clock } = this.service.parts;
    return this.live && this.remainingTime() > 0 && this.locks.every((lock) => !clock.diverged(lock.confirmed));
  }

  /** Milliseconds for which the lock is certainly held without another renewal; 0 when it is not. */
  remainingTime(): number {
    return this.live ? Math.max(0, this.left()) : 0;
  }

  /**
   * Returns when the lock is held.
   *
   * @throws LockLostError when it was lost, LockNotOwnedError when it was released
   */
  assertHeld(): void {
    if (this.held) return;
    if (this.released) throw new LockNotOwnedError(`The lease of '${this.name}' was released already`, this.name);
    throw (
      this.loss ??
      new LockLostError(
        `The lease of '${this.name}' ended, or the clocks of this machine jumped and no renewal has confirmed it yet`,
        this.name,
      )
    );
  }

  /**
   * Sets the lease to `duration` milliseconds from now. A lease kept by the watchdog stays with it, and gets no shorter.
   *
   * @throws LockLostError when the lock is lost (also when this call finds out), LockNotOwnedError when it was released,
   *   LockUnavailableError when the backend does not answer, LockConfigurationError for a duration below 100 ms or above 10 years
   */
  async extend(duration: Duration): Promise<void> {
    const leaseTime = toLeaseTime(duration, `extend() of '${this.name}': duration`);
    if (this.released) throw new LockNotOwnedError(`The lease of '${this.name}' was released already`, this.name);
    if (this.loss !== undefined) throw this.loss;
    try {
      await Promise.all(this.locks.map((lock) => this.service.parts.watchdog.extend(lock, leaseTime)));
    } catch (error) {
      const cause = withReason(this.service.parts.backend, error as BackendError);
      throw new LockUnavailableError(`The lease of '${this.name}' could not be extended: ${cause.message}`, this.name, {
        cause,
      });
    }
    if (this.loss !== undefined) throw this.loss;
  }

  /**
   * Runs `body` in a scope of this lease: what it acquires under the same names is re-entry, and `currentLease()` is this lease.
   * The lease is not released by it.
   */
  async run<T>(body: (lease: Lease) => T | Promise<T>): Promise<T> {
    this.assertLive();
    const scope = new LockScope(this, lockScopes.getStore());
    try {
      return await lockScopes.run(scope, body, this);
    } finally {
      scope.end();
    }
  }

  /**
   * Gives this share back; with the last share the lock becomes free, or goes to the next waiter. Calling it again is harmless.
   *
   * @throws LockLostError when the lease had been lost (with `onLost: 'warn'` that is only logged). A backend that cannot be
   *   reached is no error: the release is tried again in the background, and the lock lapses with its lease.
   */
  release(): Promise<void> {
    if (this.ending !== undefined) return this.ending.catch(() => {});
    this.ending = ENDED; // whoever is told of it may release it again
    this.ending = this.end();
    return this.ending;
  }

  /** As {@link release}. Where the block threw too, JavaScript puts both into a SuppressedError. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /**
   * Leaves the lock to lapse after `duration` milliseconds: no release, no renewal, no hand-off. Where other shares are left, it is
   * an ordinary release.
   *
   * @internal for `holdAtLeast`
   */
  async leaveFor(duration: number): Promise<void> {
    const shared = this.locks.some((lock) => lock.shares.length > 1);
    if (shared || !this.live || this.left() <= 0) return this.release();
    const { backend, clock, watchdog } = this.service.parts;
    this.ending = ENDED;
    this.service.leaseEnded(this);
    const leaseTime = Math.ceil(duration);
    const sent = clock.now();
    const cut = this.locks.map((lock) => {
      lock.disown();
      watchdog.drop(lock);
      // Who waits here asks how long the lock will last only when that is settled.
      const { key, type, owner, keeper } = lock;
      return backend.renew({ key, type, owner, leaseTime }).finally(() => keeper.forget(lock));
    });
    for (const gate of this.gates) gate.leave();
    const results = await Promise.allSettled(cut);
    for (const result of results) {
      if (result.status === 'rejected')
        this.warn(`could not be cut to ${duration} ms, and ends with its lease: ${result.reason.message}`);
    }
    // Later than that, the cut lease may have ended before a second copy of the command arrived.
    const gone = results.some((result) => result.status === 'fulfilled' && !result.value);
    if (gone && clock.age(sent) < leaseTime) this.reportLoss('gone');
  }

  /** @internal */
  lose(error: LockLostError): void {
    if (!this.live) return;
    this.loss = error;
    this.service.leaseEnded(this);
    this.abort?.abort(error);
  }

  /** Tells the body to stop; its locks lapse with their leases. @internal */
  cutOff(reason: Error): void {
    for (const lock of this.locks) lock.keeper.forget(lock);
    this.abort ??= new AbortController();
    this.abort.abort(reason);
  }

  private assertLive(): void {
    if (this.released) throw new LockNotOwnedError(`The lease of '${this.name}' was released already`, this.name);
    if (this.loss !== undefined) throw this.loss;
  }

  private end(): Promise<void> {
    const { clock, events } = this.service.parts;
    const now = clock.now();
    const overdue = this.loss === undefined && this.left(now) <= 0;
    const heard = events.hears('released');
    const freed = heard ? this.locks.filter(({ shares }) => shares.length === 1) : NOTHING_TOLD;
    const dropped =
      this.locks.length === 1
        ? this.locks[0].drop(this, now)
        : Promise.all(this.locks.map((lock) => lock.drop(this, now))).then(worst);
    if (typeof dropped !== 'string') return dropped.then((outcome) => this.ended(outcome, overdue, freed));
    // Handed on in here, or still shared: nothing to wait for.
    try {
      this.ended(dropped, overdue, freed);
      return ENDED;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  private ended(outcome: ReleaseOutcome, overdue: boolean, freed: readonly HeldLock[]): void {
    for (const gate of this.gates) gate.leave();
    this.service.leaseEnded(this);
    if (this.loss !== undefined || overdue || outcome === 'gone') return this.reportLoss(outcome);
    if (outcome === 'unreachable')
      this.warn('could not be released in time; it is tried again in the background, and lapses with its lease');
    for (const { name, owner } of freed) this.service.parts.events.emit('released', { name, owner });
  }

  private reportLoss(outcome: ReleaseOutcome): void {
    const why =
      outcome === 'gone'
        ? 'it was not there any more when it was to be released'
        : 'its lease had ended before it was released';
    const error =
      this.loss ??
      new LockLostError(`The lock '${this.name}' was lost: ${why}. Others may have held it meanwhile`, this.name);
    if (this.loss === undefined) {
      this.service.parts.events.emit('lost', { name: this.name, owner: this.owner, error });
      this.loss = error;
      this.abort?.abort(error);
    }
    if (this.onLost === 'throw') throw error;
    this.service.parts.events.logger.warn(error.message);
  }

  private left(now?: Moment): number {
    const { clock } = this.service.parts;
    let least = Number.POSITIVE_INFINITY;
    for (const lock of this.locks) least = Math.min(least, validity(lock.validFor) - clock.age(lock.confirmed, now));
    return least;
  }

  private warn(what: string): void {
    this.service.parts.events.logger.warn(`The lock '${this.name}' ${what}`);
  }
}

function worst(outcomes: readonly ReleaseOutcome[]): ReleaseOutcome {
  return outcomes.includes('gone') ? 'gone' : outcomes.includes('unreachable') ? 'unreachable' : 'released';
}
