import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { BackendError } from '../../../lib/backends/lock-backend.js';
import { LockUnavailableError } from '../../../lib/engine/errors.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { itOfIoredis } from '../../support/client-under-test.js';
import { errorOf } from '../../support/section.js';
import { freePort } from '../../support/servers/free-port.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

const SECRET = 'Tr0ub4dor';

type Ask = (locks: LockService, waitTime: number, name: string) => Promise<unknown>;

const WAYS_TO_WAIT: [string, Ask][] = [
  ['acquire()', (locks, waitTime, a) => locks.acquire(a, { waitTime })],
  ['tryAcquire()', (locks, waitTime, a) => locks.tryAcquire(a, { waitTime })],
  ['several names', (locks, waitTime, a) => locks.acquire([a, `${a} b`], { waitTime })],
  ['a fair lock', (locks, waitTime, a) => locks.acquire(a, { waitTime, type: 'fair' })],
  ['a write lock', (locks, waitTime, a) => locks.acquire(a, { waitTime, type: 'write' })],
  ['a handle', (locks, waitTime, a) => locks.getLock(a).tryLock(waitTime)],
  ['a fenced lock', (locks, waitTime, a) => locks.getFencedLock(a).tryLock(waitTime)],
  [
    'a multi-lock',
    (locks, waitTime, a) => locks.getMultiLock(locks.getLock(a), locks.getFairLock(`${a} b`)).tryLock(waitTime),
  ],
  ['a red lock', (locks, waitTime, a) => locks.getRedLock(locks.getLock(a), locks.getLock(`${a} b`)).tryLock(waitTime)],
  ['a semaphore', (locks, waitTime, a) => locks.getSemaphore(a).tryAcquire(1, waitTime)],
  ['permits with ids', (locks, waitTime, a) => locks.getPermitExpirableSemaphore(a).tryAcquire(waitTime)],
  ['a latch', (locks, waitTime, a) => locks.getCountDownLatch(a).await(waitTime)],
];

/** The messages of an error and of all its causes. */
function chain(error: Error): Error[] {
  return error.cause instanceof Error ? [error, ...chain(error.cause)] : [error];
}

