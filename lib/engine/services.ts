import { KEPT_FAR_BACK, SHORTEST_GRANT } from '../backends/line-backend.js';
import type { LockBackend } from '../backends/lock-backend.js';
import { ownerId } from '../backends/owner-ids.js';
import type { Runtime } from '../backends/runtime.js';
import { ActiveWork } from './active-work.js';
import { Admission } from './admission.js';
import { PendingAttempts } from './ask/attempt.js';
import { BackgroundReleases } from './ask/background-releases.js';
import { FormerPlaces } from './ask/former-places.js';
import { UnreleasedLocks } from './ask/unreleased-locks.js';
import { UnsettledReleases } from './ask/unsettled-releases.js';
import { ClientRecordContents } from './clients/client-record-contents.js';
import { ClientRecordWriter } from './clients/client-record-writer.js';
import { HolderLookup } from './clients/holder-lookup.js';
import { Examples } from './collections/examples.js';
import { DeadlockDetector } from './deadlock/deadlock-detector.js';
import type { ClientIdentity } from './describe-holder.js';
import { pointChannels } from './events/channels.js';
import { EventHub } from './events/event-hub.js';
import { type LockLogger, RateLimitedLogger } from './events/lock-logger.js';
import { ForcedReleases } from './hold/forced-releases.js';
import type { HeldLock } from './hold/held-lock.js';
import type { HoldServices } from './hold/hold-services.js';
import { LockRenewer } from './hold/lock-renewer.js';
import type { Standby } from './hold/standby.js';
import { Watchdog } from './hold/watchdog.js';
import type { Milliseconds } from './terms/duration.js';
import { refuseSuspiciousName, toKey } from './terms/lock-name.js';
import type { ReleaseMode } from './terms/lock-options.js';
import { LeaseClock } from './time/lease-clock.js';
import { OutageLimit } from './wait/outage-limit.js';
import { PingWhileWaiting } from './wait/ping-while-waiting.js';
import { UnlimitedWaitWarning } from './wait/unlimited-wait-warning.js';

/** The settings of an engine. Every value has been checked. */
export interface EngineSettings {
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly logger: LockLogger;
  readonly clientId: string;
  /** Default: none, so that other services do not see this one. */
  readonly identity?: ClientIdentity | undefined;
  readonly keyPrefix: string;
  readonly watchdogTimeout: Milliseconds;
  /**
   * The option `waiterTimeout`: how long the backend keeps a waiter (of a fair lock, or a writer) that does not
   * refresh its registration.
   */
  readonly waiterTimeout: Milliseconds;
  readonly waitTime: Milliseconds;
  /** Whether to warn, once, when a caller waits without a limit. */
  readonly warnsOfUnlimitedWaits: boolean;
  /** How long callers wait during an outage. */
  readonly outageTimeout: Milliseconds;
  readonly shutdownTimeout: Milliseconds;
  /** The backend answers or rejects within this time. */
  readonly commandTimeout: Milliseconds;
  /** Renews while the event loop is blocked. Default: nothing does. */
  readonly standby?: Standby | undefined;
  /** If it is undefined, `'throw'` applies. */
  readonly onLost?: 'throw' | 'warn' | undefined;
  readonly release: ReleaseMode;
}

/**
 * The parts that the acquisitions, leases and permits of one service share. None of them knows who uses it: a class
 * that needs some of them says which in its constructor, as `Pick<Services, …>`. There is one object per service, which
 * also stands for the service.
 */
export class Services implements HoldServices {
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly clientId: string;
  /** The backend answers or rejects within this many milliseconds. */
  readonly commandTimeout: number;
  /**
   * Milliseconds after which the backend drops a waiter (of a fair lock, or a place in line) that has not refreshed its
   * registration.
   */
  readonly waiterTimeout: number;

  /** Locks that are held or waited for, and their leases. */
  readonly work = new ActiveWork();
  readonly admission = new Admission(this);
  readonly examples = new Examples();
  readonly clock: LeaseClock;
  readonly events: EventHub;
  readonly pendingAttempts = new PendingAttempts();
  readonly unsettledReleases = new UnsettledReleases();
  readonly formerPlaces: FormerPlaces;
  readonly backgroundReleases: BackgroundReleases;
  readonly forcedReleases: ForcedReleases;
  readonly watchdog: Watchdog<HeldLock>;
  /** All watchdogs: that of the locks, and that of the permits. */
  readonly watchdogs = new Set<Pick<Watchdog<never>, 'confirmAll'>>();
  /** Publishes this client's identity to others. */
  readonly presence: ClientRecordWriter;
  /** Finds the identities of other clients. */
  readonly holders: HolderLookup;
  readonly deadlocks: DeadlockDetector;
  /** Limits waits while the backend does not answer. */
  readonly outages: OutageLimit;
  readonly pings: PingWhileWaiting;
  readonly standby: Standby | undefined;
  /** Until the standby is ready, or if it has failed to start. */
  starting: Promise<void> | undefined;
  readonly unlimitedWaits: UnlimitedWaitWarning;
  private ownerCount = 0;

