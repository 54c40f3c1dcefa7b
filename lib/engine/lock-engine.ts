import type { ExpectedHolders, LockState, LockType } from '../backends/lock-backend.js';
import { acquireOne } from './acquire-one.js';
import type { AcquisitionContext } from './acquisition-context.js';
import { ActiveWork, type Activity } from './active-work.js';
import { StockTaker } from './clients/take-stock.js';
import { createContext } from './create-context.js';
import type { LockEventName, LockEvents } from './events/lock-events.js';
import type { HeldLock } from './lease/held-lock.js';
import type { Lease } from './lease/lease.js';
import { LockLease } from './lease/lock-lease.js';
import type { LockAcquirer } from './lock-acquirer.js';
import { LockInspector } from './lock-inspector.js';
import { Synchronizers } from './permits/synchronizers.js';
import type { AcquisitionQueue } from './queue/acquisition-queue.js';
import { FairQueue } from './queue/fair-queue.js';
import { LockQueue } from './queue/lock-queue.js';
import type { QueueTable } from './queue/queue-table.js';
import { holdWhile } from './scope/hold-while.js';
import { lockScopes } from './scope/lock-scope.js';
import type { EnteredGate } from './scope/share-gate.js';
import { acquireSeveral } from './several/acquire-several.js';
import { Shutdown } from './shutdown.js';
import { assertSupported } from './terms/assert-supported.js';
import type { Milliseconds } from './terms/duration.js';
import { DEFAULT_COMMAND_TIMEOUT, type EngineSettings } from './terms/engine-settings.js';
import { refuseSuspiciousName, toKey } from './terms/lock-name.js';
import { type LockNames, quoted, toWanted } from './terms/lock-names.js';
import { type AcquisitionTerms, DEFAULT_TERMS, type LockOptions, type Purpose, toTerms } from './terms/lock-options.js';
import { isTraced, traceAcquisition } from './trace/trace-acquisition.js';
import { holdEnded } from './trace/trace-hold.js';
import { nullWhenBusy } from './waiting/null-when-busy.js';
import type { WaitingQueue, WaitingQueues } from './waiting/outages.js';

/** How long a caller waits out an outage, unless it says otherwise. */
const OUTAGE_TIMEOUT = 10_000 as Milliseconds;

export type { EngineSettings } from './terms/engine-settings.js';
export type { LockNames } from './terms/lock-names.js';

/**
 * Acquires, keeps and releases locks for one service, whatever backend keeps them: a local queue for each lock, the backend for its head, a
 * lease for the caller that gets it, the watchdog while it is held, and the release or hand-off at its end. See README.md.
 */
export class LockEngine implements LockAcquirer, WaitingQueues {
  readonly context: AcquisitionContext;
  readonly synchronizers: Synchronizers;
  private readonly work = new ActiveWork();
  readonly inspector: LockInspector;
  private readonly shutdown: Shutdown;
  private readonly defaults: AcquisitionTerms;
  private ownerCount = 0;

