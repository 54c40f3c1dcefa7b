import { type BackendError, withReason } from '../../backends/lock-backend.js';
import { type Duration, toLeaseTime } from '../duration.js';
import { LockError, LockLostError, LockNotOwnedError, LockUnavailableError } from '../errors.js';
import type { LockEngine } from '../lock-engine.js';
import { confirmLease } from '../scope/confirm-lease.js';
import { LockScope, lockScopes } from '../scope/lock-scope.js';
import { type EnteredGate, ShareGate } from '../scope/share-gate.js';
import type { HeldLock, ReleaseOutcome } from './held-lock.js';
import type { Lease } from './lease.js';
import { type Moment, validity } from './lease-clock.js';

const NOTHING_TOLD: readonly HeldLock[] = [];
const ENDED: Promise<void> = Promise.resolve();

/** The {@link Lease} of one lock, or of several of one service: a share in each of them. */
export class LockLease implements Lease {
  readonly service: LockEngine;
  /** Links of the list that it stands in. */
  previous: LockLease | undefined;
  next: LockLease | undefined;
  /** The locks' own tokens go on growing when they are handed on. */
  private readonly token: number;
  private readonly tokenList: readonly number[] | undefined;
  private ending: Promise<void> | undefined;
  private abort: AbortController | undefined;
  private loss: LockLostError | undefined;

  /** What its children have entered, by the lock's key. */
  private gates: Map<string, ShareGate> | undefined;
  /** It has ended: it leaves the gates that it entered when nobody is below it any more. */
  private leaving = false;

  /** @param entered the gates of the shares that it is a child of */
  constructor(
    service: LockEngine,
    readonly locks: readonly HeldLock[],
    private readonly onLost: 'throw' | 'warn',
    private readonly entered: readonly EnteredGate[],
  ) {
    this.service = service;
    this.token = locks[0].token;
    this.tokenList = locks.length > 1 ? locks.map(({ token }) => token) : undefined;
    for (const lock of locks) lock.share(this);
  }

  get name(): string {
    return this.locks.length === 1 ? this.locks[0].name : this.names.join(', ');
  }

  get owner(): string {
    return this.locks[0].owner;
  }

  get names(): readonly string[] {
    return this.locks.map((lock) => lock.name);
  }

  get fencingToken(): number {
    const { token } = this;
    if (this.tokenList?.some((other) => other !== token)) {
      throw new LockError(`The locks ${this.name} have a fencing token each: read lease.tokens.get(name)`, this.name);
    }
    return token;
  }

  get tokens(): ReadonlyMap<string, number> {
    return new Map(this.locks.map((lock, i) => [lock.name, this.tokenList?.[i] ?? this.token]));
  }

  get signal(): AbortSignal {
    if (this.abort === undefined) {
      this.abort = new AbortController();
      if (this.loss !== undefined) this.abort.abort(this.loss);
    }
    return this.abort.signal;
  }

  /** Neither released nor lost, as far as was noticed. */
  get live(): boolean {
    return this.ending === undefined && this.loss === undefined;
  }

  /** Its share was given back, or is on its way. */
  get released(): boolean {
    return this.ending !== undefined;
  }

  get held(): boolean {
    const { clock } = this.service.context;
    return this.live && this.remainingTime() > 0 && this.locks.every((lock) => !clock.diverged(lock.confirmed));
  }

  remainingTime(): number {
    return this.live ? Math.max(0, this.left()) : 0;
  }

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

  async extend(duration: Duration): Promise<void> {
    const leaseTime = toLeaseTime(duration, `extend() of '${this.name}': duration`);
    if (this.released) throw new LockNotOwnedError(`The lease of '${this.name}' was released already`, this.name);
    if (this.loss !== undefined) throw this.loss;
    try {
      await Promise.all(this.locks.map((lock) => this.service.context.watchdog.extend(lock, leaseTime)));
    } catch (error) {
      const cause = withReason(this.service.context.backend, error as BackendError);
      throw new LockUnavailableError(`The lease of '${this.name}' could not be extended: ${cause.message}`, this.name, {
        cause,
      });
    }
    if (this.loss !== undefined) throw this.loss;
  }

  async run<T>(body: (lease: Lease) => T | Promise<T>): Promise<T> {
    const certain = this.makeCertain();
    if (certain !== undefined) await certain;
    const scope = new LockScope(this, lockScopes.getStore());
    try {
      return await lockScopes.run(scope, body, this);
    } finally {
      scope.end();
    }
  }

  /**
   * Returns when the locks are certainly held, by the clocks too; where these have parted, settles when it is certain.
   *
   * @throws LockLostError when one was lost, LockNotOwnedError when the lease was released
   */
  makeCertain(): Promise<void> | undefined {
    const { service, locks } = this;
    this.assertLive();
    const unsure = locks.filter((lock) => service.context.watchdog.judge(lock) === 'unsure');
    this.assertLive();
    if (unsure.length === 0) return undefined;
    const certain = unsure.map((lock) => confirmLease(service, lock, service.patient));
    return Promise.all(certain).then(() => this.assertLive());
  }

