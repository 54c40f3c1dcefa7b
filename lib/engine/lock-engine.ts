import type { ExpectedHolders, LockState } from '../backends/lock-backend.js';
import { isOwnerOf } from '../backends/owner-ids.js';
import type { Activity } from './active-work.js';
import { EngineContext } from './engine-context.js';
import type { LockEventName, LockEvents } from './events/lock-events.js';
import type { HeldLock } from './lease/held-lock.js';
import type { Lease } from './lease/lease.js';
import { announceAcquired, startTime } from './lease/lease-events.js';
import type { LockLease } from './lease/lock-lease.js';
import { LockInspector } from './lock-inspector.js';
import type { Synchronizers } from './permits/semaphores-and-latches.js';
import { lockScopes } from './scope/lock-scope.js';
import { findReentry, reenter } from './scope/reentry.js';
import { holdWhile } from './scope/run-while-held.js';
import { acquireSeveral, LocksOfOneService } from './several/locks-of-one-service.js';
import { assertSupported } from './terms/assert-supported.js';
import type { Milliseconds } from './terms/duration.js';
import type { EngineSettings } from './terms/engine-settings.js';
import { toLockName, toLockNames } from './terms/lock-name.js';
import { type LockNames, quoted, toWanted } from './terms/lock-names.js';
import { type AcquisitionTerms, DEFAULT_TERMS, type LockOptions, type Purpose, toTerms } from './terms/lock-options.js';
import { isTraced, traceAcquisition } from './trace/trace-acquisition.js';
import { nullWhenBusy } from './waiting/null-when-busy.js';
import { abortedError, Waiter } from './waiting/waiter.js';

/** How long a caller waits out an outage, unless it says otherwise. */
const OUTAGE_TIMEOUT = 10_000 as Milliseconds;

export type { EngineSettings } from './terms/engine-settings.js';
export type { LockNames } from './terms/lock-names.js';

/**
 * Acquires, keeps and releases locks for one service, whatever backend keeps them: a local queue for each lock, the
 * backend for its head, a lease for the caller that gets it, the watchdog while it is held, and the release or hand-off
 * at its end. See README.md.
 */
export class LockEngine {
  readonly context: EngineContext;
  readonly inspector: LockInspector;
  private readonly defaults: AcquisitionTerms;

  constructor(readonly settings: EngineSettings) {
    const { watchdogTimeout, waitTime, outageTimeout = OUTAGE_TIMEOUT, onLost, keyPrefix } = settings;
    this.context = new EngineContext(settings);
    this.inspector = new LockInspector(this.context, keyPrefix);
    this.defaults = { ...DEFAULT_TERMS, waitTime, outageTimeout, leaseTime: watchdogTimeout, onLost };
  }

  get synchronizers(): Synchronizers {
    return this.context.synchronizers;
  }

