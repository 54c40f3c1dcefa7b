import type { ExpectedHolders } from '../backends/lock-backend.js';
import { printsAs } from '../backends/prints-as.js';
import { LockConfigurationError } from '../engine/errors.js';
import type { LockEventName, LockEvents } from '../engine/events/lock-events.js';
import type { FlightOptions, FlightTerms } from '../engine/flights/flight-terms.js';
import type { FlightSerializer, JsonResult } from '../engine/flights/serialize-result.js';
import type { Leadership, LeadOptions } from '../engine/leadership/leadership.js';
import type { LockLease } from '../engine/lease/lock-lease.js';
import type { LockEngine } from '../engine/lock-engine.js';
import type { Milliseconds } from '../engine/terms/duration.js';
import type { Lease, MultiLease } from '../engine/terms/lease.js';
import type { LockNames } from '../engine/terms/lock-name.js';
import type { AcquisitionTerms, AdoptOptions, LockOptions, Purpose, RunOptions } from '../engine/terms/lock-options.js';
import { checkOptions, type OptionTable, rule, wholeNumber } from '../engine/terms/option-table.js';
import { CountDownLatch } from '../handles/count-down-latch.js';
import { FairLock } from '../handles/fair-lock.js';
import { FencedLock } from '../handles/fenced-lock.js';
import type { LockHandle } from '../handles/lock-handle.js';
import { MultiLock } from '../handles/multi-lock.js';
import { PermitExpirableSemaphore } from '../handles/permit-semaphore.js';
import { ReadWriteLock } from '../handles/read-write-lock.js';
import { RedLock } from '../handles/red-lock.js';
import { ReentrantLock } from '../handles/reentrant-lock.js';
import { Semaphore } from '../handles/semaphore.js';
import type { SemaphoreOptions } from '../handles/semaphore-options.js';
import type { LockClient } from './lock-client.js';
import {
  type ForceReleaseOptions,
  type ListOptions,
  type LockInspection,
  type LockList,
  LockView,
} from './lock-inspection.js';
import { type LockServiceHealth, ServiceHealth } from './service-health.js';

/**
 * Set on each LockService by its constructor. Mocks do not have it, not even those that are generated from the class or
 * that generate every property. The symbol is registered, because a process may have loaded two copies of the library.
 */
export const IS_LOCK_SERVICE: unique symbol = Symbol.for('nestjs-redis-lock.is-lock-service') as never;

/** One name, whose lease has one fencing token. A lease of several names has a token for each name. */
type OneName = string | readonly [string];

/**
 * Distributed locks. Inject it, or create one without NestJS with `createLockService(options)`.
 *
 * ```ts
 * await this.locks.withLock('order:42', async (lease) => {
 *   await this.bank.charge(42, { fencingToken: lease.fencingToken });
 * });
 * ```
 *
 * `acquire`, `tryAcquire` and `withLock` take one name, or a list of names. Of a list, either all names are locked or
 * none. All other methods take one name. A bad name fails with LockKeyError and a bad option with
 * LockConfigurationError, before the backend is asked.
 *
 * @publicApi
 */
export class LockService {
  private readonly view: LockView;
  private readonly state: ServiceHealth;

  /** @internal */
  readonly [IS_LOCK_SERVICE] = true;

  /** @internal */
  constructor(
    /** @internal */
    readonly engine: LockEngine,
  ) {
    this.view = new LockView(engine);
    this.state = new ServiceHealth(engine);
  }

  /**
   * Waits for the lock, and returns its lease. Release it, or let `await using` release it. Inside a scope that
   * holds the lock, this is re-entry: it shares the existing lease, and its own `leaseTime` is ignored.
   *
   * @throws LockBusyError when `waitTime` ends
   * @throws LockDeadlockError when the caller holds a lock, and its wait completes a cycle of waits: see
   * docs/deadlocks.md
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   * @throws LockUnavailableError when the backend does not answer within `waitTime`, or for longer than `outageTimeout`
   * @throws LockUpgradeError when the scope holds the read lock of the name and asks for its write lock
   * @throws LockKeyError, LockConfigurationError for a bad name or option
   */
  acquire(name: OneName, options?: LockOptions): Promise<Lease>;
  acquire(names: LockNames, options?: LockOptions): Promise<MultiLease>;
  acquire(names: LockNames, options?: LockOptions): Promise<Lease> {
    return this.engine.acquire(names, options);
  }

