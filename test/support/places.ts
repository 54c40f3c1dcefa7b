import { MemoryBackend } from '../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../lib/backends/redis/in-process/memory-store.js';
import type { Runtime } from '../../lib/backends/runtime.js';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { createLockServiceWith } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../lib/service/redis-lock-options.js';
import { startCluster } from './servers/redis-cluster.js';
import { startRedis } from './servers/redis-server.js';

export type PlaceName = 'memory' | 'Redis' | 'a cluster';

export const PLACES: readonly PlaceName[] = ['memory', 'Redis', 'a cluster'];

/** The log of a service. */
export interface Log {
  readonly warnings: string[];
  readonly errors: string[];
}

/** A place for the tests of a `describe`. The services of a test are closed when it ends. */
export function openPlace(name: PlaceName): Place {
  const place = new Place();
  beforeAll(() => place.start(name));
  afterAll(() => place.close());
  afterEach(() => place.closeServices());
  return place;
}

/** A store of locks for the services that share it. */
export class Place {
  private readonly services: LockService[] = [];
  private tests = 0;

  private connection: () => RedisLockOptions = () => ({});
  private end: () => Promise<void> = async () => {};

  static async open(name: PlaceName): Promise<Place> {
    const place = new Place();
    await place.start(name);
    return place;
  }

  async start(name: PlaceName): Promise<void> {
    if (name === 'memory') {
      const store = new MemoryStore();
      this.connection = () => ({ backend: new MemoryBackend({ runtime: nodeRuntime, store }) });
    } else if (name === 'Redis') {
      const redis = await startRedis();
      this.connection = () => ({ connection: redis.url });
      this.end = () => redis.stop();
    } else {
      const cluster = await startCluster();
      this.connection = () => ({ connection: { nodes: cluster.nodes } });
      this.end = () => cluster.stop();
    }
  }

  /** Opens a service like that of another process. @param runtime default: the real one */
  service(
    options: RedisLockOptions = {},
    runtime: Runtime = nodeRuntime,
  ): { readonly locks: LockService; readonly log: Log } {
    const log: Log = { warnings: [], errors: [] };
    const logger = {
      warn: (message: string) => void log.warnings.push(message),
      error: (message: string) => void log.errors.push(message),
    };
    const keyPrefix = `lock:${this.tests}:`;
    const locks = createLockServiceWith(runtime, {
      ...this.connection(),
      keyPrefix,
      logger,
      shutdownTimeout: 100,
      ...options,
    });
    this.services.push(locks);
    return { locks, log };
  }

  /** Gives the locks of the next test another prefix. */
  async closeServices(): Promise<void> {
    this.tests++;
    await Promise.all(this.services.splice(0).map((locks) => locks.close()));
  }

  async close(): Promise<void> {
    await this.closeServices();
    await this.end();
  }
}
