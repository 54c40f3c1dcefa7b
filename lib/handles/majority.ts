import { type BackendError, type LockBackend, noAnswer } from '../backends/lock-backend.js';
import type { Runtime, Timer } from '../backends/runtime.js';
import { LockBusyError, LockLostError, LockUnavailableError } from '../engine/errors.js';
import type { BusyLock, WantedGroup } from '../engine/several/all-or-none.js';
import type { Wanted } from '../engine/several/hold-and-wait.js';
import { FOREVER } from '../engine/terms/duration.js';
import type { WaitTerms } from '../engine/terms/wait-terms.js';
import { RetryPause } from '../engine/time/retry-pause.js';
import type { Caller } from '../engine/wait/caller.js';
import { SILENCE } from '../engine/wait/outage-limit.js';
import { CombinedLease, isAged, type MemberLease, releaseUnused } from './combined-lease.js';
import type { CombinedLock } from './combined-lock.js';
import type { LeaseRequest, LockHandle } from './lock-handle.js';

/** How long to wait for a member when there is no `waitTime` to divide, in milliseconds, as in Redisson. */
const MEMBER_WAIT_TIME = 1_500;

/**
 * The shortest and the longest pause between attempts, in milliseconds. Callers that take each other's missing locks
 * must not stay in step.
 */
const FIRST_PAUSE = 1;
const LONGEST_PAUSE = 100;

/** The shortest time to wait for members that answer a little later than the majority, in milliseconds. */
const SHORTEST_GRACE = 5;

type Leases = Map<LockHandle, MemberLease>;

/**
 * The members of a red lock, as one of the locks that {@link acquireAllOrNone} takes together. It is taken when enough
 * of its members are. An attempt tries all members at once. Without a majority, it gives back what it has taken, and
 * the caller waits for one member that was busy before the next attempt.
 */
export class Majority implements WantedGroup<MemberLease>, Wanted {
  readonly all: readonly Wanted[] = [this];
  private lease: CombinedLease | undefined;
  /** The members that were busy at the last attempt. */
  private busy: readonly LockHandle[] = [];
  /** Why the last attempt that was answered failed. */
  private refusal: Error | undefined;
  private failedAttempts = 0;
  private asking = false;
  /** Ends the attempt or the wait that is under way. */
  private stop = new AbortController();
  private readonly runtime: Runtime;
  private readonly calledAt: number;
  private readonly pause: RetryPause;

  constructor(
    private readonly lock: CombinedLock,
    private readonly request: LeaseRequest,
    private readonly terms: WaitTerms,
  ) {
    this.runtime = lock.engines[0].settings.runtime;
    this.calledAt = this.runtime.monotonic();
    this.pause = new RetryPause(this.runtime, FIRST_PAUSE, LONGEST_PAUSE);
  }

  get name(): string {
    return this.lock.name;
  }

  get sortKey(): string {
    return this.lock.sortKey;
  }

  get taken(): boolean {
    return this.lease !== undefined;
  }

  get stale(): boolean {
    return !this.lease?.held;
  }

  get aged(): boolean {
    return this.request.leaseTime !== undefined && this.lease?.lockLeases.some(isAged) === true;
  }

  async takeMissing(): Promise<BusyLock | undefined> {
    const refusal = this.taken ? undefined : await this.attempt(new Map(), this.stop.signal);
    if (refusal === undefined) return undefined;
    if (refusal instanceof LockBusyError)
      return { wanted: this, remaining: refusal.remainingTime, holder: refusal.holder };
    throw refusal instanceof LockUnavailableError ? (refusal.cause ?? refusal) : refusal;
  }