  /**
   * Like {@link acquire}, but returns `null` if the lock is busy, and does not wait unless `waitTime` is given.
   *
   * @throws what {@link acquire} throws, except LockBusyError
   */
  tryAcquire(name: OneName, options?: LockOptions): Promise<Lease | null>;
  tryAcquire(names: LockNames, options?: LockOptions): Promise<MultiLease | null>;
  tryAcquire(names: LockNames, options?: LockOptions): Promise<Lease | null> {
    return this.engine.tryAcquire(names, options);
  }

  /**
   * Runs `body` while the lock is held, then releases it. Inside the body, acquiring the same name is re-entry, and
   * `currentLease()` is the lease. Re-entry shares the existing lease. Its own `leaseTime` is ignored, and a
   * fixed lease is not extended.
   *
   * @returns what the body returns
   * @throws what {@link acquire} throws, and what the body throws
   * @throws LockLostError when the body succeeded but the lock was lost in the meantime (see `onLost`)
   */
  withLock<T>(name: OneName, body: (lease: Lease) => T | Promise<T>): Promise<T>;
  withLock<T>(name: OneName, options: RunOptions, body: (lease: Lease) => T | Promise<T>): Promise<T>;
  withLock<T>(names: LockNames, body: (lease: MultiLease) => T | Promise<T>): Promise<T>;
  withLock<T>(names: LockNames, options: RunOptions, body: (lease: MultiLease) => T | Promise<T>): Promise<T>;
  async withLock<T>(
    names: LockNames,
    optionsOrBody: RunOptions | ((lease: Lease) => T | Promise<T>),
    bodyAfterOptions?: (lease: Lease) => T | Promise<T>,
  ): Promise<T> {
    const hasOptions = typeof optionsOrBody !== 'function';
    const body = hasOptions ? bodyAfterOptions : optionsOrBody;
    if (typeof body !== 'function')
      throw new LockConfigurationError('withLock(): the last argument must be the function to run');
    const options = hasOptions ? optionsOrBody : undefined;
    // Awaited, so that the stack of an error inside leads to the caller.
    return await this.engine.holdWhile(await this.engine.acquireToRun(names, options, 'withLock()'), body);
  }

