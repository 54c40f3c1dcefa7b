import {
  type BackendError,
  type LockBackend,
  type LockState,
  type LockType,
  withReason,
} from '../backends/lock-backend.js';
import type { Runtime, Timer } from '../backends/runtime.js';
import type { AcquisitionContext } from './acquisition-context.js';
import { LinkedQueue } from './collections/linked-queue.js';
import { FOREVER, type Milliseconds } from './duration.js';
import { LockAbortedError, LockBusyError, LockKeyError, LockUnavailableError } from './errors.js';
import { EventHub, type LockLogger } from './events.js';
import { BackgroundReleases } from './lease/background-releases.js';
import { ForcedReleases } from './lease/forced-releases.js';
import type { HeldLock } from './lease/held-lock.js';
import type { Lease } from './lease/lease.js';
import { LeaseClock } from './lease/lease-clock.js';
import { LockLease } from './lease/lock-lease.js';
import { Watchdog } from './lease/watchdog.js';
import { MAX_KEY_BYTES, toLockName, toLockNames } from './lock-name.js';
import { type AcquisitionTerms, type LockOptions, toTerms } from './lock-options.js';
import { Synchronizers } from './permits/synchronizers.js';
import type { AcquisitionQueue, QueueKeeper } from './queue/acquisition-queue.js';
import { FairQueue } from './queue/fair-queue.js';
import { LockQueue } from './queue/lock-queue.js';
import { QueueTable } from './queue/queue-table.js';
import { RateLimitedLogger } from './rate-limited-logger.js';
import { findReentry, inScopeOf, LockScope, lockScopes } from './scope/lock-scope.js';
import { reenter } from './scope/reentry.js';
import type { EnteredGate } from './scope/share-gate.js';
import { acquireSeveral } from './several/acquire-several.js';
import { shutdownError } from './waiting/wait-errors.js';
import { Waiter } from './waiting/waiter.js';

/** How an engine is set up; every value is checked already. */
export interface EngineSettings {
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly logger: LockLogger;
  readonly clientId: string;
  readonly keyPrefix: string;
  readonly watchdogTimeout: Milliseconds;
  readonly fairWaitTimeout: Milliseconds;
  readonly waitTime: Milliseconds;
  readonly shutdownTimeout: Milliseconds;
  /** Within which the backend answers, or rejects. Default 2 s. */
  readonly commandTimeout?: Milliseconds;
  readonly onLost: 'throw' | 'warn';
}

/** Of a backend that does not say otherwise. */
const COMMAND_TIMEOUT = 2_000;
/** How much of the last commandTimeout is kept for closing connections, at the most. */
const LONGEST_CLOSE = 500;

/** What an engine has in hand at one moment, in numbers. All are 0 when it is idle. */
export interface EngineActivity {
  /** Locks that are held, acquired or waited for. */
  readonly queues: number;
  /** Leases that were not released yet, nor lost. */
  readonly leases: number;
  /** Callers that want several locks at once and have not got them yet. */
  readonly severalLocks: number;
  /** Semaphores and latches that callers wait for. */
  readonly permitQueues: number;
  /** Semaphores and latches that are being changed. */
  readonly mutations: number;
  /** Permits that are renewed. */
  readonly keptPermits: number;
}

/** One name, or several that are taken all or none. */
export type LockNames = string | readonly string[];

/**
 * Acquires, keeps and releases locks for one service, whatever backend keeps them: a local queue per lock, the backend for its
 * head, a lease for who gets it, the watchdog while it is held, the release or hand-off at its end.
 */
export class LockEngine implements QueueKeeper {
  readonly context: AcquisitionContext;
  readonly synchronizers: Synchronizers;
  /** Leases that were not released yet. */
  readonly leases = new LinkedQueue<LockLease>();
  private readonly queues = new QueueTable();
  /** For what has no options of its own and waits for as long as it takes. */
  readonly patient: AcquisitionTerms;
  private readonly defaults: AcquisitionTerms;
  private ownerCount = 0;
  private closing = false;
  /** Shutdown has stopped waiting: bodies that still run get no more locks either. */
  private cutOff = false;
  /** When shutdown stops waiting for bodies. */
  private drainUntil = 0;
  private drained: Promise<void> | undefined;
  private closed: Promise<void> | undefined;
  /** Called whenever something has come to its end; shutdown waits for that. */
  settled: () => void = () => {};
  /** Callers that want several locks at once and have not got them yet. */
  readonly several = new Set<Waiter<LockLease>>();
  private bodies = 0;