  constructor(private readonly settings: EngineSettings) {
    const { backend, runtime, logger, clientId, watchdogTimeout, waiterTimeout, commandTimeout } = settings;
    const { work } = this;
    this.standby = settings.standby;
    this.backend = backend;
    this.runtime = runtime;
    this.clientId = clientId;
    this.commandTimeout = commandTimeout;
    this.waiterTimeout = waiterTimeout;
    this.clock = new LeaseClock(runtime);
    this.formerPlaces = new FormerPlaces(runtime, waiterTimeout);
    this.events = new EventHub(runtime, new RateLimitedLogger(logger, runtime), pointChannels, settings.identity);
    this.starting = this.standby?.start(this.events.logger).then(() => {
      this.starting = undefined;
    });
    this.starting?.catch(() => {}); // its callers get the error
    const unreleased = new UnreleasedLocks(runtime, this.events.logger);
    this.backgroundReleases = new BackgroundReleases(
      backend,
      runtime,
      commandTimeout,
      this.unsettledReleases,
      unreleased,
      waiterTimeout * KEPT_FAR_BACK + Math.max(SHORTEST_GRANT, watchdogTimeout),
    );
    this.forcedReleases = new ForcedReleases(this);
    const contents = new ClientRecordContents(work, () => work.countPermits());
    this.presence = new ClientRecordWriter(settings, this.events.logger, () => contents.collect(runtime.monotonic()));
    this.holders = new HolderLookup(settings);
    const onHeartbeat = () => {
      this.forcedReleases.listen();
      this.presence.noticed(0);
    };
    this.watchdog = new Watchdog(
      runtime,
      this.clock,
      new LockRenewer(backend, this.events),
      watchdogTimeout,
      onHeartbeat,
      this.standby,
    );
    this.watchdogs.add(this.watchdog);
    const warn = (message: string) => this.events.logger.warn(message);
    this.deadlocks = new DeadlockDetector(backend.waits, runtime, clientId, (owner) => this.holders.find(owner), warn);
    this.outages = new OutageLimit(backend, runtime, this.events, work, (since) =>
      // Not immediately, because the answer that has ended the outage may be the confirmation of a lease.
      runtime.nextTurn(() => this.confirmAll(since)),
    );
    this.pings = new PingWhileWaiting(backend, runtime, work);
    this.unlimitedWaits = new UnlimitedWaitWarning(settings.warnsOfUnlimitedWaits, this.events.logger);
  }

  /** Stops all background tasks. */
  stop(): void {
    this.standby?.close();
    const { outages, pings, watchdog, backgroundReleases, forcedReleases, deadlocks, presence, holders } = this;
    for (const part of [outages, pings, watchdog, backgroundReleases, forcedReleases, deadlocks, presence, holders])
      part.close();
  }

  /**
   * @throws LockKeyError, with a message that begins with `what`, when the prefix makes the name too long or the name
   *   is suspicious
   */
  keyOf(name: string, what = 'The lock'): string {
    refuseSuspiciousName(name, what);
    return toKey(this.settings.keyPrefix, name, what);
  }

  /** See {@link Watchdog.confirmAll}. */
  confirmAll(before: number): void {
    for (const watchdog of this.watchdogs) watchdog.confirmAll(before);
  }

  /** Creates an owner id. This is a property so that it can be passed as a function. */
  readonly newOwner = (): string => ownerId(this.clientId, ++this.ownerCount, this.backend.mayServeLines);

  /** The locks that this process holds: under one key, or all of them. */
  heldLocks(key?: string): readonly HeldLock[] {
    const { keyPrefix } = this.settings;
    const { queues } = this.work;
    if (key === undefined) return queues.values().flatMap(({ holders }) => holders);
    if (!key.startsWith(keyPrefix)) return [];
    return queues.named(key.slice(keyPrefix.length)).flatMap(({ holders }) => holders);
  }
}
