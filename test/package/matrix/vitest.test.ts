import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { packLibrary, ThrowAwayApp } from '../throw-away-app.js';

const INSTALL_TIMEOUT = 300_000;

describe('an app with Vitest', () => {
  let folder: string;
  let redis: RedisServer;
  let app: ThrowAwayApp;
  beforeAll(async () => {
    redis = await startRedis();
    folder = await mkdtemp(join(tmpdir(), 'packed-'));
    const nest = ['@nestjs/common@11', '@nestjs/core@11', '@nestjs/testing@11', '@nestjs/platform-express@11'];
    const others = ['ioredis@5', 'reflect-metadata', 'rxjs@7', '@types/node@22', 'typescript@5', 'vitest@4'];
    app = await ThrowAwayApp.create(await packLibrary(folder), { type: 'module', packages: [...nest, ...others] });
  }, INSTALL_TIMEOUT);
  afterAll(async () => {
    await app?.remove();
    await redis?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('tests with fake timers that nestjs-redis-lock/testing follows, and with mocks of the service', async () => {
    // Vitest compiles no decorator metadata, so the app's tsc compiles the tests first.
    await app.compile('vitest.spec.ts', { module: 'nodenext', skipLibCheck: true });
    expect(await app.vitest('vitest.spec.js')).toBe(5);
  });

  it.each(['forks', 'threads'])('keeps locks of a blocked event loop in a pool of %s', async (pool) => {
    await app.compile('blocked.spec.ts', { module: 'nodenext', skipLibCheck: true });
    expect(await app.vitest('blocked.spec.js', [`--pool=${pool}`], { REDIS_URL: redis.url })).toBe(1);
  });
});
