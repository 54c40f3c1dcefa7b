import { inspect } from 'node:util';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { freePort } from '../../support/servers/free-port.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

const SECRET = 'Tr0ub4dor&3';
/** The password as it is written in a URL, and the part of it that a shell or a log could show. */
const TRACES = /Tr0ub4dor|Tr0ub4dor%263/i;

/** Passwords enter only through the connection option, and must not leave the library anywhere. */
describe('a password in the connection', () => {
  let redis: RedisServer;
  const said: unknown[] = [];
  const original = { ...console };

  beforeAll(async () => {
    redis = await startRedis({ args: ['--requirepass', 'another-one'] });
    for (const method of ['log', 'info', 'warn', 'error', 'debug'] as const) {
      console[method] = (...words: unknown[]) => void said.push(...words);
    }
  });
  afterAll(async () => {
    Object.assign(console, original);
    await redis.stop();
  });
  beforeEach(() => {
    said.length = 0;
  });

  function service(connection: RedisLockOptions['connection']): LockService {
    const note = (message: string) => void said.push(message);
    const locks = createLockService({ connection, commandTimeout: 300, logger: { warn: note, error: note } });
    locks.on('lost', (event) => void said.push(event));
    return locks;
  }

  const encoded = encodeURIComponent(SECRET);
  const at = (port: number) => ({ host: '127.0.0.1', port });
  const cases: [string, () => Promise<RedisLockOptions['connection']> | RedisLockOptions['connection']][] = [
    ['that is wrong, in a URL', () => redis.url.replace('//', `//:${encoded}@`)],
    ['that is wrong, of a user', () => redis.url.replace('//', `//clerk:${encoded}@`)],
    ['that is wrong, in options', () => ({ port: redis.port, password: SECRET })],
    ['of a host that does not exist', () => `redis://:${encoded}@no-such-host.invalid:6379`],
    ['of a host that refuses', async () => `redis://:${encoded}@127.0.0.1:${await freePort()}`],
    [
      'of Sentinels that cannot be reached',
      async () => ({ name: 'm', sentinels: [at(await freePort())], password: SECRET, sentinelPassword: SECRET }),
    ],
    [
      'of a Redis that is no Sentinel',
      () => ({ name: 'm', sentinels: [at(redis.port)], password: SECRET, sentinelPassword: SECRET }),
    ],
    [
      'of a cluster that cannot be reached',
      async () => ({ nodes: [at(await freePort())], options: { redisOptions: { password: SECRET } } }),
    ],
    [
      'of a Redis that is no cluster',
      () => ({ nodes: [at(redis.port)], options: { redisOptions: { password: SECRET } } }),
    ],
    [
      'of a cluster, in URLs',
      () => ({
        nodes: [`redis://:${encoded}@127.0.0.1:${redis.port}`],
        options: { redisOptions: { password: SECRET } },
      }),
    ],
  ];

  it.each(cases)('%s is in no log line and no error', async (_, connection) => {
    const locks = service(await connection());
    const calls = [
      locks.acquire('order', { waitTime: 700 }),
      locks.acquire('order', { waitTime: 700, type: 'fair' }),
      locks.acquire(['order', 'stock'], { waitTime: 0 }),
      locks.inspect('order'),
      locks.forceRelease('order'),
      locks.getSemaphore('pool').availablePermits(),
    ];
    for (const result of await Promise.allSettled(calls)) {
      expect(result.status).toBe('rejected');
      said.push((result as PromiseRejectedResult).reason);
    }
    await locks.close();
    expect(said.length).toBeGreaterThanOrEqual(calls.length);
    for (const each of said) expect(everythingIn(each)).not.toMatch(TRACES);
  });

  it.each([
    `redis//:${SECRET}@127.0.0.1`,
    `http://:${SECRET}@127.0.0.1`,
    `redis://:${SECRET}@127.0.0.1:99999`,
    `redis://:${SECRET}@[::1`,
    ` redis://:${SECRET}@127.0.0.1`,
    `clerk:${SECRET}@127.0.0.1:6379`,
  ])('in a URL that cannot be read is not repeated', (url) => {
    let error: unknown;
    try {
      service(url);
    } catch (reason) {
      error = reason;
    }
    expect(error).toMatchObject({ name: 'LockConfigurationError' });
    expect(everythingIn(error)).not.toMatch(TRACES);
  });

  it.each([[{ nodes: [] as string[], password: SECRET }], [[SECRET]], [{ backend: SECRET }]])(
    'in an option of a wrong shape is not repeated',
    (connection) => {
      let error: unknown;
      try {
        service(connection as unknown as RedisLockOptions['connection']).close();
      } catch (reason) {
        error = reason;
      }
      expect(everythingIn(error)).not.toMatch(TRACES);
    },
  );
});

/** Everything that a logger could print: text, JSON, stack, causes and hidden properties. */
function everythingIn(value: unknown): string {
  const shown = inspect(value, { depth: 12, showHidden: true, maxStringLength: null, maxArrayLength: null });
  return `${String(value)}\n${shown}\n${JSON.stringify(value) ?? ''}`;
}