  /**
   * Runs `body` once for all callers that ask for `name` at the same time, in all processes. One of them runs it, and
   * the others get its result. With `keepFor: '1m'`, callers that ask up to a minute after it has ended also get the
   * result.
   *
   * ```ts
   * const prices = await locks.singleFlight('prices:eur', { keepFor: '1m' }, () => this.computePrices('eur'));
   * ```
   *
   * - The result is stored in the same step in which the lock is released. At most one caller runs the body *while its
   *   lease is valid*. This does not mean that the body runs exactly once.
   * - All callers, even the one that ran the body, get a copy of the result that has passed through JSON. `T` has to be
   *   a JSON type. For other types, set `serialize` and `deserialize`. A result that JSON would change fails with
   *   LockConfigurationError.
   * - If `body` throws, nothing is stored. Waiting callers of this process get the same error. Callers of other
   *   processes then run the body, one after the other.
   * - `waitTime` limits the wait until this caller runs the body or gets the result. `signal` ends only this caller's
   *   wait.
   * - `currentLease()` in the body has the fencing token and the signal.
   *
   * @throws LockBusyError when `waitTime` ends
   * @throws LockLostError when the lock was lost while this caller ran the body. The result is then not stored (see
   * `onLost`)
   * @throws LockDeadlockError when the caller already holds this lock, or its wait completes a cycle of waits
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   * @throws LockUnavailableError when the backend does not answer within `waitTime`, or for longer than `outageTimeout`
   * @throws LockKeyError, LockConfigurationError for a bad name, option or result, and on a quorum or row locks, which
   * cannot store a result and release the lock in one step
   * @see docs/single-flight.md
   * @see singleflight in Go's golang.org/x/sync, which does this in one process
   */
  singleFlight<T>(name: string, body: (lease: Lease) => JsonResult<T> | Promise<JsonResult<T>>): Promise<T>;
  singleFlight<T>(
    name: string,
    options: FlightOptions & FlightSerializer<T>,
    body: (lease: Lease) => T | Promise<T>,
  ): Promise<T>;
  singleFlight<T>(
    name: string,
    options: FlightOptions,
    body: (lease: Lease) => JsonResult<T> | Promise<JsonResult<T>>,
  ): Promise<T>;
  async singleFlight(
    name: string,
    optionsOrBody: FlightOptions | ((lease: Lease) => unknown),
    bodyAfterOptions?: (lease: Lease) => unknown,
  ): Promise<unknown> {
    const [options, body] =
      typeof optionsOrBody === 'function' ? [undefined, optionsOrBody] : [optionsOrBody, bodyAfterOptions];
    if (typeof body !== 'function')
      throw new LockConfigurationError('singleFlight(): the last argument must be the function to run');
    const terms = this.engine.flightTermsOf(options, {}, `singleFlight() of '${String(name)}'`);
    return this.engine.singleFlight(name, terms, body);
  }

  /**
   * Deletes the stored result of a {@link singleFlight}, because it is out of date. If the body is running, its waiting
   * callers still get the result, but it is not stored. Callers that ask after this promise has settled get a newer
   * result.
   *
   * @returns whether there was a result
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for a bad name, LockConfigurationError
   * on a backend without single flights
   */
  forgetResult(name: string): Promise<boolean> {
    return this.engine.forgetResult(name);
  }

  /**
   * Takes over a lock that was detached ({@link Lease.detach}), in any process that uses the same Redis and
   * `keyPrefix`. The lock gets an owner of this service and a new fencing token, and is renewed by the watchdog unless
   * `leaseTime` is given.
   *
   * ```ts
   * await using lease = await locks.adopt(job.data.ticket);
   * await lease.run(() => send(job.data.id, { fencingToken: lease.fencingToken }));
   * ```
   *
   * A ticket can be used once. A job that is run again after its process died cannot use the ticket again. It has to
   * wait with {@link acquire} until the lease of the dead process has ended.
   *
   * @throws LockLostError when the lock is free, because nobody adopted it in time, or because it was adopted and
   * released, or released by force
   * @throws LockNotOwnedError when somebody else holds the lock, by this ticket or by an acquisition
   * @throws LockError for a string that is not a ticket
   * @throws LockUnavailableError when the backend does not answer within `outageTimeout`, LockAbortedError when the
   * service shuts down
   * @throws LockConfigurationError for a bad option, for a ticket of a service with another `keyPrefix`, or if locks
   *   cannot be detached (a quorum, SQL)
   * @see docs/detach-and-adopt.md
   */
  adopt(ticket: string, options?: AdoptOptions): Promise<Lease> {
    return this.engine.adopt(ticket, options);
  }

  /**
   * Stands for election, so that one process at a time leads. `onElected` runs in one of the processes that call
   * `lead(name, …)` on the same Redis. When the leader stops, loses the lock or dies, another process is elected. This
   * process then stands for election again, after a pause of 0.5 to 30 seconds. Only `stop()` and the shutdown of the
   * service end this. Leaderships are the first thing that a shutdown ends.
   *
   * ```ts
   * const leadership = locks.lead('outbox', {
   *   async onElected(lease) {
   *     while (!lease.signal.aborted) {
   *       await relayNextMessage({ signal: lease.signal, fencingToken: lease.fencingToken });
   *     }
   *   },
   * });
   * ```
   *
   * An error of `onElected` is emitted as `error`, or logged if nobody listens. The lock is an ordinary one of type
   * `reentrant`. Two processes never hold it at the same time, but a leader that has lost it may take a moment to
   * notice: check `lease.signal`, and send the fencing token with every write.
   *
   * @throws LockKeyError for a bad name, LockConfigurationError for a bad option, LockAbortedError when the service
   * shuts down
   * @see docs/leaders.md
   */
  lead(name: string, options: LeadOptions): Leadership {
    return this.engine.lead(name, options);
  }

