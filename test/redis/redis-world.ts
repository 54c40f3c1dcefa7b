import type { Redis } from 'ioredis';
import {
  type AcquireRequest,
  BackendError,
  type LockType,
  type OwnerRef,
  type Wake,
} from '../../lib/backends/lock-backend.js';
import { RedisBackend, type RedisBackendOptions } from '../../lib/backends/redis/redis-backend.js';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { type RedisServer, type RedisServerOptions, startRedis } from '../support/redis-server.js';

/** A client id that looks like Redisson's. */
export const CLIENT = '11111111-2222-3333-4444-555555555555';

/** A redis-server, a plain client to look at it with, and backends on it; all gone at the end of the file. */
export class RedisWorld {
  server!: RedisServer;
  /** Sees and changes what a backend knows nothing of. */
  redis!: Redis;
  readonly errors: unknown[] = [];
  private readonly backends: RedisBackend[] = [];
  private count = 0;

  constructor(options: RedisServerOptions = {}) {
    beforeAll(async () => {
      this.server = await startRedis(options);
      this.redis = this.server.client();
    });
    afterEach(async () => {
      await Promise.all(this.backends.splice(0).map((backend) => backend.close()));
      this.errors.length = 0;
    });
    afterAll(() => this.server?.stop());
  }

  backend(options: Partial<RedisBackendOptions> = {}): RedisBackend {
    const backend = new RedisBackend({
      connection: this.server.url,
      runtime: nodeRuntime,
      clientId: CLIENT,
      commandTimeout: 5_000,
      shardedPubSub: 'auto',
      minReplicas: 0,
      replicaTimeout: 1_000,
      onError: (error) => this.errors.push(error),
      ...options,
    });
    this.backends.push(backend);
    return backend;
  }

  key(name = 'order'): string {
    return `lock:${name}:${++this.count}`;
  }

  owner(): string {
    return `${CLIENT}:${++this.count}`;
  }

  /** A request for a lock that nobody used before, unless a key is given. */
  request<Type extends LockType = 'reentrant'>(
    type: Type = 'reentrant' as Type,
    request: Partial<AcquireRequest> = {},
  ): AcquireRequest & { readonly type: Type } {
    const defaults = { leaseTime: 60_000, reserve: 0, fairWaitTimeout: 0, preferWriters: false };
    return { key: this.key(), owner: this.owner(), ...defaults, ...request, type };
  }

  /** How often the server was called for each command by its clients, while `work` ran; what scripts call is left out. */
  async commands(work: () => Promise<unknown>): Promise<Record<string, number>> {
    await this.redis.config('RESETSTAT');
    await work();
    const stats = await this.redis.info('commandstats');
    const calls = [...stats.matchAll(/cmdstat_(\S+?):calls=(\d+)/g)].map(([, name, count]) => [name, Number(count)]);
    const ours = new Set(['eval', 'evalsha', 'subscribe', 'unsubscribe', 'psubscribe', 'punsubscribe', 'ping', 'wait']);
    return Object.fromEntries(calls.filter(([name]) => ours.has(name as string)));
  }

  /** The ids of connections of this kind, other than `redis`'s. */
  async connections(kind: 'normal' | 'pubsub'): Promise<number[]> {
    const own = await this.redis.client('ID');
    const list = (await this.redis.call('CLIENT', 'LIST', 'TYPE', kind)) as string;
    return [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => Number(id)).filter((id) => id !== own);
  }

  /** All keys, in order. */
  async keys(): Promise<string[]> {
    return (await this.redis.keys('*')).sort();
  }
}

/** What a call was refused with. */
export async function failure(call: Promise<unknown>): Promise<BackendError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof BackendError)) throw new Error(`expected a BackendError, got ${error}`);
  return error;
}

export function holding({ key, type, owner }: OwnerRef): OwnerRef {
  return { key, type, owner };
}

/** Collects what a subscription hears. */
export class Ear {
  readonly wakes: Wake[] = [];
  readonly listen = (wake: Wake): void => {
    this.wakes.push(wake);
  };

  count(kind: Wake['kind']): number {
    return this.wakes.filter((wake) => wake.kind === kind).length;
  }
}
