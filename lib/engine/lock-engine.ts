import { isOwnerOf } from '../backends/owner-ids.js';
import type { Activity } from './active-work.js';
import { adoptLock } from './adopt-lock.js';
import { holdWhile } from './body/hold-while.js';
import { readTicket } from './detached/lease-ticket.js';
import { callSite } from './events/call-site.js';
import { announceAcquired, startTime } from './events/lease-events.js';
import type { LockEventName, LockEvents } from './events/lock-events.js';
import { type FlightOptions, type FlightTerms, toFlightTerms } from './flights/flight-terms.js';
import type { FlightSerializer } from './flights/serialize-result.js';
import { singleFlight } from './flights/single-flight.js';
import type { HeldLock } from './hold/held-lock.js';
import { Candidate, checkLeadOptions, standByTerms } from './leadership/candidate.js';
import type { Leadership, LeadOptions } from './leadership/leadership.js';
import type { LockLease } from './lease/lock-lease.js';
import { LockInspector } from './lock-inspector.js';
import { LockTable } from './lock-table.js';
import { admitCaller, beginWait } from './queue/begin-wait.js';
import { kindOf } from './queue/ways-of-asking.js';
import { findReentry, reenter } from './reentry/reentry.js';
import { lockScopes } from './scope/lock-scope.js';
import { type EngineSettings, Services } from './services.js';
import { acquireSeveral, LocksOfOneService } from './several/locks-of-one-service.js';
import { Shutdown } from './shutdown.js';
import { Synchronizers } from './synchronizers/synchronizers.js';
import {
  assertDetachable,
  assertFlights,
  assertForSeveral,
  assertMayNotConfirm,
  assertNewest,
  assertSupported,
} from './terms/assert-supported.js';
import { toWaitTime } from './terms/duration.js';
import { escapedNames } from './terms/escaped-names.js';
import type { Lease } from './terms/lease.js';
import { type LockNames, quoted, toLockName, toLockNames, toWanted } from './terms/lock-name.js';
import {
  type AcquisitionTerms,
  type AdoptOptions,
  DEFAULT_TERMS,
  type LockOptions,
  type Purpose,
  type RunOptions,
  toAdoptTerms,
  toRunTerms,
  toTerms,
} from './terms/lock-options.js';
import { isTraced, traceAcquisition } from './trace/trace-acquisition.js';
import { nullWhenBusy } from './wait/null-when-busy.js';
import { shutdownError } from './wait/wait-errors.js';
import { Waiter } from './wait/waiter.js';

/**
 * Acquires, keeps and releases locks for one service on any backend. Each lock has a local queue whose head asks the
 * backend. The caller that gets the lock receives a lease, which the watchdog renews until the lock is released or
 * handed off. See README.md.
 */
export class LockEngine {
  readonly services: Services;
  readonly synchronizers: Synchronizers;
  readonly inspector: LockInspector;
  private readonly table: LockTable;
  private readonly shutdown: Shutdown;
  private readonly defaults: AcquisitionTerms;
  /** For leases without a body, whose release is always confirmed. */
  private readonly leaseDefaults: AcquisitionTerms;
  private readonly tryDefaults: AcquisitionTerms;
  private hasWarnedOfTwoNames = false;

  constructor(readonly settings: EngineSettings) {
    const { waitTime, outageTimeout, keyPrefix, onLost = 'throw', release } = settings;
    const { watchdogTimeout, shutdownTimeout, commandTimeout } = settings;
    const services = new Services(settings);
    this.services = services;
    this.table = new LockTable(services);
    this.synchronizers = new Synchronizers(services, watchdogTimeout);
    this.shutdown = new Shutdown(services, this.synchronizers, shutdownTimeout, commandTimeout);
    this.inspector = new LockInspector(services, keyPrefix);
    this.defaults = { ...DEFAULT_TERMS, waitTime, outageTimeout, leaseTime: watchdogTimeout, onLost, release };
    this.leaseDefaults = { ...this.defaults, release: 'confirmed' };
    this.tryDefaults = { ...this.leaseDefaults, waitTime: toWaitTime(0, 'waitTime'), dropsBusy: true };
  }

  /** Waits until all names are held. Errors in `names` or `options` also reject the promise. */
  acquire(names: LockNames, options?: LockOptions, what = 'acquire()'): Promise<LockLease> {
    return this.acquireWith(names, options, this.leaseDefaults, what, toTerms);
  }

