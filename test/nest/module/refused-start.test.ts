import { once } from 'node:events';
import { startProcess } from '../../support/processes/start-process.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

describe('an application that a RedisLockModule refuses to start', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.stop());

  it.each([
    ['duplicate names', /RedisLockModule is imported 2 times/],
    ['options of another module', /waitTime/],
    ['a request-scoped option', /the options depend on Tenant/],
  ])('closes its connections, so that the process ends: %s', async (reason, says) => {
    const { child, line } = await startProcess('refused-start.ts', redis.url, reason);
    try {
      expect(line).toMatch(says);
      const ended = child.exitCode !== null || once(child, 'exit', { signal: AbortSignal.timeout(10_000) });
      await ended;
      expect(child.exitCode).toBe(0);
    } finally {
      child.kill('SIGKILL');
    }
  });
});
