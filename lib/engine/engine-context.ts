import type { HeldType, LockBackend } from '../backends/lock-backend.js';
import { ownerId } from '../backends/owner-ids.js';
import type { Runtime } from '../backends/runtime.js';
import { ActiveWork } from './active-work.js';
import { PendingAttempts } from './attempt.js';
import { ClientRecordContents } from './clients/client-record-contents.js';
import { type ClientIdentity, ClientRecordWriter } from './clients/client-record-writer.js';
import { HolderLookup } from './clients/holder-lookup.js';
import { DeadlockDetector } from './deadlock/deadlock-detector.js';
import { EventHub } from './events/event-hub.js';
import { type LockLogger, RateLimitedLogger } from './events/lock-logger.js';
import { FlightQueue } from './flights/flight-queue.js';
import { BackgroundReleases } from './lease/background-releases.js';
import { ForcedReleases } from './lease/forced-releases.js';
import type { HeldLock } from './lease/held-lock.js';
import { LeaseClock } from './lease/lease-clock.js';
import { LockLease } from './lease/lock-lease.js';
import { LockRenewer } from './lease/lock-renewer.js';
import { UnsettledReleases } from './lease/unsettled-releases.js';
import { Synchronizers } from './permits/semaphores-and-latches.js';
import { FairQueue } from './queue/fair-queue.js';
import { LockQueue } from './queue/lock-queue.js';
import type { LocalQueue, LockQueues, QueueTable } from './queue/queue-table.js';
import { lockScopes } from './scope/lock-scope.js';
import type { EnteredGate } from './scope/share-gate.js';
import { Shutdown } from './shutdown.js';
import type { Milliseconds } from './terms/duration.js';
import { refuseSuspiciousName, toKey } from './terms/lock-name.js';
import type { AcquisitionTerms, ReleaseMode } from './terms/lock-options.js';
import { pointChannels } from './trace/channels.js';
import { holdEnded } from './trace/trace-hold.js';
import { OutageLimit, type WaitingQueue, type WaitingQueues } from './waiting/outage-limit.js';
import { PingWhileWaiting } from './waiting/ping-while-waiting.js';
import { Watchdog } from './watchdog.js';

/** The default commandTimeout, in milliseconds. */
const DEFAULT_COMMAND_TIMEOUT = 2_000;

/** The settings of an engine. Every value has been checked. */
export interface EngineSettings {
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly logger: LockLogger;
  readonly clientId: string;
  /** Default: none, so that other services do not see this one. */
  readonly identity?: ClientIdentity | undefined;
  readonly keyPrefix: string;
  /** Default false: see {@link refuseSuspiciousName}. */
  readonly allowSuspiciousNames?: boolean | undefined;
  readonly watchdogTimeout: Milliseconds;
  /**
   * The option `fairWaitTimeout`: how long the backend keeps a waiter (of a fair lock, or a writer) that does not
   * refresh its registration.
   */
  readonly waiterTimeout: Milliseconds;
  readonly waitTime: Milliseconds;
  /** How long callers wait during an outage. Default 10 s. */
  readonly outageTimeout?: Milliseconds;
  readonly shutdownTimeout: Milliseconds;
  /** The backend answers or rejects within this time. Default 2 s. */
  readonly commandTimeout?: Milliseconds;
  /** If it is undefined, `'throw'` applies. */
  readonly onLost?: 'throw' | 'warn' | undefined;
  /** Default `'confirmed'`. */
  readonly release?: ReleaseMode | undefined;
  /** Default true. */
  readonly reentry?: boolean | undefined;
}

const NO_GATES: readonly EnteredGate[] = [];

/**
 * The state and services that all acquisitions, leases and permits of one service share: its backend and clocks, its
 * background tasks, and its unfinished work. There is one context per service.
 */
export class EngineContext implements WaitingQueues {
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly clientId: string;
  /**
   * Milliseconds after which the backend drops a waiter (of a fair lock, or a waiting writer) that has not refreshed
   * its registration.
   */
  readonly waiterTimeout: number;

  readonly clock: LeaseClock;
  readonly events: EventHub;
  readonly watchdog: Watchdog<HeldLock>;
  readonly backgroundReleases: BackgroundReleases;
  readonly unsettledReleases = new UnsettledReleases();
  readonly forcedReleases: ForcedReleases;
  readonly pendingAttempts: PendingAttempts;
  readonly deadlocks: DeadlockDetector;
  /** Limits waits while the backend does not answer. */
  readonly outages: OutageLimit;
  readonly pings: PingWhileWaiting;
  /** Publishes this client's identity to others. */
  readonly presence: ClientRecordWriter;
  /** Finds the identities of other clients. */
  readonly holders: HolderLookup;

  /** Locks that are held or waited for, and their leases. */
  readonly work = new ActiveWork();
  readonly synchronizers: Synchronizers;
  readonly shutdown: Shutdown;
  private ownerCount = 0;