describe('LockUnavailableError says why', () => {
  const opened: { close(): Promise<void> }[] = [];
  let guarded: RedisServer;

  beforeAll(async () => {
    guarded = await startRedis({ args: ['--requirepass', 'another-one'] });
  });
  afterEach(() => Promise.all(opened.splice(0).map((service) => service.close())));
  afterAll(() => guarded.stop());

  function service(options: RedisLockOptions): LockService {
    const locks = createLockService({ logger: { warn: () => {}, error: () => {} }, shutdownTimeout: 50, ...options });
    opened.push(locks);
    return locks;
  }

  /** Called after the service has found the reason, as a running service would have. */
  async function refusalOf(locks: LockService, ask: Ask, waitTime: number): Promise<Error> {
    let known = false;
    locks.on('error', () => {
      known = true;
    });
    await until(() => known);
    const error = await errorOf(ask(locks, waitTime, 'a'));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.cause).toBeInstanceOf(BackendError);
    return error;
  }

  // A single try, a waitTime shorter than the command timeout, and a longer one.
  const durations = [
    [30, 1_000],
    [400, 100],
    [0, 100],
  ];

  it.each(durations)(
    'when Redis refuses connections, in every way to wait: waitTime %p, commandTimeout %p',
    async (waitTime, commandTimeout) => {
      const told = await Promise.all(
        WAYS_TO_WAIT.map(async ([way, ask]) => {
          const port = await freePort();
          const connection = `redis://:${SECRET}@127.0.0.1:${port}`;
          const error = await refusalOf(service({ connection, commandTimeout }), ask, waitTime);
          const errors = chain(error) as NodeJS.ErrnoException[];
          return {
            way,
            reason: error.message.includes(`connect ECONNREFUSED 127.0.0.1:${port}`),
            code: errors.some(({ code }) => code === 'ECONNREFUSED'),
            secret: errors.some(({ message, stack }) => `${message}${stack}`.includes(SECRET)),
          };
        }),
      );
      const all = WAYS_TO_WAIT.map(([way]) => ({ way, reason: true, code: true, secret: false }));
      expect(told).toEqual(all);
    },
  );

  it.each([0, 300])('when the host does not exist, waitTime %p', async (waitTime) => {
    const locks = service({ connection: 'redis://no-such-host.invalid:6379', commandTimeout: 100 });
    const error = await refusalOf(locks, (locks) => locks.acquire('a', { waitTime }), waitTime);
    expect(error.message).toMatch(/ENOTFOUND|EAI_AGAIN/);
  });

  it.each([
    ['NOAUTH', undefined, 0],
    ['NOAUTH', undefined, 300],
    ['WRONGPASS', SECRET, 0],
    ['WRONGPASS', SECRET, 300],
  ])('when Redis answers %s, to password %p and waitTime %p', async (code, password, waitTime) => {
    const locks = service({ connection: { port: guarded.port, host: '127.0.0.1', password }, commandTimeout: 300 });
    const error = await refusalOf(locks, (locks) => locks.acquire('a', { waitTime }), waitTime);
    expect(error.message).toContain(code);
    expect(
      chain(error)
        .map(({ message }) => message)
        .join(),
    ).not.toContain(SECRET);
  });

  it.each([0, 100, 600])('when a majority of a quorum is away, waitTime %p', async (waitTime) => {
    const ports = [await freePort(), await freePort()];
    const quorum = [guarded.url.replace('//', '//:another-one@'), ...ports.map((port) => `redis://127.0.0.1:${port}`)];
    const locks = service({ quorum, commandTimeout: 300 });
    const error = await refusalOf(locks, (locks) => locks.acquire('a', { waitTime }), waitTime);
    expect(error.message).toMatch(new RegExp(`ECONNREFUSED 127.0.0.1:(${ports.join('|')})`));
  });

  it.each([0, 100])('when no node of a cluster can be reached, waitTime %p', async (waitTime) => {
    const port = await freePort();
    const locks = service({ connection: { nodes: [{ host: '127.0.0.1', port }] }, commandTimeout: 300 });
    const error = await refusalOf(locks, (locks) => locks.acquire('a', { waitTime }), waitTime);
    expect(error.message).toMatch(/Failed to refresh slots cache.*\(.+\)|\(connect ECONNREFUSED/);
  });

  it.each([0, 100])('when a borrowed client is not connected, waitTime %p', async (waitTime) => {
    const client = new Redis({ host: '127.0.0.1', port: await freePort(), maxRetriesPerRequest: null });
    client.on('error', () => {});
    const locks = service({ connection: client, commandTimeout: 300 });
    const error = await errorOf(locks.acquire('a', { waitTime }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toMatch(
      /(no connection|not sent) within \d+ ms \(the connection is not ready: ioredis says '(re)?connecting'\)/,
    );
    client.disconnect();
  });

  it('when Redis does not answer within the command timeout', async () => {
    const silent = await startRedis();
    const locks = service({ connection: silent.url, commandTimeout: 200 });
    const lease = await locks.acquire('held');
    silent.pause();
    for (const [way, ask] of WAYS_TO_WAIT) {
      for (const waitTime of [0, 50, 300]) {
        const error = await errorOf(ask(locks, waitTime, `${way} ${waitTime}`));
        expect(error).toBeInstanceOf(LockUnavailableError);
        expect(error.cause).toBeInstanceOf(BackendError);
        expect(error.message).toMatch(/(no answer|not sent) within (50|200|300) ms|no usable answer for \d+ ms/);
      }
    }
    for (const asked of [locks.isLocked('a'), locks.inspect('a'), locks.forceRelease('a'), lease.extend('1m')]) {
      const error = await errorOf(asked);
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toMatch(/(no answer|not sent) within 200 ms/);
      expect(error.cause).toBeInstanceOf(BackendError);
    }
    silent.resume();
    await lease.release();
    await locks.close();
    await silent.stop();
  });

  itOfIoredis('in the log once in ten seconds for each reason, however often it is found', async () => {
    const lines: string[] = [];
    // After 2 s, another line says that there is no connection yet.
    const note = (line: string) => void (line.includes('not connected after') || lines.push(line));
    const logger = { warn: note, error: note };
    let rounds = 0;
    const sentinelRetryStrategy = (times: number) => {
      rounds = times;
      return times;
    };
    const sentinels = [{ host: '127.0.0.1', port: await freePort() }];
    const unreachable = service({ connection: { sentinels, name: 'mymaster', sentinelRetryStrategy }, logger });
    await until(() => rounds >= 20);
    expect(lines).toEqual([expect.stringContaining('All sentinels are unreachable. Retrying from scratch after 1ms')]);

    await unreachable.close();
    lines.length = 0;
    const tries = [0, 0, 0];
    const quorum = await Promise.all(
      tries.map(async (_, n) => ({
        host: '127.0.0.1',
        port: await freePort(),
        retryStrategy: (times: number) => {
          tries[n] = times;
          return 5;
        },
      })),
    );
    service({ quorum, logger });
    await until(() => tries.every((times) => times > 10));
    const expected = quorum.map(({ port }) => expect.stringContaining(`connect ECONNREFUSED 127.0.0.1:${port}`));
    expect(lines).toHaveLength(3);
    expect(lines).toEqual(expect.arrayContaining(expected));
  });

  it('also to callers that wait, and in the log, when Redis answers with an error', async () => {
    const full = await startRedis();
    const lines: string[] = [];
    const logger = { warn: (line: string) => void lines.push(line), error: (line: string) => void lines.push(line) };
    const locks = service({ connection: full.url, outageTimeout: 500, logger });
    await (await locks.acquire('a')).release();
    await full.client().config('SET', 'maxmemory', '1');
    const error = await errorOf(locks.acquire('a'));
    expect(error.message).toMatch(/^Gave up waiting for the lock 'a': .*: no usable answer for \d+ ms \(.*OOM .*\)$/);
    expect(lines).toEqual([
      expect.stringMatching(/refuses to take locks \(.*OOM .*\)\. A caller waits for the lock 'a'/),
    ]);
    expect(lines[0].match(/redis 127\.0\.0\.1/g)).toHaveLength(1);
    await locks.close();
    await full.stop();
  });

  itOfIoredis(
    'and the log names the server once, even if its address looks like the beginning of a reason',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'locks: '));
      const path = join(folder, 'redis.sock');
      const full = await startRedis({ args: ['--unixsocket', path] });
      const lines: string[] = [];
      const logger = { warn: (line: string) => void lines.push(line), error: (line: string) => void lines.push(line) };
      const locks = service({ connection: { path }, outageTimeout: 500, logger });
      await (await locks.acquire('a')).release();
      await full.client().config('SET', 'maxmemory', '1');
      await errorOf(locks.acquire('a'));
      expect(lines).toEqual([
        expect.stringMatching(/refuses to take locks \(.*OOM .*\)\. A caller waits for the lock 'a'/),
      ]);
      expect(lines[0].split('redis.sock')).toHaveLength(2);
      await locks.close();
      await full.stop();
      await rm(folder, { recursive: true });
    },
  );

  it('but without an earlier reason, once it is connected again', async () => {
    const server = await startRedis();
    const locks = service({ connection: server.url, commandTimeout: 200 });
    await (await locks.acquire('a')).release();
    await server.kill();
    const refused = await errorOf(locks.acquire('a', { waitTime: 500 }));
    expect(refused.message).toContain('ECONNREFUSED');
    await server.start();
    await (await locks.acquire('a')).release();
    server.pause();
    const silent = await errorOf(locks.acquire('a', { waitTime: 50 }));
    expect(silent.message).not.toContain('ECONNREFUSED');
    server.resume();
    await locks.close();
    await server.stop();
  });
});
