import { MemoryBackend } from '../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../lib/backends/redis/in-process/memory-store.js';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../lib/service/redis-lock-options.js';
import { until } from '../support/until.js';

describe('a wait without a limit', () => {
  const services: LockService[] = [];
  afterEach(() => Promise.all(services.splice(0).map((locks) => locks.close())));

  function open(options: Partial<RedisLockOptions> = {}) {
    const warnings: string[] = [];
    const logger = { warn: (message: string) => warnings.push(message), error: () => {} };
    const backend = new MemoryBackend({ runtime: nodeRuntime, store: new MemoryStore() });
    const locks = createLockService({ backend, logger, shutdownTimeout: 50, ...options });
    services.push(locks);
    return { locks, warnings };
  }

  /** Lets one more caller of each kind wait for a lock until it is free. */
  async function contend(locks: LockService, name: string, ...waits: (() => Promise<{ release(): Promise<void> }>)[]) {
    const lease = await locks.acquire(name);
    const waiting = waits.map(async (wait) => (await wait()).release());
    await until(async () => (await locks.inspect(name)).waiting === waits.length);
    await lease.release();
    await Promise.all(waiting);
  }

  it.each(['reentrant', 'fair'] as const)('is reported once, when a caller first waits (%s)', async (type) => {
    const { locks, warnings } = open();
    await (await locks.acquire('free', { type })).release();
    expect(warnings).toEqual([]);
    for (const name of ['order:1', 'order:2'])
      await contend(
        locks,
        name,
        () => locks.acquire(name, { type }),
        () => locks.acquire(name, { type }),
      );
    expect(warnings).toEqual([
      "A caller waits for the lock 'order:1' without a limit, because neither the call nor RedisLockModule sets a waitTime. It would even wait for a client that has gone. Set waitTime of RedisLockModule (Infinity, if that is what you want). This is logged once",
    ]);
  });

  it.each(['reentrant', 'write', 'fair'] as const)(
    'is reported for callers of one process that come at the same moment (%s)',
    async (type) => {
      const { locks, warnings } = open();
      const body = () => new Promise((resolve) => setTimeout(resolve, 20));
      await Promise.all([1, 2].map(() => locks.withLock('order:1', { type }, body)));
      expect(warnings).toEqual([expect.stringContaining("A caller waits for the lock 'order:1' without a limit")]);
    },
  );

  it('is not reported for readers that come at the same moment, because they go in together', async () => {
    const { locks, warnings } = open();
    const body = () => new Promise((resolve) => setTimeout(resolve, 20));
    await Promise.all([1, 2, 3].map(() => locks.withLock('order:1', { type: 'read' }, body)));
    expect(warnings).toEqual([]);
  });

  it.each<[string, Partial<RedisLockOptions>]>([
    ['a waitTime', { waitTime: '10s' }],
    ['Infinity', { waitTime: Number.POSITIVE_INFINITY }],
    ['locks in memory, as tests have them', { backend: 'memory' }],
  ])('is not reported with %s', async (_, options) => {
    const { locks, warnings } = open(options);
    await contend(locks, 'order:3', () => locks.acquire('order:3'));
    expect(warnings.filter((warning) => warning.includes('without a limit'))).toEqual([]);
  });

  it('is not reported for a call that asks for it', async () => {
    const { locks, warnings } = open();
    await contend(locks, 'order:4', () => locks.acquire('order:4', { waitTime: Number.POSITIVE_INFINITY }));
    expect(warnings).toEqual([]);
  });

  it('is not reported for a call that has its own limit', async () => {
    const { locks, warnings } = open();
    const { signal } = new AbortController();
    await contend(
      locks,
      'order:4',
      () => locks.acquire('order:4', { waitTime: '10s' }),
      () => locks.acquire('order:4', { signal }),
    );
    expect(await locks.tryAcquire('order:4').then((lease) => lease?.release())).toBeUndefined();
    expect(warnings).toEqual([]);
  });
});
