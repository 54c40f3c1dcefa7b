import type { Redis } from 'ioredis';
import {
  type AcquireRequest,
  BackendError,
  type LockType,
  type OwnerRef,
  type Wake,
} from '../../../lib/backends/lock-backend.js';
import { RedisBackend, type RedisBackendOptions } from '../../../lib/backends/redis/redis-backend.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import { type RedisServer, type RedisServerOptions, startRedis } from '../../support/servers/redis-server.js';

/** A client id in Redisson's format. */
export const CLIENT = '11111111-2222-3333-4444-555555555555';

/** A redis-server, a plain client that inspects it, and backends on it. All are closed at the end of the test file. */
export class RedisWorld {
  server!: RedisServer;
  /** Inspects and changes the server behind the backends' back. */
  redis!: Redis;
  readonly errors: unknown[] = [];
  private readonly backends: RedisBackend[] = [];
  private count = 0;

  constructor(options: RedisServerOptions = {}) {
    beforeAll(async () => {
      this.server = await this.start(options);
      this.redis = this.server.client();
    });
    afterEach(async () => {
      await Promise.all(this.backends.splice(0).map((backend) => backend.close()));
      this.errors.length = 0;
    });
    afterAll(() => this.server?.stop());
  }

  protected start(options: RedisServerOptions): Promise<RedisServer> {
    return startRedis(options);
  }

  backend(options: Partial<RedisBackendOptions> = {}): RedisBackend {
    const backend = new RedisBackend({
      connection: this.server.url,
      runtime: nodeRuntime,
      commandTimeout: 5_000,
      shardedPubSub: 'auto',
      minReplicas: 0,
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

  /** An acquire request, for a new lock unless a key is given. */
  request<Type extends LockType = 'reentrant'>(
    type: Type = 'reentrant' as Type,
    request: Partial<AcquireRequest> = {},
  ): AcquireRequest & { readonly type: Type } {
    const defaults = { leaseTime: 60_000, reserve: 0, waiterTimeout: 0, pastLine: true };
    return { key: this.key(), owner: this.owner(), ...defaults, ...request, type };
  }

  /** How often clients called each command while `work` ran. Commands that scripts call are not counted. */
  async commands(work: () => Promise<unknown>): Promise<Record<string, number>> {
    await this.redis.config('RESETSTAT');
    await work();
    const stats = await this.redis.info('commandstats');
    const calls = [...stats.matchAll(/cmdstat_(\S+?):calls=(\d+)/g)].map(([, name, count]) => [name, Number(count)]);
    const ours = new Set(['eval', 'evalsha', 'subscribe', 'unsubscribe', 'psubscribe', 'punsubscribe', 'ping', 'wait']);
    return Object.fromEntries(calls.filter(([name]) => ours.has(name as string)));
  }

  /** The ids of the connections of this kind, without the one of `redis`. */
  async connections(kind: 'normal' | 'pubsub'): Promise<number[]> {
    const own = await this.redis.client('ID');
    const list = (await this.redis.call('CLIENT', 'LIST', 'TYPE', kind)) as string;
    return [...list.matchAll(/^id=(\d+)/gm)].map(([, id]) => Number(id)).filter((id) => id !== own);
  }

  /** All keys, sorted. */
  async keys(): Promise<string[]> {
    return (await this.redis.keys('*')).sort();
  }
}

/** The error that a call was rejected with. */
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

/**
 * Whether a call is answered without an error. On a busy machine, the first call of a backend may take longer than its
 * command timeout.
 */
export async function succeeds(call: Promise<unknown>): Promise<boolean> {
  const [{ status }] = await Promise.allSettled([call]);
  return status === 'fulfilled';
}

/** Records the wake-ups of a subscription. */
export class WakeRecorder {
  readonly all: Wake[] = [];
  readonly listen = (wake: Wake): void => {
    this.all.push(wake);
  };

  count(kind: Wake['kind']): number {
    return this.all.filter((wake) => wake.kind === kind).length;
  }
}