  /** Waits until all names are held. Errors in `names` or `options` reject the promise, too. */
  acquire(names: LockNames, options?: LockOptions, what = 'acquire()'): Promise<LockLease> {
    try {
      if (options === undefined) return this.acquireUnder(names, this.defaults, what);
      const wanted = toWanted(names, what);
      return this.start(wanted, this.resolve(options, this.defaults, `${what} of ${quoted(wanted)}`), what);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** As {@link acquire}, for a caller that can do without the lock: its wait is no part of a deadlock. */
  acquireTentatively(names: LockNames, options: LockOptions, what: string): Promise<LockLease> {
    try {
      const wanted = toWanted(names, what);
      const defaults = { ...this.defaults, tentative: true };
      return this.start(wanted, this.resolve(options, defaults, `${what} of ${quoted(wanted)}`), what);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Locks of this service that are acquired together with those of others: see {@link acquireAllOrNone}.
   *
   * @throws LockError as an acquisition would be rejected with
   */
  several(names: readonly string[], options: LockOptions, tentative: boolean, what: string): LocksOfOneService {
    const wanted = toLockNames(names, what);
    const terms = this.resolve(options, { ...this.defaults, tentative }, `${what} of ${quoted(wanted)}`);
    return new LocksOfOneService(this.context, wanted, terms, what);
  }

  /** As {@link acquire}, under terms that {@link termsOf} has resolved before. */
  acquireUnder(names: LockNames, terms: AcquisitionTerms, what: string): Promise<LockLease> {
    try {
      return this.start(toWanted(names, what), terms, what);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * The terms of acquisitions with these options: checked, and with the defaults filled in.
   *
   * @param purpose what they are for; its `method` is how errors name the call
   * @throws LockConfigurationError naming the option that is wrong
   */
  termsOf(options: LockOptions | undefined, purpose: Purpose): AcquisitionTerms {
    return this.resolve(options ?? {}, { ...this.defaults, ...purpose }, purpose.method);
  }

  /** As {@link acquire}, with a waitTime of 0 unless one is given, and `null` where the lock stays busy. */
  tryAcquire(names: LockNames, options?: LockOptions, what = 'tryAcquire()'): Promise<LockLease | null> {
    const { waitTime = 0, ...others } = options ?? {};
    return nullWhenBusy(this.acquire(names, { ...others, waitTime }, what));
  }

  /** How long a call waits without a waitTime or outageTimeout. */
  get waitDefaults(): Pick<AcquisitionTerms, 'waitTime' | 'outageTimeout'> {
    return this.defaults;
  }

  /** See {@link holdWhile}. */
  holdWhile<T>(lease: LockLease, body: (lease: Lease) => T | Promise<T>, holdAtLeast?: number): Promise<T> {
    return holdWhile(this.context, lease, body, holdAtLeast);
  }

  /** @returns a function that removes the listener */
  on<E extends LockEventName>(event: E, listener: (details: LockEvents[E]) => void): () => void {
    return this.context.events.on(event, listener);
  }

  /** Emits `error`, which is logged when nobody listens for it. */
  report(error: Error): void {
    this.context.events.emit('error', error);
  }

  log(message: string): void {
    this.context.events.logger.log?.(message);
  }

  warn(message: string): void {
    this.context.events.logger.warn(message);
  }

  /** Whether an owner in the backend is one of this service. */
  isMine(owner: string): boolean {
    return isOwnerOf(this.context.clientId, owner);
  }

  /** Whether this service has given the lease. */
  owns(lease: { readonly service: object }): boolean {
    return lease.service === this.context;
  }

  inspect(name: string): Promise<LockState> {
    return this.inspector.inspect(name);
  }

  /**
   * Frees the lock, whoever holds it or from the expected owners alone. A lease of this service is lost at once, those
   * of others when they hear of it.
   *
   * @returns the owners that it was taken from
   */
  forceRelease(name: string, expected?: ExpectedHolders): Promise<readonly string[]> {
    return this.inspector.forceRelease(name, expected);
  }

  /** How many callers of this process wait for this lock. */
  waiting(name: string): number {
    return this.context.work.queues.named(name).reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  /** A lease of this service on this lock. */
  leaseOn(name: string): Lease | undefined {
    return [...this.context.work.leases].find((lease) => lease.names.includes(name));
  }

  /** How much work is in progress, in numbers. */
  activity(): Activity {
    const { queues, leases, several } = this.context.work;
    const own = { queues: queues.size, leases: leases.length, severalLocks: several.size };
    return { ...own, ...this.synchronizers.activity() };
  }

  /**
   * Stops new work, waits up to `shutdownTimeout` for what holds a lock, then aborts the signals of what is left: its
   * locks are neither renewed nor released and lapse with their leases, because the bodies may still run.
   */
  drain(): Promise<void> {
    return this.context.shutdown.drain();
  }

  /**
   * Drains, then closes what the backend opened: all within `shutdownTimeout` and one `commandTimeout`, whatever is
   * under way. Calls that have no answer then are rejected.
   */
  close(): Promise<void> {
    return this.context.shutdown.close();
  }

  /** Shutdown has begun. */
  get isClosing(): boolean {
    return this.context.shutdown.isClosing;
  }

  /** @throws LockKeyError, which begins with `what`, when the name cannot be used */
  keyOf(name: string, what?: string): string {
    return this.context.keyOf(name, what);
  }

  private resolve(options: LockOptions, defaults: AcquisitionTerms, what: string): AcquisitionTerms {
    const terms = toTerms(options, defaults, what);
    assertSupported(this.context.backend, terms.type, what);
    return terms;
  }

  private start(wanted: LockNames, terms: AcquisitionTerms, what: string): Promise<LockLease> {
    if (!isTraced(this.context)) return this.startUntraced(wanted, terms, what);
    const names = [wanted].flat();
    return traceAcquisition(this.context, names, terms, () => this.startUntraced(wanted, terms, what));
  }

  private startUntraced(wanted: LockNames, terms: AcquisitionTerms, what: string): Promise<LockLease> {
    if (typeof wanted === 'string') return acquireOne(this.context, wanted, terms, what);
    if (wanted.length === 1) return acquireOne(this.context, wanted[0], terms, what);
    return acquireSeveral(this.context, wanted, terms, what);
  }
}

/** Acquires one lock: by re-entry where the running flow holds it already, else by waiting in its queue. */
function acquireOne(context: EngineContext, name: string, terms: AcquisitionTerms, what: string): Promise<LockLease> {
  const { queues, outages } = context;
  // The name of a queue was checked when the queue was created.
  const key = queues.get(terms.type, name)?.key ?? context.keyOf(toLockName(name, what), what);
  if (terms.signal?.aborted) throw abortedError({ what: `the lock '${name}'`, name }, terms.signal);
  const hasScope = lockScopes.getStore() !== undefined;
  if (hasScope) {
    const reentry = findReentry(context, key, terms.type);
    const acquireAnew = (terms: AcquisitionTerms) => acquireOne(context, name, terms, what);
    if (reentry !== undefined) return reenter(context, reentry, name, terms, acquireAnew);
  }
  const scoped = context.admit(what, name, hasScope);
  const started = startTime(context);
  return new Promise((resolve, reject) => {
    const granted = (held: HeldLock) => {
      const lease = context.createLease(held.alone, terms);
      announceAcquired(context, lease, started);
      resolve(lease);
    };
    const waiter = new Waiter<HeldLock>(name, context.newOwner, terms, context.runtime, granted, reject);
    waiter.scoped = scoped;
    const refusal = outages.active ? outages.arrived(waiter, [key]) : undefined;
    if (refusal !== undefined) return waiter.refuse(refusal);
    // Where the lock proved to be lost, its queue may have ended with it.
    const queue = context.queueOf(terms.type, name, key);
    queue.enqueue(waiter);
    if (hasScope) context.deadlocks.add(waiter, queue);
  });
}
