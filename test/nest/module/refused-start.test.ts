import { setTimeout as sleep } from 'node:timers/promises';
import { startProcess } from '../../support/processes/start-process.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { refusedStart } from './refused-start.js';

describe('the process of an application that does not start', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.stop());

  it.each([
    ['duplicate names', /RedisLockModule is imported 2 times/],
    ['options of another module', /waitTime/],
    ['a request-scoped option', /the options depend on Tenant/],
    ['a leader for each request', /@Leader needs a provider that exists once/],
  ])(
    'ends, because RedisLockModule, which refused the start, closes its connections: %s',
    refusedStart(() => redis.url),
  );

  describe.each([
    ['ioredis', (port: number) => ({ port })],
    ['node-redis', (port: number) => ({ client: 'node-redis' as const, socket: { port } })],
  ])('with %s', (_, connectionTo) => {
    it.each([
      ['a provider that cannot be created', /no mail server/],
      ['onModuleInit of a provider', /no mail server/],
      ['onModuleInit, after locks were used', /no mail server/],
    ])(
      'ends, because our connections do not keep it alive: %s',
      refusedStart(() => connectionTo(redis.port)),
    );

    it('ends while Redis is down', () =>
      refusedStart(() => connectionTo(1))('onModuleInit, without a Redis', /no mail server/));

    it('stays alive if the application starts, although it has nothing to do', async () => {
      const connection = JSON.stringify(connectionTo(redis.port));
      const { child, line } = await startProcess('refused-start.ts', connection, 'nothing');
      try {
        expect(line).toBe('started');
        await sleep(1_000);
        expect(child.exitCode).toBeNull();
      } finally {
        child.kill('SIGKILL');
      }
    });
  });
});