  /** Where its children exclude each other on the lock with this key. */
  gate(key: string): ShareGate {
    this.gates ??= new Map();
    let gate = this.gates.get(key);
    if (gate === undefined) {
      gate = new ShareGate(this, key);
      this.gates.set(key, gate);
    }
    return gate;
  }

  /** The last child has left, and nobody waits. It may be told twice: by one that leaves as soon as it is let in. */
  gateEmptied(emptied: ShareGate): void {
    const { key } = emptied;
    if (this.gates?.get(key) !== emptied) return;
    this.gates.delete(key);
    if (!this.leaving) return;
    for (const gate of this.entered) if (gate.key === key) gate.leave();
  }

  /** The gate that it entered, as a child, to have its share in the lock with this key. */
  gateAbove(key: string): ShareGate | undefined {
    return this.entered.find((gate) => gate.key === key) as ShareGate | undefined;
  }

  /** Whether it is a share below `other` in the lock with this key. */
  isBelow(other: LockLease, key: string): boolean {
    for (let lease: LockLease | undefined = this; lease !== undefined; ) {
      lease = lease.gateAbove(key)?.share;
      if (lease === other) return true;
    }
    return false;
  }

  release(): Promise<void> {
    if (this.ending !== undefined) return this.ending.catch(() => {});
    this.ending = ENDED; // whoever is told of it may release it again
    this.ending = this.end();
    return this.ending;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /**
   * Leaves the lock to lapse after `duration` milliseconds: no release, no renewal, no hand-off. Where other shares are left, it is
   * an ordinary release. For `holdAtLeast`.
   */
  async leaveFor(duration: number): Promise<void> {
    const shared = this.locks.some((lock) => lock.shares.length > 1);
    if (shared || !this.live || this.left() <= 0) return this.release();
    const { backend, clock, watchdog } = this.service.context;
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
    this.leaveGates();
    const results = await Promise.allSettled(cut);
    for (const result of results) {
      if (result.status === 'rejected')
        this.warn(`could not be cut to ${duration} ms, and ends with its lease: ${result.reason.message}`);
    }
    // Later than that, the cut lease may have ended before a second copy of the command arrived.
    const gone = results.some((result) => result.status === 'fulfilled' && !result.value);
    if (gone && clock.age(sent) < leaseTime) this.reportLoss('gone');
  }

  lose(error: LockLostError): void {
    if (!this.live) return;
    this.loss = error;
    this.service.leaseEnded(this);
    this.abort?.abort(error);
  }

  /** Tells the body to stop; its locks lapse with their leases. */
  cutOff(reason: Error): void {
    for (const lock of this.locks) lock.keeper.forget(lock);
    this.abort ??= new AbortController();
    this.abort.abort(reason);
  }

  /** A gate whose lock has shares below this one is left with the last of them: else that one and the next child would be in together. */
  private leaveGates(): void {
    this.leaving = true;
    for (const gate of this.entered) if (!this.gates?.has(gate.key)) gate.leave();
  }

  private assertLive(): void {
    if (this.released) throw new LockNotOwnedError(`The lease of '${this.name}' was released already`, this.name);
    if (this.loss !== undefined) throw this.loss;
  }

  private end(): Promise<void> {
    const { clock, events } = this.service.context;
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
    this.leaveGates();
    this.service.leaseEnded(this);
    if (this.loss !== undefined || overdue || outcome === 'gone') return this.reportLoss(outcome);
    if (outcome === 'unreachable')
      this.warn('could not be released in time; it is tried again in the background, and lapses with its lease');
    for (const { name, owner } of freed) this.service.context.events.emit('released', { name, owner });
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
      this.service.context.events.emit('lost', { name: this.name, owner: this.owner, error });
      this.loss = error;
      this.abort?.abort(error);
    }
    if (this.onLost === 'throw') throw error;
    this.service.context.events.logger.warn(error.message);
  }

  private left(now?: Moment): number {
    const { clock } = this.service.context;
    let least = Number.POSITIVE_INFINITY;
    for (const lock of this.locks) least = Math.min(least, validity(lock.validFor) - clock.age(lock.confirmed, now));
    return least;
  }

  private warn(what: string): void {
    this.service.context.events.logger.warn(`The lock '${this.name}' ${what}`);
  }
}

function worst(outcomes: readonly ReleaseOutcome[]): ReleaseOutcome {
  return outcomes.includes('gone') ? 'gone' : outcomes.includes('unreachable') ? 'unreachable' : 'released';
}