  async wait(): Promise<void> {
    const { signal } = this.stop;
    try {
      while (!signal.aborted) {
        await this.pause.sleep();
        if (!signal.aborted && (await this.attempt(await this.waitForBusyMember(signal), signal)) === undefined) return;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    throw signal.reason; // rather than the error of a member that was stopped
  }

  stopWaiting(error: Error): void {
    this.stop.abort(error);
    this.stop = new AbortController();
    this.pause.wake();
  }

  restartLease(): Promise<void> {
    // If too few members are held after this, the lock is stale.
    return this.lease?.refresh(this.request.leaseTime).catch(() => {}) ?? Promise.resolve();
  }

  async giveBack(): Promise<void> {
    const { lease } = this;
    this.lease = undefined;
    if (lease !== undefined) await releaseUnused([lease]);
  }

  describe(holder: string | undefined): { readonly who: string } {
    return { who: holder ?? 'another owner' };
  }

  outage({ terms }: Caller<never>): BackendError | undefined {
    const { refusal, asking, backends } = this;
    if (refusal !== undefined)
      return refusal instanceof LockUnavailableError ? (refusal.cause as BackendError | undefined) : undefined;
    // As for a single lock: a wait that is shorter than a round trip on healthy connections proves nothing.
    const isShort = terms.waitTime < SILENCE && backends.every(({ connectionError }) => connectionError === undefined);
    return asking && !isShort ? this.unanswered() : undefined;
  }

  busyError(): LockBusyError | undefined {
    return this.refusal instanceof LockBusyError ? this.refusal : undefined;
  }

  createLease(): MemberLease {
    return this.lease as MemberLease;
  }

  /**
   * Tries all members that are not in `leases`.
   *
   * @returns undefined when a majority is held; otherwise why not, if another attempt may succeed. Nothing is held then
   * @throws the error because of which no attempt can succeed
   */
  private async attempt(leases: Leases, signal: AbortSignal): Promise<Error | undefined> {
    const { needed, engines } = this.lock;
    this.asking = true;
    const errors = await this.tryTheOthers(leases, signal);
    this.asking = false;
    if (leases.size < needed) return this.refused(leases, errors);
    try {
      const lease = new CombinedLease([...leases.values()], needed, engines);
      await lease.refresh(this.request.leaseTime);
      if (signal.aborted) await releaseUnused([lease]);
      signal.throwIfAborted();
      this.lease = lease;
      return undefined;
    } catch (error) {
      if (!isRetryable(error)) throw error;
      return error as Error;
    }
  }

  /** Waits for a different member each time. */
  private async waitForBusyMember(signal: AbortSignal): Promise<Leases> {
    const { lock, request, terms, busy } = this;
    const { members, needed } = lock;
    const member = busy[this.failedAttempts % busy.length];
    const leases: Leases = new Map();
    if (member === undefined) return leases;
    const waitTime = terms.waitTime === FOREVER ? MEMBER_WAIT_TIME : Math.max(1, terms.waitTime / members.length);
    // If all members are needed, the wait for one of them can be part of a deadlock.
    const tentative = request.tentative === true || needed < members.length;
    try {
      const { leaseTime } = request;
      leases.set(member, await member.acquireLease({ waitTime, leaseTime, signal, tentative }));
    } catch (error) {
      if (!isRetryable(error)) throw error;
    }
    return leases;
  }

  /**
   * Settles when enough members are acquired, or too many have failed. A lease that arrives later is given back.
   *
   * @returns the errors of the members that failed
   */
  private async tryTheOthers(leases: Leases, stopped: AbortSignal): Promise<ReadonlyMap<LockHandle, unknown>> {
    const { lock, request, runtime } = this;
    const { members, needed } = lock;
    const { leaseTime } = request;
    const errors = new Map<LockHandle, unknown>();
    const over = new AbortController();
    const signal = AbortSignal.any([stopped, over.signal]);
    let isOver = false;
    const since = runtime.monotonic();
    let grace: Timer | undefined;
    await new Promise<void>((resolve) => {
      const answered = () => {
        const haveAllAnswered = leases.size + errors.size === members.length;
        if (haveAllAnswered || errors.size > members.length - needed) resolve();
        else if (leases.size >= needed)
          grace ??= runtime.timer(Math.max(SHORTEST_GRACE, runtime.monotonic() - since), resolve);
      };
      for (const member of members.filter((member) => !leases.has(member))) {
        member.acquireLease({ waitTime: 0, leaseTime, signal }).then(
          (lease) => {
            if (isOver) return releaseUnused([lease]);
            leases.set(member, lease);
            answered();
          },
          (error) => {
            if (isOver) return;
            errors.set(member, error);
            answered();
          },
        );
      }
      answered();
    });
    grace?.cancel();
    isOver = true;
    over.abort();
    return errors;
  }

  /** Permanent errors come before busy locks, and busy locks before outages. */
  private async refused(leases: Leases, errors: ReadonlyMap<LockHandle, unknown>): Promise<Error> {
    const { lock, terms } = this;
    const { members, needed, name } = lock;
    await releaseUnused(leases.values());
    this.failedAttempts++;
    this.busy = [...errors].filter(([, error]) => error instanceof LockBusyError).map(([member]) => member);
    const all = [...errors.values()];
    const lasting = all.filter((error) => !isRetryable(error));
    if (lasting.length > members.length - needed) throw lasting[0];
    const busy = all.find((error) => error instanceof LockBusyError);
    const refusal =
      busy === undefined
        ? (all.find(isRetryable) as Error)
        : new LockBusyError(
            `${all.length} of the ${members.length} locks ${name} could not be acquired, and ${needed} are needed: ${busy.message}`,
            name,
            busy.remainingTime,
            busy.holder,
          );
    this.refusal = refusal;
    if (terms.waitTime === 0 || !lock.isOutageOver(this.calledAt, terms.outageTimeout)) return refusal;
    if (refusal instanceof LockUnavailableError) throw refusal;
    const cause = this.unanswered();
    throw new LockUnavailableError(`The locks ${name} could not be acquired: ${cause.message}`, name, { cause });
  }

  private get backends(): readonly LockBackend[] {
    return this.lock.engines.map(({ settings }) => settings.backend);
  }

  private unanswered(): BackendError {
    const { backends } = this;
    const silent = backends.find(({ connectionError }) => connectionError !== undefined) ?? backends[0];
    return noAnswer(silent, this.terms.waitTime);
  }
}

/** Whether another attempt may succeed. */
function isRetryable(error: unknown): boolean {
  if (error instanceof LockBusyError || error instanceof LockLostError) return true;
  if (!(error instanceof LockUnavailableError)) return false;
  const { kind = 'unavailable' } = (error.cause ?? {}) as Partial<BackendError>;
  return kind === 'unavailable';
}