  /** Like {@link acquire}, for {@link holdWhile}, which releases the lease as the option `release` says. */
  acquireToRun(names: LockNames, options: RunOptions | undefined, what: string): Promise<LockLease> {
    return this.acquireWith(names, options, this.defaults, what, toRunTerms);
  }

  /** Like {@link acquire}, for a caller that can do without the lock, so its wait is never part of a deadlock. */
  acquireTentatively(names: LockNames, options: LockOptions, what: string): Promise<LockLease> {
    try {
      const wanted = toWanted(names, what);
      const defaults = { ...this.leaseDefaults, tentative: true };
      return this.start(wanted, this.resolve(options, defaults, `${what} of ${quoted(wanted)}`), what);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * The locks of this service in an acquisition that spans several services: see {@link acquireAllOrNone}.
   *
   * @throws LockError, the same errors that reject an acquisition
   */
  several(names: readonly string[], options: LockOptions, tentative: boolean, what: string): LocksOfOneService {
    const wanted = toLockNames(names, what);
    this.checkTwoNames(wanted, what);
    const terms = this.resolve(options, { ...this.leaseDefaults, tentative }, `${what} of ${quoted(wanted)}`);
    return new LocksOfOneService(this.table, wanted, terms, what);
  }

  /** Like {@link acquire}, with terms from {@link termsOf}. */
  acquireUnder(names: LockNames, terms: AcquisitionTerms, what: string): Promise<LockLease> {
    try {
      return this.start(toWanted(names, what), terms, what);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Publishes that a call was refused before it had a name. @throws the error */
  refuse(error: Error, terms: AcquisitionTerms): Promise<never> {
    const { services } = this;
    const refused = (): Promise<never> => Promise.reject(error);
    return isTraced(services) ? traceAcquisition<never>(services, [], terms, refused) : refused();
  }

  /**
   * Checks the options of acquisitions and fills in the defaults.
   *
   * @param purpose what the acquisitions are for; errors name the call by its `method`
   * @throws LockConfigurationError naming the invalid option
   */
  termsOf(options: RunOptions | undefined, purpose: Purpose): AcquisitionTerms {
    return this.resolve(options ?? {}, { ...this.defaults, ...purpose }, purpose.method, toRunTerms);
  }

  /** Like {@link acquire}, but with a default waitTime of 0, and `null` when the lock stays busy. */
  tryAcquire(names: LockNames, options?: LockOptions, what = 'tryAcquire()'): Promise<LockLease | null> {
    return nullWhenBusy(this.acquireWith(names, options, this.tryDefaults, what, toTerms));
  }

  /** See `LockService.singleFlight`. */
  singleFlight(
    name: string,
    terms: FlightTerms,
    body: (lease: Lease) => unknown,
    what = 'singleFlight()',
  ): Promise<unknown> {
    const { starting } = this.services;
    if (starting !== undefined) return starting.then(() => this.singleFlight(name, terms, body, what));
    this.checkTwoNames(name, what);
    return singleFlight(this.table, name, terms, what, body);
  }

  /**
   * Checks the options of single flights and fills in the defaults.
   *
   * @throws LockConfigurationError naming the invalid option, or when the backend has no single flights
   */
  flightTermsOf(
    options: (FlightOptions & Partial<FlightSerializer<unknown>>) | undefined,
    purpose: Partial<Purpose>,
    what: string,
  ): FlightTerms {
    assertFlights(this.services.backend, what);
    const defaults = { ...this.defaults, ...purpose, type: 'flight', release: 'confirmed' } as const;
    return toFlightTerms(options, what, (others) => toTerms(others, defaults, what));
  }

  /** See `LockService.forgetResult`. */
  async forgetResult(name: string): Promise<boolean> {
    assertFlights(this.services.backend, 'forgetResult()');
    this.checkTwoNames(name, 'forgetResult()');
    return this.inspector.forgetResult(name);
  }

  /**
   * Takes over a lock that another lease has detached.
   *
   * @param ticket what `Lease.detach` returned. Anything else rejects the promise, too
   */
  adopt(ticket: string, options: AdoptOptions = {}, what = 'adopt()'): Promise<LockLease> {
    const { services } = this;
    const { starting } = services;
    if (starting !== undefined) return starting.then(() => this.adopt(ticket, options, what));
    try {
      assertDetachable(services.backend, what);
      const read = readTicket(ticket, this.settings.keyPrefix);
      const name = toLockName(read.key.slice(this.settings.keyPrefix.length), what);
      services.keyOf(name, what);
      const terms = { ...toAdoptTerms(options, this.defaults, `${what} of '${name}'`), type: read.type };
      const adopt = () => adoptLock(this.table, name, read, terms, what);
      return isTraced(services) ? traceAcquisition(services, [name], terms, adopt) : adopt();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Stands for election until it is stopped.
   *
   * @param method `Class.method` of a decorated method
   * @throws LockKeyError, LockConfigurationError, LockAbortedError when shutdown has begun
   */
  lead(name: string, options: LeadOptions, what = 'lead()', method = ''): Leadership {
    const { services } = this;
    toLockName(name, what);
    services.keyOf(name, what);
    checkLeadOptions(options, what);
    const { group } = options;
    const terms = standByTerms(this.termsOf({ group }, { group: '', method, skips: false }));
    if (services.admission.isEnding) throw shutdownError(what, name);
    const acquire = (signal: AbortSignal) => this.acquireUnder(name, { ...terms, signal }, what);
    const candidate = new Candidate(services, name, options, acquire, this.settings.shutdownTimeout, method);
    candidate.start();
    return candidate;
  }

  /** Settles when everything is ready that was started. @throws LockConfigurationError with the reason why it is not */
  started(): Promise<void> {
    return this.services.starting ?? Promise.resolve();
  }

  /** How long a call waits by default. */
  get waitDefaults(): Pick<AcquisitionTerms, 'waitTime' | 'outageTimeout'> {
    return this.defaults;
  }

  /** What happens by default if a body succeeds although what it held was lost. */
  get onLost(): 'throw' | 'warn' {
    return this.defaults.onLost;
  }

  /** See {@link holdWhile}. */
  holdWhile<T>(lease: LockLease, body: (lease: Lease) => T | Promise<T>, holdAtLeast?: number): Promise<T> {
    return holdWhile(this.services, lease, body, holdAtLeast);
  }

  /** @returns a function that removes the listener */
  on<E extends LockEventName>(event: E, listener: (details: LockEvents[E]) => void): () => void {
    return this.services.events.on(event, listener);
  }

  /** See {@link EventHub.observe}. */
  observe<E extends LockEventName>(event: E, listener: (details: LockEvents[E]) => void): () => void {
    return this.services.events.observe(event, listener);
  }

  /** Emits `error`, which is logged when nobody listens. */
  report(error: Error): void {
    this.services.events.emit('error', error);
  }

  log(message: string): void {
    this.services.events.logger.log?.(message);
  }

  warn(message: string): void {
    this.services.events.logger.warn(message);
  }

  /** Whether an owner in the backend belongs to this service. */
  isMine(owner: string): boolean {
    return isOwnerOf(this.services.clientId, owner);
  }

  /** Whether the lease belongs to this service. */
  owns(lease: { readonly service: object }): boolean {
    return lease.service === this.services;
  }

  /** How many callers of this process wait for this lock. */
  waiting(name: string): number {
    return this.services.work.queues.named(name).reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  /** The unfinished work of the service, in numbers. */
  activity(): Activity {
    const { queues, leases, several } = this.services.work;
    const own = { queues: queues.size, leases: leases.length, severalLocks: several.size };
    return { ...own, ...this.synchronizers.activity() };
  }

  /** Starts the clock of the shutdown, and lets leaders step down. Locks are granted as ever. */
  beginShutdown(): void {
    this.shutdown.begin();
  }

  /** Waits for those who hold something at this moment, or wait for what this process holds. Refuses nobody. */
  settle(): Promise<void> {
    return this.shutdown.settle();
  }

  /**
   * Waits, until `shutdownTimeout` after {@link beginShutdown} at most, for what is held, asked for or waited for. Only
   * callers that wait for another process are refused at once. Then everybody is refused, and the signals of the
   * remaining leases abort. Their locks are neither renewed nor released, because the bodies may still be running. They
   * lapse when their leases end.
   */
  drain(): Promise<void> {
    return this.shutdown.drain();
  }

  /**
   * Drains, then closes what the backend opened. This takes at most `shutdownTimeout` plus one `commandTimeout`. Calls
   * that are unanswered by then are rejected.
   */
  close(): Promise<void> {
    return this.shutdown.close();
  }

  /** Whether shutdown has begun. */
  get isEnding(): boolean {
    return this.services.admission.isEnding;
  }

  /** @throws LockKeyError, with a message that begins with `what`, when the name is invalid */
  keyOf(name: string, what?: string): string {
    return this.services.keyOf(name, what);
  }

  private acquireWith(
    names: LockNames,
    options: RunOptions | undefined,
    defaults: AcquisitionTerms,
    what: string,
    check: typeof toTerms,
  ): Promise<LockLease> {
    try {
      const wanted = toWanted(names, what);
      if (options === undefined) return this.start(wanted, defaults, what);
      return this.start(wanted, this.resolve(options, defaults, `${what} of ${quoted(wanted)}`, check), what);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Warns once if a name is plain, and a template has made another name of the same parts. */
  private checkTwoNames(names: LockNames, what: string): void {
    if (!this.hasWarnedOfTwoNames && !escapedNames.isEmpty) this.warnOfTwoNames(names, what);
  }

  private warnOfTwoNames(names: LockNames, what: string): void {
    for (const plain of [names].flat()) {
      const escaped = escapedNames.get(plain);
      if (escaped === undefined) continue;
      this.hasWarnedOfTwoNames = true;
      const site = callSite();
      this.services.events.warnOnce(
        'two names for one thing',
        `${what} of '${plain}'${site === undefined ? '' : `, called at ${site},`} and ${escaped.where}, which makes '${escaped.name}' of the same value, use two locks, which do not exclude each other: templates and lockName escape '%', ':', braces and control characters in what they fill in. Write lockName\`…\` instead of a plain string. This is logged once`,
      );
    }
  }

  private resolve(
    options: RunOptions,
    defaults: AcquisitionTerms,
    what: string,
    check: typeof toTerms = toTerms,
  ): AcquisitionTerms {
    const { backend } = this.services;
    const terms = check(options, defaults, what);
    assertSupported(backend, terms.type, what);
    if (terms.newest) assertNewest(backend, what);
    if (terms.release === 'background')
      assertMayNotConfirm(backend.confirmsReleases, options.onLost ?? this.settings.onLost, what);
    return terms;
  }

  private start(wanted: LockNames, terms: AcquisitionTerms, what: string): Promise<LockLease> {
    const { starting } = this.services;
    if (starting !== undefined) return this.startAfter(starting, wanted, terms, what);
    this.checkTwoNames(wanted, what);
    return isTraced(this.services) ? this.startTraced(wanted, terms, what) : this.startUntraced(wanted, terms, what);
  }

  // A function that creates another one allocates its arguments, so the path that is always taken does not.

  private async startAfter(
    starting: Promise<void>,
    wanted: LockNames,
    terms: AcquisitionTerms,
    what: string,
  ): Promise<LockLease> {
    await starting;
    return this.start(wanted, terms, what);
  }

  private startTraced(wanted: LockNames, terms: AcquisitionTerms, what: string): Promise<LockLease> {
    const names = [wanted].flat();
    return traceAcquisition(this.services, names, terms, () => this.startUntraced(wanted, terms, what));
  }

  private startUntraced(wanted: LockNames, terms: AcquisitionTerms, what: string): Promise<LockLease> {
    if (typeof wanted === 'string') return acquireOne(this.table, wanted, terms, what);
    if (wanted.length === 1) return acquireOne(this.table, wanted[0], terms, what);
    assertForSeveral(terms, `${what} of ${quoted(wanted)}`);
    return acquireSeveral(this.table, wanted, terms, what);
  }
}

/** Acquires one lock: by re-entry if the running flow holds it already, otherwise by waiting in its queue. */
function acquireOne(table: LockTable, name: string, terms: AcquisitionTerms, what: string): Promise<LockLease> {
  const { services } = table;
  const kind = kindOf(terms);
  const known = table.find(kind, name);
  // The name of a queue was checked when the queue was created.
  const key = known?.key ?? services.keyOf(toLockName(name, what), what);
  const hasScope = lockScopes.getStore() !== undefined;
  if (hasScope) {
    const reentry = findReentry(services, key, terms);
    const acquireAgain = (terms: AcquisitionTerms) => acquireOne(table, name, terms, what);
    if (reentry !== undefined) return reenter(table, reentry, name, terms, acquireAgain);
  }
  const started = startTime(services);
  return new Promise((resolve, reject) => {
    const granted = (held: HeldLock) => {
      const lease = table.serve(waiter, held);
      announceAcquired(services, lease, started);
      resolve(lease);
    };
    const waiter = new Waiter<HeldLock>(name, services.newOwner, terms, services.runtime, granted, reject);
    if (!admitCaller(services, waiter, what, key, hasScope)) return;
    // The queue of a flow's own lock has ended if that lock proved to be lost meanwhile.
    const queue = hasScope ? undefined : known;
    beginWait(services, queue ?? table.queueOf(kind, name, key), waiter, hasScope);
  });
}
