import type { LockBackend } from '../../lib/backends/lock-backend.js';
import { toClientId } from '../../lib/backends/owner-ids.js';
import { MemoryBackend } from '../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../lib/backends/redis/in-process/memory-store.js';
import type { Runtime } from '../../lib/backends/runtime.js';
import type { LockLogger } from '../../lib/engine/events/lock-logger.js';
import { LockEngine } from '../../lib/engine/lock-engine.js';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import type { EngineSettings } from '../../lib/engine/services.js';
import type { Milliseconds } from '../../lib/engine/terms/duration.js';
import { LockService } from '../../lib/service/lock-service.js';
import type { Connection } from '../../lib/service/redis-lock-options.js';
import { ENGINE_DEFAULTS } from './engine-defaults.js';
import { CountingRuntime } from './runtime/counting-runtime.js';
import { VirtualRuntime } from './runtime/virtual-runtime.js';
import { type RedisServer, startRedis } from './servers/redis-server.js';
import { NEVER } from './time-limits.js';
import { until } from './until.js';
import { WatchedBackend } from './watched/watched-backend.js';

/** Where a world keeps its locks. */
export type StoreName = 'memory' | 'Redis';

export const STORES: readonly StoreName[] = ['memory', 'Redis'];

export interface ProcessSettings
  extends Partial<Omit<EngineSettings, 'backend' | 'runtime' | 'logger' | 'clientId' | 'commandTimeout'>> {
  /** The connection to Redis. Default: directly to the server of this world. */
  readonly connection?: Connection;
  readonly commandTimeout?: number;
  /** Default: the real runtime, whose timers are counted. {@link openVirtualWorld} uses virtual time. */
  readonly runtime?: Runtime;
  /** A separate backend, with the `<clientId>` of its owners. Default: a backend of the store of this world. */
  readonly client?: { readonly backend: LockBackend; readonly id: string };
}

export const ms = (time: number): Milliseconds => time as Milliseconds;

/** The log of a service. */
export class RecordingLogger implements LockLogger {
  readonly warnings: string[] = [];
  readonly errors: string[] = [];

  warn(message: string): void {
    this.warnings.push(message);
  }

  error(message: string): void {
    this.errors.push(message);
  }
}

const backends = new WeakMap<LockService, WatchedBackend>();

/** The backend of a service of a world. */
export function backendOf(locks: LockService): WatchedBackend {
  return backends.get(locks) as WatchedBackend;
}

/** The commandTimeout on a real server. A slow machine may stand still for longer than the default of two seconds. */
const PATIENT = 10_000;

/** A lock service like that of a separate process, with everything that tests inspect. */
export interface LockProcess {
  readonly locks: LockService;
  readonly backend: WatchedBackend;
  readonly runtime: CountingRuntime;
  readonly logger: RecordingLogger;
}

/**
 * Services that share one store, which nobody else uses. Each test gets another store.
 *
 * Leases and queue entries outlast the test, so a waiter is only served if it was woken. A test of expired leases or
 * entries sets shorter times.
 */
export class LockWorld {
  redis!: RedisServer;
  keyPrefix = 'lock:';
  private memory = new MemoryStore();
  private readonly opened: LockProcess[] = [];
  private tests = 0;

  constructor(readonly store: StoreName) {}

  async start(): Promise<void> {
    if (this.store === 'Redis') this.redis = await startRedis();
  }

  renew(): void {
    this.memory = new MemoryStore();
    this.keyPrefix = `lock:${++this.tests}:`;
  }

  /** Adds another process. */
  async process(settings: ProcessSettings = {}): Promise<LockProcess> {
    const { connection, runtime = new CountingRuntime(), client, ...own } = settings;
    const { commandTimeout = this.store === 'Redis' ? PATIENT : ENGINE_DEFAULTS.commandTimeout } = settings;
    const clientId = client?.id ?? toClientId(runtime.uuid());
    const logger = new RecordingLogger();
    const inner = client?.backend ?? (await this.makeBackend(runtime, commandTimeout, connection));
    const backend = new WatchedBackend(inner, runtime);
    const locks = new LockService(
      new LockEngine({
        ...ENGINE_DEFAULTS,
        backend,
        runtime,
        logger,
        clientId,
        keyPrefix: this.keyPrefix,
        watchdogTimeout: ms(NEVER),
        waiterTimeout: ms(NEVER),
        shutdownTimeout: ms(100),
        ...own,
        commandTimeout: ms(commandTimeout),
      }),
    );
    const made = { locks, backend, runtime: runtime as CountingRuntime, logger };
    backends.set(locks, backend);
    this.opened.push(made);
    return made;
  }