  /** For the decorator: {@link lead}, with the name of the method. @internal */
  leadBy(name: string, options: LeadOptions, method: string): Leadership {
    return this.engine.lead(name, options, method, method);
  }

  /** For the decorator: resolves its options once, instead of at each call. @internal */
  termsOf(options: RunOptions | undefined, purpose: Purpose): AcquisitionTerms {
    return this.engine.termsOf(options, purpose);
  }

  /** For the decorator: {@link acquire} under terms from {@link termsOf}. @internal */
  acquireUnder(names: LockNames, terms: AcquisitionTerms, what: string): Promise<Lease> {
    return this.engine.acquireUnder(names, terms, what);
  }

  /** For the decorator: publishes that no name could be made for a call. @internal */
  refuse(error: Error, terms: AcquisitionTerms): Promise<never> {
    return this.engine.refuse(error, terms);
  }

  /** For the decorator: resolves its options once, instead of at each call. @internal */
  flightTermsOf(
    options: FlightOptions & Partial<FlightSerializer<unknown>>,
    purpose: Purpose,
    what: string,
  ): FlightTerms {
    return this.engine.flightTermsOf(options, purpose, what);
  }

  /** For the decorator: {@link singleFlight} under terms from {@link flightTermsOf}. @internal */
  flightUnder(name: string, terms: FlightTerms, body: (lease: Lease) => unknown, what: string): Promise<unknown> {
    return this.engine.singleFlight(name, terms, body, what);
  }

  /** For the decorator: runs `body` in a scope of `lease`, then releases the lease. @internal */
  holdWhile<T>(
    lease: Lease,
    body: (lease: Lease) => T | Promise<T>,
    options?: { readonly holdAtLeast?: Milliseconds },
  ): Promise<T> {
    return this.engine.holdWhile(lease as LockLease, body, options?.holdAtLeast);
  }

  /** For the decorator: logs a warning about a subject only the first time. @internal */
  warnOnce(subject: string, message: string): void {
    this.engine.services.events.warnOnce(subject, message);
  }

  // ── Handles, by Redisson's names ───────────────────────────────────────────────────────────────────────────────────

  /**
   * A handle for the lock, with the methods of Redisson's RLock. Creating a handle costs nothing and sends nothing. A
   * bad name is refused when you acquire the lock.
   */
  getLock(name: string): ReentrantLock {
    return new ReentrantLock(this.engine, name);
  }

  /** A lock that serves its callers in arrival order, across all processes. */
  getFairLock(name: string): FairLock {
    return new FairLock(this.engine, name);
  }

  /** A lock whose fencing tokens come from a counter that it shares with Redisson. */
  getFencedLock(name: string): FencedLock {
    return new FencedLock(this.engine, name);
  }

  /** A lock for many readers or one writer. */
  getReadWriteLock(name: string): ReadWriteLock {
    return new ReadWriteLock(this.engine, name);
  }

  /**
   * All of these locks, or none. They may be of any kind, and may belong to other services.
   *
   * @throws LockKeyError when there are none
   * @throws LockConfigurationError when an argument is not a lock, or when the same lock is given in two ways that
   * exclude each other
   */
  getMultiLock(...locks: LockHandle[]): MultiLock {
    return new MultiLock(locks);
  }

  /**
   * A majority of these locks, each of which belongs to an independent service.
   *
   * @throws LockKeyError when there are none, LockConfigurationError when an argument is not a lock
   */
  getRedLock(...locks: LockHandle[]): RedLock {
    return new RedLock(locks);
  }