  constructor(readonly settings: EngineSettings) {
    const { backend, runtime, logger, clientId, watchdogTimeout: leaseTime, waitTime, onLost } = settings;
    const clock = new LeaseClock(runtime);
    const events = new EventHub(runtime, new RateLimitedLogger(logger, runtime));
    const watchdog = new Watchdog(backend, runtime, clock, events, leaseTime);
    const backgroundReleases = new BackgroundReleases(backend, runtime);
    const forced = new ForcedReleases(backend, runtime, clientId, (key) => this.heldUnder(key));
    const fairWaitTimeout = settings.fairWaitTimeout;
    this.context = {
      queues: this,
      backend,
      runtime,
      clock,
      events,
      watchdog,
      backgroundReleases,
      forced,
      pendingAcquisitions: forced.pendingAcquisitions,
      clientId,
      fairWaitTimeout,
      preferWriters: true,
    };
    this.defaults = { type: 'reentrant', waitTime, leaseTime, fixed: false, signal: undefined, onLost };
    this.patient = { ...this.defaults, waitTime: FOREVER };
    const host = {
      watchdogTimeout: leaseTime,
      keyOf: (name: string) => this.keyOf(name),
      admit: (what: string, name: string) => this.admit(what, name),
    };
    this.synchronizers = new Synchronizers(this.context, host, () => this.settled());
  }