  constructor(readonly settings: EngineSettings) {
    const { backend, runtime, keyPrefix, watchdogTimeout, waitTime, onLost } = settings;
    const { shutdownTimeout, commandTimeout = DEFAULT_COMMAND_TIMEOUT, outageTimeout = OUTAGE_TIMEOUT } = settings;
    const { context, forcedReleases, stop } = createContext(
      settings,
      (key) => this.inspector.heldLocks(key),
      () => stock.take(runtime.monotonic()),
      this,
    );
    const { work } = this;
    const stock = new StockTaker(work, () => this.synchronizers.permitWatchdog.size);
    this.context = context;
    if (backend.blocking !== undefined) forcedReleases.listen();
    this.defaults = { ...DEFAULT_TERMS, waitTime, outageTimeout, leaseTime: watchdogTimeout, onLost };
    this.inspector = new LockInspector(context, work.queues, forcedReleases, keyPrefix);
    this.synchronizers = new Synchronizers(context, this, watchdogTimeout, () => work.changed());
    const { synchronizers } = this;
    const parts = { context, work, synchronizers, backend, runtime, logger: context.events.logger };
    this.shutdown = new Shutdown({ ...parts, stop, shutdownTimeout, commandTimeout });
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

  /** How long a call waits that does not say so itself. */
  get waitDefaults(): Pick<AcquisitionTerms, 'waitTime' | 'outageTimeout'> {
    return this.defaults;
  }

  /** See {@link holdWhile}. */
  holdWhile<T>(lease: LockLease, body: (lease: Lease) => T | Promise<T>, holdAtLeast?: number): Promise<T> {
    return holdWhile(this.context, this.work, lease, body, holdAtLeast);
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
    return owner.startsWith(`${this.context.clientId}:`);
  }

  /** Whether this service has given the lease. */
  owns(lease: { readonly service: object }): boolean {
    return lease.service === this.context;
  }

  inspect(name: string): Promise<LockState> {
    return this.inspector.inspect(name);
  }

  /**
   * Frees the lock, whoever holds it or from the expected owners alone. A lease of this service is lost at once, those of others when they hear
   * of it.
   *
   * @returns the owners that it was taken from
   */
  forceRelease(name: string, expected?: ExpectedHolders): Promise<readonly string[]> {
    return this.inspector.forceRelease(name, expected);
  }

  /** How many callers of this process wait for this lock. */
  waiting(name: string): number {
    return this.work.queues.named(name).reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  /** A lease of this service on this lock. */
  leaseOn(name: string): Lease | undefined {
    return [...this.work.leases].find((lease) => lease.names.includes(name));
  }

  /** What the service has in hand, in numbers. */
  activity(): Activity {
    const { queues, leases, several } = this.work;
    const own = { queues: queues.size, leases: leases.length, severalLocks: several.size };
    return { ...own, ...this.synchronizers.activity() };
  }

  /**
   * Stops new work, waits up to `shutdownTimeout` for what holds a lock, then aborts the signals of what is left: its locks are neither
   * renewed nor released and lapse with their leases, because the bodies may still run.
   */
  drain(): Promise<void> {
    return this.shutdown.drain();
  }

  /**
   * Drains, then closes what the backend opened: all within `shutdownTimeout` and one `commandTimeout`, whatever is under way. Calls that
   * have no answer then are rejected.
   */
  close(): Promise<void> {
    return this.shutdown.close();
  }

  /** Shutdown has begun. */
  get isClosing(): boolean {
    return this.shutdown.isClosing;
  }

  // ── For outages: see WaitingQueues ───────────────────────────────────────────────────────────────────────────────────

  get isEmpty(): boolean {
    return this.work.hasNoQueues && this.synchronizers.hasNoQueues;
  }

  forEach(show: (queue: WaitingQueue) => void): void {
    const { queues, several } = this.work;
    // Several names first: their waits for single ones, which are in queues as well, end with them.
    for (const caller of [...several]) show(caller);
    for (const queue of queues.values()) if (queue.waiting.length > 0) show(queue);
    this.synchronizers.forEachQueue(show);
  }

  // ── For the parts of an acquisition: see LockAcquirer ────────────────────────────────────────────────────────────────

  keyOf(name: string, what = 'The lock'): string {
    const { keyPrefix, allowSuspiciousNames } = this.settings;
    if (!allowSuspiciousNames) refuseSuspiciousName(name, what);
    return toKey(keyPrefix, name, what);
  }

  readonly newOwner = (): string => `${this.context.clientId}:${++this.ownerCount}`;

  admit(what: string, name: string, hasScope = lockScopes.getStore() !== undefined): boolean {
    return this.shutdown.admit(what, name, hasScope);
  }

  get queues(): QueueTable {
    return this.work.queues;
  }

  newQueue(type: LockType, name: string, key: string): AcquisitionQueue {
    const queue =
      type === 'fair'
        ? new FairQueue(this.context, name, key, this.queueEnded)
        : new LockQueue(this.context, name, key, type, this.queueEnded);
    this.work.queues.add(queue);
    return queue;
  }

  createLease(
    locks: readonly HeldLock[],
    terms: AcquisitionTerms,
    gates: readonly EnteredGate[] = NO_GATES,
  ): LockLease {
    const lease = new LockLease(this.context, locks, terms, gates, this.leaseEnded);
    this.work.leases.push(lease);
    return lease;
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
    if (typeof wanted === 'string') return acquireOne(this, wanted, terms, what);
    if (wanted.length === 1) return acquireOne(this, wanted[0], terms, what);
    return acquireSeveral(this, wanted, terms, what, (caller) => {
      const ended = this.work.trackSeveral(caller);
      return () => {
        ended();
        this.context.outages.left();
      };
    });
  }

  private readonly queueEnded = (queue: AcquisitionQueue): void => {
    this.work.queues.remove(queue);
    this.context.outages.left();
    this.work.changed();
  };

  private readonly leaseEnded = (lease: LockLease, isLost: boolean): void => {
    holdEnded(lease, isLost);
    this.work.leases.remove(lease);
    this.work.changed();
  };
}

const NO_GATES: readonly EnteredGate[] = [];