  /**
   * Permits that all processes share: `getSemaphore('mail-connections', { permits: 10 })`.
   *
   * @throws LockKeyError for a bad name, LockConfigurationError for a bad option, or when the service is a quorum
   */
  getSemaphore(name: string, options?: SemaphoreOptions): Semaphore {
    return new Semaphore(this.engine, name, options);
  }

  /**
   * Permits that each have an id and a lease. They expire when their process dies.
   *
   * @throws LockKeyError for a bad name, LockConfigurationError for a bad option, or when the service is a quorum
   */
  getPermitExpirableSemaphore(name: string, options?: SemaphoreOptions): PermitExpirableSemaphore {
    return new PermitExpirableSemaphore(this.engine, name, options);
  }

  /**
   * Lets callers wait until something has been done a number of times.
   *
   * @throws LockKeyError for a bad name, LockConfigurationError when the service is a quorum
   */
  getCountDownLatch(name: string): CountDownLatch {
    return new CountDownLatch(this.engine, name);
  }

  // ── Seen from outside ──────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Whether anybody holds the lock, here or elsewhere.
   *
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for a bad name
   */
  async isLocked(name: string): Promise<boolean> {
    return (await this.engine.inspector.inspect(name)).mode !== 'free';
  }

  /**
   * Who holds the lock, for how long, and how many callers wait for it, or the state of a semaphore or latch. The
   * result is meant for people and dashboards, because it may be outdated when it arrives.
   *
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for a bad name
   */
  inspect(name: string): Promise<LockInspection> {
    return this.view.inspect(name);
  }

  /**
   * The locks that any process holds, and the semaphores and latches, page by page and in no particular order. A lock
   * that is held all the time is on at least one page.
   *
   * ```ts
   * let cursor: string | undefined;
   * do {
   *   const page = await locks.list({ match: 'order:*', cursor });
   *   for (const { name, owners } of page.locks) console.log(name, owners[0].client?.application);
   *   cursor = page.cursor;
   * } while (cursor !== undefined);
   * ```
   *
   * It scans the keys of the server (of all masters of a cluster) without blocking it. A page can be empty even if it
   * is not the last one.
   *
   * @throws LockConfigurationError for a bad option or cursor, or if the backend cannot list locks (a quorum)
   * @throws LockUnavailableError when the backend does not answer
   */
  list(options?: ListOptions): Promise<LockList> {
    return this.view.list(options);
  }

  /**
   * The processes that use locks on this backend, with any `keyPrefix`. A process is listed once it has held a lock, or
   * waited for one, for a second. A process that was killed is listed for up to 30 more seconds.
   *
   * @throws LockConfigurationError if the backend cannot list clients (a quorum), LockUnavailableError when it does not
   *   answer
   */
  clients(): Promise<readonly LockClient[]> {
    return this.view.clients();
  }

  /** Where the locks are kept, without passwords: `redis 127.0.0.1:6379/0`, and the prefix of their keys. @internal */
  get place(): { readonly backend: string; readonly keyPrefix: string } {
    const { backend, keyPrefix } = this.engine.settings;
    return { backend: backend.description, keyPrefix };
  }

  /**
   * Frees the lock, whoever holds it, and wakes its waiters. This is meant for operators, because the body that held
   * the lock may still be running. A lease of this service is lost immediately. Other processes notice the loss by a
   * message, or at their next renewal.
   *
   * Pass the `owners` that you have seen. Otherwise, whoever holds the lock when the command arrives loses it:
   *
   * ```ts
   * const { owners, fencingToken } = await locks.inspect('order:42');
   * if (owners.some(({ client }) => client?.host === 'web-7'))
   *   await locks.forceRelease('order:42', { owners: owners.map(({ owner }) => owner), fencingToken });
   * ```
   *
   * @returns whether anybody has lost the lock
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for a bad name, LockConfigurationError
   * for a bad option
   */
  async forceRelease(name: string, options?: ForceReleaseOptions): Promise<boolean> {
    return (await this.removeHolders(name, options)).length > 0;
  }