  /** Waits until all names are held. What is wrong with `names` or `options` comes as a rejection too. */
  acquire(names: LockNames, options?: LockOptions, what = 'acquire()'): Promise<LockLease> {
    try {
      if (typeof names === 'string') {
        const terms =
          options === undefined ? this.defaults : toTerms(options, this.defaults, `${what} of ${quoted([names])}`);
        return this.acquireOne(names, terms, what);
      }
      const list = Array.isArray(names) ? toLockNames(names, what) : [toLockName(names, what)];
      const terms = toTerms(options ?? {}, this.defaults, `${what} of ${quoted(list)}`);
      return list.length === 1 ? this.acquireOne(list[0], terms, what) : acquireSeveral(this, list, terms, what);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** As {@link acquire}, with a waitTime of 0 unless one is given, and `null` where the lock stays busy. */
  async tryAcquire(names: LockNames, options?: LockOptions, what = 'tryAcquire()'): Promise<LockLease | null> {
    const { waitTime = 0, ...others } = options ?? {};
    try {
      return await this.acquire(names, { ...others, waitTime }, what);
    } catch (error) {
      if (error instanceof LockBusyError) return null;
      throw error;
    }
  }

  /**
   * Runs `body` in a scope of `lease`, then releases it. The body's error goes out whatever the release did; when the body ended
   * well but the lease was lost meanwhile, LockLostError does (unless `onLost: 'warn'`).
   *
   * @param holdAtLeast keep the lock for so long from the call of this method on, also when the body ends earlier
   */
  async holdWhile<T>(lease: LockLease, body: (lease: Lease) => T | Promise<T>, holdAtLeast = 0): Promise<T> {
    const scope = new LockScope(lease, lockScopes.getStore());
    const began = holdAtLeast > 0 ? this.context.runtime.monotonic() : 0;
    let result: T;
    this.bodies++;
    try {
      result = await lockScopes.run(scope, body, lease);
    } catch (error) {
      scope.end();
      await this.finish(lease, began, holdAtLeast).catch(() => {});
      throw error;
    }
    scope.end();
    await this.finish(lease, began, holdAtLeast);
    return result;
  }

  async inspect(name: string): Promise<LockState> {
    return this.ask(name, (key) => this.context.backend.inspect(key));
  }

  /** Frees the lock whoever holds it. A lease of this service is lost at once, those of others when they hear of it. */
  async forceRelease(name: string): Promise<boolean> {
    const owners = await this.ask(name, (key) => this.context.backend.forceRelease(key));
    this.context.forced.removed({ key: this.keyOf(name), owners });
    for (const queue of this.queues.named(name)) queue.removed(owners);
    return owners.length > 0;
  }

  /** Callers of this process that wait for this lock. */
  waiting(name: string): number {
    return this.queues.named(name).reduce((sum, { length }) => sum + length, 0);
  }

  /** What is held, waited for and under way in this process. */
  activity(): EngineActivity {
    const { queues, leases, several, synchronizers } = this;
    return {
      queues: queues.size,
      leases: leases.length,
      severalLocks: several.size,
      ...synchronizers.activity(),
    };
  }

  /** Ends by itself what a caller asks of the backend outside an acquisition, with the errors of this library. */
  async ask<T>(name: string, question: (key: string) => Promise<T>): Promise<T> {
    const key = this.keyOf(toLockName(name, 'The lock'));
    try {
      return await question(key);
    } catch (error) {
      const cause = withReason(this.context.backend, error as BackendError);
      if (cause.kind === 'key')
        throw new LockKeyError(`The lock '${name}' cannot be used: ${cause.message}`, name, { cause });
      throw new LockUnavailableError(`The backend gave no answer about the lock '${name}': ${cause.message}`, name, {
        cause,
      });
    }
  }

  /**
   * Stops new work, waits up to `shutdownTimeout` for what holds a lock, then aborts the signals of what is left: its locks are
   * neither renewed nor released and lapse with their leases, because the bodies may still run.
   */
  drain(): Promise<void> {
    this.drained ??= this.letBodiesEnd().then(() => this.cutOffTheRest());
    return this.drained;
  }

  /**
   * Drains, then closes what the backend opened: all within `shutdownTimeout` and one `commandTimeout`, whatever is under way. What
   * has no answer then is rejected.
   */
  close(): Promise<void> {
    this.closed ??= this.drain().then(() => this.end());
    return this.closed;
  }

  // ── For the parts of an acquisition ──────────────────────────────────────────────────────────────────────────────────

  /** @throws LockKeyError, which begins with `what`, when the prefix makes a name too long */
  keyOf(name: string, what = 'The lock'): string {
    const key = this.settings.keyPrefix + name;
    if (key.length * 3 > MAX_KEY_BYTES && Buffer.byteLength(key) > MAX_KEY_BYTES) toLockName(key, what);
    return key;
  }

  readonly newOwner = (): string => `${this.context.clientId}:${++this.ownerCount}`;

  queue(type: LockType, name: string, key: string): AcquisitionQueue {
    return this.queues.get(type, name) ?? this.newQueue(type, name, key);
  }

  retire(queue: AcquisitionQueue): void {
    this.queues.remove(queue);
    this.settled();
  }

  /** @param gates what each share has entered, where it is re-entry */
  lease(locks: readonly HeldLock[], terms: AcquisitionTerms, gates: readonly EnteredGate[] = NO_GATES): LockLease {
    const lease = new LockLease(this, locks, terms.onLost, gates);
    this.leases.push(lease);
    this.context.forced.listen();
    return lease;
  }

  /** A lease has ended, or was lost. */
  leaseEnded(lease: LockLease): void {
    this.leases.remove(lease);
    this.settled();
  }

  /**
   * Whether the caller runs in a live scope of this service: it may acquire what it needs to end, also during shutdown.
   *
   * @throws LockAbortedError for any other caller once shutdown has begun
   */
  admit(what: string, name: string): boolean {
    const scoped = lockScopes.getStore() !== undefined && inScopeOf(this);
    if (this.closing && (!scoped || this.cutOff)) throw shutdownError(what, name);
    return scoped;
  }

  /** The present moment, if anybody is to be told how long an acquisition took. */
  began(): number | undefined {
    return this.context.events.hears('acquired') ? this.context.runtime.monotonic() : undefined;
  }

  announce(lease: LockLease, began: number | undefined): void {
    const { events, runtime } = this.context;
    if (!events.hears('acquired')) return;
    const waited = began === undefined ? 0 : runtime.monotonic() - began;
    for (const { name, owner, token, shares } of lease.locks)
      if (shares.length === 1) events.emit('acquired', { name, owner, fencingToken: token, waited });
  }

  private async end(): Promise<void> {
    const { runtime, watchdog, backgroundReleases, forced, backend } = this.context;
    const { commandTimeout = COMMAND_TIMEOUT } = this.settings;
    const end = Math.max(this.drainUntil, runtime.monotonic()) + commandTimeout;
    const patience = end - Math.min(LONGEST_CLOSE, commandTimeout / 4) - runtime.monotonic();
    await this.atMost(patience, Promise.all([this.whatIsUnderWay(patience), this.synchronizers.close()]));
    this.synchronizers.abandon();
    watchdog.close();
    backgroundReleases.close();
    forced.close();
    await this.atMost(end - runtime.monotonic(), backend.close());
  }

  private async atMost(time: number, work: Promise<unknown>): Promise<void> {
    let timer: Timer | undefined;
    const over = new Promise<void>((resolve) => {
      timer = this.context.runtime.timer(Math.max(0, time), resolve, 'keep-alive');
    });
    await Promise.race([work, over]).finally(() => timer?.cancel());
  }

  private async letBodiesEnd(): Promise<void> {
    this.closing = true;
    const { shutdownTimeout } = this.settings;
    this.drainUntil = this.context.runtime.monotonic() + shutdownTimeout;
    this.expel(({ scoped }) => !scoped);
    this.synchronizers.rejectWaiters();
    await this.until(() => this.idle, shutdownTimeout);
  }

  /** Acquisitions whose callers are gone give back what they get: that must not find the backend closed. */
  private whatIsUnderWay(patience: number): Promise<void> {
    return this.until(() => this.queues.size === 0 && this.several.size === 0, patience);
  }

  /** Waits for a condition that {@link settled} looks at, so many milliseconds at most. */
  private async until(condition: () => boolean, patience: number): Promise<void> {
    if (condition()) return;
    const { runtime } = this.context;
    await new Promise<void>((resolve) => {
      const timer = runtime.timer(patience, resolve, 'keep-alive');
      this.settled = () => {
        if (!condition()) return;
        timer.cancel();
        resolve();
      };
    });
    this.settled = () => {};
  }

  private cutOffTheRest(): void {
    this.cutOff = true;
    this.expel(() => true);
    const leases = [...this.leases];
    if (leases.length === 0) return;
    const names = leases.map((lease) => lease.name);
    this.context.events.logger.warn(
      `Shutdown: ${names.length} lock${names.length > 1 ? 's are' : ' is'} still held after ${this.settings.shutdownTimeout} ms (${names.slice(0, 10).join(', ')}); the bodies are told to stop, the locks lapse with their leases`,
    );
    for (const lease of leases) {
      this.leases.remove(lease);
      const message = `Shutdown stopped waiting for the body that holds '${lease.name}'`;
      lease.cutOff(new LockAbortedError(message, lease.name));
    }
  }

  private expel(whom: (caller: { readonly scoped: boolean }) => boolean): void {
    for (const queue of this.queues.values()) queue.rejectWaiters(whom);
    for (const caller of this.several) if (whom(caller)) caller.refuse(shutdownError('Waiting', caller.name));
  }

  private acquireOne(name: string, terms: AcquisitionTerms, what: string): Promise<LockLease> {
    let queue = this.queues.get(terms.type, name);
    // The name of a queue was checked when the queue was made.
    const key = queue?.key ?? this.keyOf(toLockName(name, what));
    if (terms.signal?.aborted) throw abortedError(name, terms.signal);
    if (lockScopes.getStore() !== undefined) {
      const reentry = findReentry(this, key, terms.type);
      if (reentry !== undefined) return reenter(this, reentry, name, terms);
      // Where the lock proved to be lost, its queue may have ended with it.
      queue = this.queues.get(terms.type, name);
    }
    const scoped = this.admit(what, name);
    const began = this.began();
    return new Promise((resolve, reject) => {
      const granted = (held: HeldLock) => {
        const lease = this.lease(held.alone, terms);
        this.announce(lease, began);
        resolve(lease);
      };
      const waiter: Waiter = new Waiter(name, this.newOwner, terms, this.context.runtime, granted, reject);
      waiter.scoped = scoped;
      (queue ?? this.newQueue(terms.type, name, key)).enqueue(waiter);
    });
  }

  private heldUnder(key: string): readonly HeldLock[] {
    const { keyPrefix } = this.settings;
    if (!key.startsWith(keyPrefix)) return [];
    return this.queues.named(key.slice(keyPrefix.length)).flatMap(({ holders }) => [...holders]);
  }

  private newQueue(type: LockType, name: string, key: string): AcquisitionQueue {
    const queue =
      type === 'fair' ? new FairQueue(this.context, name, key) : new LockQueue(this.context, name, key, type);
    this.queues.add(queue);
    return queue;
  }

  private finish(lease: LockLease, began: number, holdAtLeast: number): Promise<void> {
    this.bodies--;
    // The body has released it by itself: then its own end is what shutdown may wait for.
    if (lease.released) this.settled();
    const rest = holdAtLeast > 0 ? holdAtLeast - (this.context.runtime.monotonic() - began) : 0;
    return rest > 0 ? lease.leaveFor(rest) : lease.release();
  }

  private get idle(): boolean {
    return this.leases.length === 0 && this.bodies === 0 && this.synchronizers.permitWatchdog.isEmpty;
  }
}

const NO_GATES: readonly EnteredGate[] = [];

export function abortedError(name: string, signal: AbortSignal): LockAbortedError {
  return new LockAbortedError(`Waiting for the lock '${name}' was aborted by the caller's signal`, name, {
    cause: signal.reason,
  });
}

function quoted(names: readonly string[]): string {
  return `'${names.join("', '").slice(0, 80)}'`;
}