  constructor(private readonly settings: EngineSettings) {
    const { backend, runtime, logger, clientId, watchdogTimeout, waiterTimeout, shutdownTimeout } = settings;
    const { commandTimeout = DEFAULT_COMMAND_TIMEOUT } = settings;
    const { work } = this;
    this.backend = backend;
    this.runtime = runtime;
    this.clientId = clientId;
    this.waiterTimeout = waiterTimeout;
    this.clock = new LeaseClock(runtime);
    this.events = new EventHub(runtime, new RateLimitedLogger(logger, runtime), pointChannels);
    const contents = new ClientRecordContents(work, () => this.synchronizers.renewedPermits.size);
    this.presence = new ClientRecordWriter(settings, this.events.logger, () => contents.collect(runtime.monotonic()));
    this.holders = new HolderLookup(settings);
    const onHeartbeat = () => {
      this.forcedReleases.listen();
      this.presence.noticed(0);
    };
    const renewer = new LockRenewer(backend, this.events);
    this.watchdog = new Watchdog(runtime, this.clock, renewer, watchdogTimeout, onHeartbeat);
    this.backgroundReleases = new BackgroundReleases(backend, runtime, commandTimeout, this.unsettledReleases);
    // If the attempt was granted, its lease is created only by the next turn of the event loop.
    this.pendingAttempts = new PendingAttempts((removal) =>
      runtime.nextTurn(() => this.forcedReleases.verify(removal)),
    );
    this.forcedReleases = new ForcedReleases(this);
    if (backend.blocking !== undefined) this.forcedReleases.listen();
    const warn = (message: string) => this.events.logger.warn(message);
    this.deadlocks = new DeadlockDetector(backend.waits, runtime, clientId, (owner) => this.holders.find(owner), warn);
    this.outages = new OutageLimit(backend, runtime, this.events, this);
    this.pings = new PingWhileWaiting(backend, runtime, this);
    this.synchronizers = new Synchronizers(this, watchdogTimeout, () => work.changed());
    this.shutdown = new Shutdown(this, shutdownTimeout, commandTimeout);
  }

  /** Stops all background tasks. */
  stop(): void {
    const { outages, pings, watchdog, backgroundReleases, forcedReleases, deadlocks, presence, holders } = this;
    for (const part of [outages, pings, watchdog, backgroundReleases, forcedReleases, deadlocks, presence, holders])
      part.close();
  }

  // ── Names, owners, admission ───────────────────────────────────────────────────────────────────────────────────────

  /**
   * @throws LockKeyError, with a message that begins with `what`, when the prefix makes the name too long or the name
   *   is suspicious
   */
  keyOf(name: string, what = 'The lock'): string {
    const { keyPrefix, allowSuspiciousNames } = this.settings;
    if (!allowSuspiciousNames) refuseSuspiciousName(name, what);
    return toKey(keyPrefix, name, what);
  }

  /** Creates an owner id. This is a property so that it can be passed as a function. */
  readonly newOwner = (): string => ownerId(this.clientId, ++this.ownerCount);

  /**
   * See {@link Shutdown.admit}.
   *
   * @throws LockAbortedError when the caller is not admitted
   */
  admit(what: string, name: string, hasScope = lockScopes.getStore() !== undefined): boolean {
    return this.shutdown.admit(what, name, hasScope);
  }

  // ── Queues and leases ──────────────────────────────────────────────────────────────────────────────────────────────

  /** The queues of locks that are held here or waited for. */
  get queues(): QueueTable {
    return this.work.queues;
  }

  /** The queue of a lock, created if necessary. */
  queueOf(type: HeldType, name: string, key: string): LockQueues {
    return this.queues.get(type, name) ?? this.newQueue(type, name, key);
  }

  /** The queue of a single flight, created if necessary. */
  flightQueueOf(name: string, key: string): FlightQueue {
    const known = this.queues.flight(name);
    if (known !== undefined) return known;
    const queue = new FlightQueue(this, name, key, this.queueEnded);
    this.queues.add(queue);
    return queue;
  }

  /** The locks that this process holds: under one key, or all of them. */
  heldLocks(key?: string): readonly HeldLock[] {
    const { keyPrefix } = this.settings;
    if (key === undefined) return this.queues.values().flatMap(({ holders }) => holders);
    if (!key.startsWith(keyPrefix)) return [];
    return this.queues.named(key.slice(keyPrefix.length)).flatMap(({ holders }) => holders);
  }

  /** @param gates for a re-entry: the gates that its shares have entered */
  createLease(
    locks: readonly HeldLock[],
    terms: AcquisitionTerms,
    gates: readonly EnteredGate[] = NO_GATES,
  ): LockLease {
    const lease = new LockLease(this, locks, terms, gates, this.leaseEnded);
    this.work.leases.push(lease);
    return lease;
  }

  private newQueue(type: HeldType, name: string, key: string): LockQueues {
    const queue =
      type === 'fair'
        ? new FairQueue(this, name, key, this.queueEnded)
        : new LockQueue(this, name, key, type, this.queueEnded);
    this.queues.add(queue);
    return queue;
  }

  private readonly queueEnded = (queue: LocalQueue): void => {
    this.queues.remove(queue);
    this.outages.left();
    this.work.changed();
  };

  private readonly leaseEnded = (lease: LockLease, isLost: boolean): void => {
    holdEnded(lease, isLost);
    this.work.leases.remove(lease);
    this.work.changed();
  };

  // ── All waiting callers, for OutageLimit and PingWhileWaiting ──────────────────────────────────────────────────────────

  get isEmpty(): boolean {
    return this.work.hasNoQueues && this.synchronizers.hasNoQueues;
  }

  forEach(visit: (queue: WaitingQueue) => void): void {
    const { queues, several } = this.work;
    // Callers of several names come first, because each of them also waits in the queue of one name. That wait ends
    // together with theirs.
    for (const caller of [...several]) visit(caller);
    for (const { line } of queues.values()) if (!line.isEmpty) visit(line);
    this.synchronizers.forEachQueue(visit);
  }
}