  /** {@link forceRelease} that resolves to the owners that have lost the lock, for logs. @internal */
  async removeHolders(name: string, options?: ForceReleaseOptions): Promise<readonly string[]> {
    return this.engine.inspector.forceRelease(name, expectedHolders(options));
  }

  /**
   * Waits until the backend has answered. With `connect: 'eager'`, the module calls it before the application starts.
   *
   * @throws LockUnavailableError when it does not answer within `commandTimeout`, or cannot be used. The `cause` is the
   * reason
   */
  async connect(): Promise<void> {
    await this.state.ping('connect()');
  }

  /** Settles when the thread of `keepWhileBlocked` is ready. @throws LockConfigurationError @internal */
  started(): Promise<void> {
    return this.engine.started();
  }

  /** Warns if the user of the connection may not acquire locks, before the first caller notices. @internal */
  warnIfDenied(): Promise<void> {
    return this.state.warnIfDenied();
  }

  /**
   * Whether locks can be acquired: the backend answers, grants a lock (it is tried at most every ten seconds, and every second while
   * that fails), and has
   * not just refused one; messages arrive, and renewals are in time. Recent losses and refusals are details. It never
   * rejects. Use it for a readiness check, but not for a liveness check: a restart would end leases that are held.
   */
  health(): Promise<LockServiceHealth> {
    return this.state.check();
  }

  /**
   * Adds a listener for events of the locks of this service. Events `error` and `lost` are logged if they have no
   * listener.
   *
   * @returns a function that removes the listener
   * @throws TypeError when there is no such event
   */
  on<E extends LockEventName>(event: E, listener: (details: LockEvents[E]) => void): () => void {
    return this.engine.on(event, listener);
  }

  /**
   * Starts the clock of the shutdown, which ends after `shutdownTimeout`, and asks leaders to step down. Locks are
   * granted as ever. @internal
   */
  beginShutdown(): void {
    this.engine.beginShutdown();
  }

  /**
   * Waits for those who hold something at this moment, or wait for what this process holds, until the clock of the
   * shutdown ends at most. Nobody is refused. @internal
   */
  settle(): Promise<void> {
    return this.engine.settle();
  }

  /**
   * Lets everything end that was begun, for `shutdownTimeout` at most. Call it when nothing new begins any more. Calls
   * that wait for another process are refused with LockAbortedError. All others get their locks, until nothing is held
   * or waited for. Then every call is refused; the signals of bodies that are still running abort, and their locks end
   * with their leases.
   */
  drain(): Promise<void> {
    return this.engine.drain();
  }

  /** From now on, the connections of this service keep the process alive until {@link close}. @internal */
  keepAlive(): void {
    this.engine.settings.backend.keepAlive?.();
  }

  /** {@link drain}s, then closes the connections that this service has opened. */
  close(): Promise<void> {
    return this.engine.close();
  }
}

const FORCE_OPTIONS: OptionTable<ForceReleaseOptions> = {
  owners: rule(
    'a list of strings, as inspect() shows them',
    (value) => Array.isArray(value) && value.every((owner) => typeof owner === 'string'),
  ),
  fencingToken: wholeNumber(0),
};

/**
 * The holders that a forced release expects, in the form of the backend. Undefined: any holder.
 *
 * @throws LockConfigurationError for a bad option, so that a mistake in `owners` never releases the lock from everybody
 */
function expectedHolders(options: ForceReleaseOptions | undefined): ExpectedHolders | undefined {
  if (options === undefined) return undefined;
  checkOptions(options, FORCE_OPTIONS, 'forceRelease()');
  const { owners, fencingToken: token } = options;
  if (owners === undefined) {
    if (token !== undefined) refuse('fencingToken is compared together with owners: give both');
    return undefined;
  }
  return { owners, token };
}

function refuse(why: string): never {
  throw new LockConfigurationError(`forceRelease(): ${why}`);
}

printsAs(LockService, ({ engine }) => ({
  backend: engine.settings.backend.description,
  clientId: engine.settings.clientId,
}));