  async processes(count: number, settings?: ProcessSettings): Promise<LockProcess[]> {
    return Promise.all(Array.from({ length: count }, () => this.process(settings)));
  }

  async service(settings?: ProcessSettings): Promise<LockService> {
    return (await this.process(settings)).locks;
  }

  async services(count: number, settings?: ProcessSettings): Promise<LockService[]> {
    return (await this.processes(count, settings)).map(({ locks }) => locks);
  }

  /** Closes everything that a test left open. */
  async tidy(): Promise<void> {
    await Promise.all(
      this.opened.splice(0).map(async ({ locks, backend, runtime }) => {
        const virtual = (runtime as Runtime) instanceof VirtualRuntime && (runtime as unknown as VirtualRuntime);
        backend.heal();
        const closed = locks.close();
        if (virtual) await virtual.until(closed, 3_600_000);
        else await closed;
      }),
    );
  }

  async stop(): Promise<void> {
    await this.redis?.stop();
  }

  private async makeBackend(
    runtime: Runtime,
    commandTimeout: number,
    connection: Connection = this.redis?.url,
  ): Promise<LockBackend> {
    if (this.store === 'memory') return new MemoryBackend({ runtime, store: this.memory });
    const { RedisBackend } = await import('../../lib/backends/redis/redis-backend.js');
    return new RedisBackend({
      connection,
      commandTimeout,
      runtime: nodeRuntime,
      shardedPubSub: 'auto',
      minReplicas: 0,
      onError: () => {},
    });
  }
}

/** A world for the tests of the surrounding `describe`. */
export function openWorld(store: StoreName): LockWorld {
  const world = new LockWorld(store);
  beforeAll(() => world.start());
  beforeEach(() => world.renew());
  afterEach(() => world.tidy());
  afterAll(() => world.stop());
  return world;
}

export interface VirtualProcess extends Omit<LockProcess, 'runtime'> {
  readonly runtime: VirtualRuntime;
}

/** A world in memory whose time the test advances. All its processes share one clock. */
export class VirtualWorld {
  runtime = new VirtualRuntime();
  private readonly world = new LockWorld('memory');

  renew(seed?: number): void {
    this.runtime = new VirtualRuntime(seed);
    this.world.renew();
  }

  async process(settings: ProcessSettings = {}): Promise<VirtualProcess> {
    const runtime = this.runtime;
    const timeouts = { watchdogTimeout: ms(30_000), waiterTimeout: ms(5_000) };
    return { ...(await this.world.process({ runtime, ...timeouts, ...settings })), runtime };
  }

  tidy(): Promise<void> {
    return this.world.tidy();
  }
}

/** A virtual world for the tests of the surrounding `describe`. */
export function openVirtualWorld(): VirtualWorld {
  const world = new VirtualWorld();
  beforeEach(() => world.renew());
  afterEach(() => world.tidy());
  return world;
}

interface Timers {
  readonly timers: number;
  readonly heartbeats: number;
}

/**
 * The work of a process that is in progress. One heartbeat of the watchdog does not count, because the watchdog ends
 * within a second if it finds nothing to do.
 */
export function leftovers({ locks, backend, runtime }: Omit<LockProcess, 'runtime'> & { readonly runtime: Timers }) {
  return {
    ...locks.engine.activity(),
    requests: backend.underWay,
    subscriptions: backend.subscriptions,
    timers: runtime.timers - Math.min(runtime.heartbeats, 1),
  };
}

export const NOTHING = {
  queues: 0,
  leases: 0,
  severalLocks: 0,
  permitQueues: 0,
  changes: 0,
  renewedPermits: 0,
  requests: 0,
  subscriptions: 0,
  timers: 0,
};

/** Settles when a process has no more work in progress. Otherwise rejects with the remaining work. */
export async function nothingIsLeft(process: LockProcess): Promise<void> {
  await until(() => JSON.stringify(leftovers(process)) === JSON.stringify(NOTHING), 5_000).catch(() => {});
  expect(leftovers(process)).toEqual(NOTHING);
}
