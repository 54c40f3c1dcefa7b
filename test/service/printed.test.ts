import { inspect } from 'node:util';
import { jest } from '@jest/globals';
import { ConsoleLogger } from '@nestjs/common';
import {
  createLockService,
  LockExceptionFilter,
  type LockService,
  MemoryBackend,
  MemoryStore,
  nodeRuntime,
} from 'nestjs-redis-lock';
import { LockHealthIndicator } from 'nestjs-redis-lock/health';
import { advisoryLocks, rowLocks } from 'nestjs-redis-lock/sql';
import { LockTestingController } from 'nestjs-redis-lock/testing';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';

const PASSWORD = 'pa55-of-the-redis';

/** The longest text that a log gets of one object. */
const MOST = 2_048;

describe('what logs show of the objects of the library', () => {
  let redis: RedisServer;
  let locks: LockService;
  let quorum: LockService;
  const open: AsyncDisposable[] = [];

  beforeAll(async () => {
    redis = await startRedis({ args: ['--requirepass', PASSWORD] });
    const url = `redis://:${PASSWORD}@127.0.0.1:${redis.port}`;
    locks = createLockService({ connection: url });
    const nodes = [1, 2, 3].map((port) => ({ host: '127.0.0.1', port, password: PASSWORD }));
    quorum = createLockService({ quorum: nodes, logger: { warn() {}, error() {} } });
  });

  afterAll(async () => {
    for (const one of open.reverse()) await one[Symbol.asyncDispose]();
    await Promise.all([locks.close(), quorum.close()]);
    await redis.stop();
  });

  const sql = { url: `postgres://app:${PASSWORD}@127.0.0.1:1/shop` };

  const objects: Record<string, () => unknown> = {
    'a lock service': () => locks,
    'a lock service on a quorum': () => quorum,
    'a lease': async () => kept(await locks.acquire('order:1')),
    'a lease of several names': async () => kept(await locks.acquire(['order:2', 'order:3'])),
    'a lease of a multi-lock': async () =>
      kept(await locks.getMultiLock(locks.getLock('order:4'), locks.getFairLock('order:5')).lock()),
    'a leadership': () => kept(locks.lead('leader', { onElected: async () => {} })),
    'the handles': () => [
      locks.getLock('a'),
      locks.getFairLock('a'),
      locks.getFencedLock('a'),
      locks.getReadWriteLock('a'),
      locks.getReadWriteLock('a').readLock(),
      locks.getReadWriteLock('a').writeLock(),
      locks.getMultiLock(locks.getLock('a'), locks.getLock('b')),
      locks.getRedLock(locks.getLock('a'), locks.getLock('b'), locks.getLock('c')),
    ],
    'semaphores and latches': () => [
      locks.getSemaphore('s'),
      locks.getPermitExpirableSemaphore('p'),
      locks.getCountDownLatch('l'),
    ],
    'the backends of locks in SQL': () => [rowLocks(sql), advisoryLocks(sql)],
    'locks in memory': () => [
      new MemoryStore(),
      new MemoryBackend({ runtime: nodeRuntime, store: new MemoryStore() }),
      new LockTestingController(),
    ],
    'what NestJS injects': () => [new LockHealthIndicator(locks), new LockExceptionFilter()],
    'a refusal': () => locks.acquire('order:1', { waitTime: 0 }).catch((error) => error),
  };

  function kept<T extends AsyncDisposable>(object: T): T {
    open.push(object);
    return object;
  }

  it.each(Object.entries(objects))('is short and without a secret: %s', async (_, make) => {
    const made = await make();
    for (const object of Array.isArray(made) ? made : [made]) {
      const logged = [
        inspect(object, { depth: 20, maxArrayLength: null, maxStringLength: null }),
        inspect(object, { depth: 20, showHidden: true, maxArrayLength: null, maxStringLength: null }),
        JSON.stringify(object) ?? '',
        JSON.stringify({ object }),
        byNest(object),
        byNest(object, { json: true }),
      ];
      for (const text of logged) {
        expect(text).not.toContain(PASSWORD);
        expect(text).not.toMatch(/rediss?:\/\/|postgres:\/\//);
        if (!(object instanceof Error)) expect(text.length).toBeLessThan(MOST);
      }
    }
  });

  it('names the lock, its owner and its token', async () => {
    const lease = kept(await locks.acquire('order:6'));
    const { name, owner, fencingToken: token } = lease;
    expect(JSON.parse(JSON.stringify(lease))).toEqual({ name, owner, token, type: 'reentrant', held: true });
    expect(inspect(lease)).toContain(`name: '${name}'`);
    const both = kept(await locks.acquire(['order:7', 'order:8']));
    expect(JSON.parse(JSON.stringify(both))).toMatchObject({
      names: ['order:7', 'order:8'],
      owners: Object.fromEntries(both.owners),
      tokens: Object.fromEntries(both.tokens),
    });
    expect(JSON.parse(JSON.stringify(locks.getFairLock('order:9')))).toEqual({ name: 'order:9', type: 'fair' });
  });
});

function byNest(object: unknown, options: { json?: boolean } = {}): string {
  const lines: string[] = [];
  const write = jest
    .spyOn(process.stdout, 'write')
    .mockImplementation(((text: unknown) => lines.push(String(text)) > 0) as never);
  new ConsoleLogger('Test', options).log(object);
  write.mockRestore();
  return lines.join('');
}
