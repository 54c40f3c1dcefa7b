import type { LockBackend } from '../../../lib/backends/lock-backend.js';
import { TopologyFactory } from '../../../lib/backends/redis/links/topology.js';
import { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import type { SynchronizerBackend } from '../../../lib/backends/synchronizer-backend.js';
import type { Standby } from '../../../lib/engine/hold/standby.js';
import { LockEngine } from '../../../lib/engine/lock-engine.js';
import type { Milliseconds } from '../../../lib/engine/terms/duration.js';
import type { ReleaseMode } from '../../../lib/engine/terms/lock-options.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { ENGINE_DEFAULTS } from '../../support/engine-defaults.js';
import type { History } from '../history.js';
import { HistoryRecorder } from '../history-recorder.js';
import { PermitRecorder } from '../permit-recorder.js';
import { Cable } from './simulated/cable.js';
import type { Network } from './simulated/network-conditions.js';
import { ObservedBackend } from './simulated/observed-backend.js';
import type { ClientLibrary } from './simulated/simulated-link.js';
import type { SimulatedProcess } from './simulated/simulated-process.js';
import type { SimulatedServer } from './simulated/simulated-server.js';
import { SimulatedThread } from './simulated/simulated-thread.js';
import { SimulatedTopology } from './simulated/simulated-topology.js';
import type { Stranger } from './simulated/stranger.js';
import { tracedBackend } from './simulated/traced-backend.js';
import type { VirtualTime } from './simulated/virtual-time.js';
import type { SimulationTrace } from './simulation-trace.js';

/** What all processes have in common. */
export interface Surroundings {
  readonly time: VirtualTime;
  readonly network: Network;
  /** Several: a cluster. */
  readonly servers: readonly SimulatedServer[];
  readonly history: History;
  readonly stranger: Stranger;
  readonly commandTimeout: number;
  readonly trace: SimulationTrace | undefined;
  /** Notes what must not happen. */
  trouble(what: string): void;
  /** Replaces the backend. Used to test the tests. */
  readonly disguise?: ((backend: LockBackend) => LockBackend) | undefined;
  readonly disguiseSynchronizers?: ((synchronizers: SynchronizerBackend) => SynchronizerBackend) | undefined;
}

export interface MemberSettings {
  readonly library: ClientLibrary;
  readonly watchdogTimeout: number;
  readonly waiterTimeout: number;
  readonly release: ReleaseMode;
  /** Default: there is no thread. */
  readonly keepWhileBlocked?: number | undefined;
}

/** Milliseconds. */
const SHUTDOWN_TIMEOUT = 500;
/** Shorter than some of the faults. */
export const OUTAGE_TIMEOUT = 300;

/** A process with a lock service. Everything in it is real, except the clock and the network. */
export class Member {
  readonly locks: LockService;
  readonly recorder: HistoryRecorder;
  readonly permits: PermitRecorder;
  readonly cable: Cable;
  readonly backend: ObservedBackend;
  /** The process of the thread that renews while the event loop is blocked. */
  readonly thread: SimulatedProcess | undefined;
  /** The connections of both. */
  readonly cables: readonly Cable[];
  closing = false;

  constructor(
    { time, network, servers, history, stranger, commandTimeout, trace, trouble, ...disguises }: Surroundings,
    readonly process: SimulatedProcess,
    settings: MemberSettings,
  ) {
    this.cable = new Cable(time, network, process, commandTimeout, trace);
    const redis = new RedisBackend({
      connection: new TopologyFactory(() => new SimulatedTopology(this.cable, servers, settings.library)),
      runtime: process.unobserved,
      commandTimeout,
      shardedPubSub: 'auto',
      minReplicas: 0,
      onError: () => {},
    });
    const { disguise = (whole) => whole, disguiseSynchronizers = (whole) => whole } = disguises;
    const whole = disguise(redis);
    const backend = trace === undefined ? whole : tracedBackend(whole, process.name, trace);
    this.backend = new ObservedBackend(backend, disguiseSynchronizers(redis.synchronizers), {
      reused: (lock, owner) => this.recorder.add({ kind: 'reused', lock, owner }),
      forced: (lock, owners) => this.recorder.add({ kind: 'forced', lock, owners }),
      leased: (ids, asked, duration) => this.permits.leased(ids, asked + duration * process.tick),
      waits: (key, owner) => stranger.sees(key, owner),
      now: () => time.now,
    });
    trace?.serves(this.backend.port, process.name);
    const { library, watchdogTimeout, keepWhileBlocked } = settings;
    let standby: Standby | undefined;
    this.cables = [this.cable];
    if (keepWhileBlocked !== undefined) {
      this.thread = process.thread();
      const cable = new Cable(time, network, this.thread, commandTimeout);
      this.cables = [this.cable, cable];
      const onRenewed = (key: string, owner: string) => this.recorder.confirmed(key, owner);
      const thread = { library, watchdogTimeout, keepWhileBlocked };
      standby = new SimulatedThread(this.thread, process, cable, servers, thread, onRenewed, trouble).standby;
    }
    const ms = (value: number) => value as Milliseconds;
    const engine = new LockEngine({
      ...ENGINE_DEFAULTS,
      backend: this.backend.port,
      runtime: process,
      logger: { warn: () => {}, error: () => {} },
      clientId: process.clientId,
      keyPrefix: '',
      watchdogTimeout: ms(settings.watchdogTimeout),
      waiterTimeout: ms(settings.waiterTimeout),
      outageTimeout: ms(OUTAGE_TIMEOUT),
      shutdownTimeout: ms(SHUTDOWN_TIMEOUT),
      release: settings.release ?? 'confirmed',
      standby,
    });
    this.locks = new LockService(engine);
    this.recorder = new HistoryRecorder(history, process.name, this.locks, () => time.now, process.tick);
    this.permits = new PermitRecorder(this.recorder, () => time.now);
    process.onStall = (until) => this.recorder.add({ kind: 'stalled', until });
  }

  /** Ends without warning. */
  crash(): void {
    if (this.process.dead) return;
    this.process.crash();
    for (const cable of this.cables) cable.abandon();
    this.recorder.add({ kind: 'crashed' });
  }

  /** Ends in order. */
  close(): Promise<void> {
    if (!this.closing) this.recorder.add({ kind: 'closing', keepsFor: SHUTDOWN_TIMEOUT * 0.99 });
    this.closing = true;
    return this.locks.close();
  }

  /** The unfinished work of the engine. */
  get leftovers(): Readonly<Record<string, number>> {
    const activity = this.locks.engine.activity();
    return {
      ...activity,
      // The queues of a closed service are not counted.
      permitQueues: this.closing ? 0 : activity.permitQueues,
      subscriptions: this.backend.subscriptions,
      timers: this.process.timers,
    };
  }
}
