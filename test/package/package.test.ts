import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { ONE_LIBRARY, packLibrary, ThrowAwayApp, type ThrowAwayAppOptions } from './throw-away-app.js';

const INSTALL_TIMEOUT = 300_000;
const LINT = fileURLToPath(new URL('programs/lint-package.mjs', import.meta.url));
const execute = promisify(execFile);

/** What the program `shop` prints if it succeeds. */
const SHOP = {
  redis: { busy: true, grew: true, superseded: 'LockSupersededError', stands: true, permits: 2 },
  memory: { busy: true, grew: true, superseded: 'LockSupersededError', stands: true, permits: 2 },
  decorated: { shipped: 'order:7 locked', after: false },
};

describe('the packed library', () => {
  let folder: string;
  let tarball: string;
  let redis: RedisServer;
  const apps: ThrowAwayApp[] = [];
  const create = async (options: ThrowAwayAppOptions) => {
    const app = await ThrowAwayApp.create(tarball, options);
    apps.push(app);
    return app;
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'packed-'));
    [tarball, redis] = await Promise.all([packLibrary(folder), startRedis()]);
  }, INSTALL_TIMEOUT);
  afterAll(async () => {
    await Promise.all([redis?.stop(), ...apps.map((app) => app.remove())]);
    await rm(folder, { recursive: true, force: true });
  });

  it('has no findings of publint and arethetypeswrong', async () => {
    const { stdout } = await execute(process.execPath, [LINT, tarball], { env: { ...process.env, NODE_OPTIONS: '' } });
    expect(JSON.parse(stdout)).toMatchObject({ publint: [], types: [] });
  }, 60_000);

  // The TypeScript of this repository is version 7.
  describe.each([
    {
      app: 'a CommonJS app on NestJS 10 and ioredis 5, resolving as TypeScript 5 does by default',
      type: 'commonjs',
      packages: ['@nestjs/common@10', '@nestjs/core@10', 'ioredis@5', 'typescript@5'],
      compiler: { module: 'commonjs', moduleResolution: 'node10', esModuleInterop: true },
      majors: ['10', '5'],
    },
    {
      app: 'a CommonJS app on NestJS 11 and ioredis 5',
      type: 'commonjs',
      packages: ['@nestjs/common@11', '@nestjs/core@11', 'ioredis@5'],
      compiler: { module: 'nodenext' },
      majors: ['11', '5'],
    },
    {
      app: 'an ESM app on NestJS 12 and ioredis 6',
      type: 'module',
      packages: ['@nestjs/common@12', '@nestjs/core@12', 'ioredis@6'],
      compiler: { module: 'nodenext' },
      majors: ['12', '6'],
    },
  ] as const)('in $app', ({ type, packages, compiler, majors }) => {
    let app: ThrowAwayApp;
    beforeAll(async () => {
      // With the optional peer that one entry imports when it is loaded, so that all entries are compared.
      const others = ['reflect-metadata', 'rxjs@7', '@types/node@22', '@opentelemetry/api@1.9'];
      app = await create({ type, packages: [...packages, ...others] });
    }, INSTALL_TIMEOUT);

    it('has the versions in question', () => {
      expect([app.version('@nestjs/core'), app.version('ioredis')].map((version) => version.split('.')[0])).toEqual(
        majors,
      );
    });

    it('has loaded no Redis client before it connects', async () => {
      expect(await app.run('loads-no-client.mjs')).toEqual({ loaded: [] });
    });

    it('compiles strictly, and locks', async () => {
      await app.compile('shop.ts', compiler);
      expect(await app.run('shop.js', { REDIS_URL: redis.url })).toEqual(SHOP);
    }, 60_000);

    it('never lets two callers in at once, wherever Node.js starts them', async () => {
      const results = await app.run('exclusion.mjs', { REDIS_URL: redis.url });
      const seen = Object.values(results as Record<string, object>).flatMap((sources) => Object.values(sources));
      expect(seen.length).toBeGreaterThan(40);
      expect(new Set(seen.map((result) => JSON.stringify(result)))).toEqual(
        new Set([JSON.stringify({ most: 1, served: 6, locked: false })]),
      );
    }, 120_000);

    it('is one library when it is both imported and required', async () => {
      expect(await app.run('both-copies.mjs')).toEqual(ONE_LIBRARY);
    });
  });

  describe('in an app without any Redis client', () => {
    let app: ThrowAwayApp;
    beforeAll(async () => {
      app = await create({ type: 'module', packages: ['@types/node@22'], withoutPeers: true });
    }, INSTALL_TIMEOUT);

    it('names the packages to install, and works if locks are in memory', async () => {
      await app.compile('core.ts', { module: 'nodenext' });
      await expect(app.run('core.js', { REDIS_URL: redis.url })).rejects.toThrow(
        /no Redis client is installed for it: npm install ioredis, or npm install redis/,
      );
    }, 60_000);
  });

  describe('in an app with OpenTelemetry', () => {
    let app: ThrowAwayApp;
    beforeAll(async () => {
      const others = ['@nestjs/common@12', '@nestjs/core@12', 'ioredis@6', 'reflect-metadata', 'rxjs@7'];
      app = await create({ type: 'module', packages: ['@opentelemetry/api@1.9.0', ...others] });
    }, INSTALL_TIMEOUT);

    it('is instrumented once, and sees the locks however the library is loaded', async () => {
      expect(await app.run('otel.mjs')).toEqual({
        loadedBefore: [],
        oneInstrumentation: true,
        spans: ['lock acquire a', 'lock hold a', 'lock acquire b', 'lock hold b'],
      });
    }, 60_000);
  });

  describe('in an app without NestJS', () => {
    let app: ThrowAwayApp;
    beforeAll(async () => {
      app = await create({
        type: 'module',
        packages: ['ioredis@6', '@types/node@22'],
        withoutPeers: true,
      });
    }, INSTALL_TIMEOUT);

    it('has a core that compiles and locks', async () => {
      expect(() => app.version('@nestjs/core')).toThrow(/Cannot find module/);
      await app.compile('core.ts', { module: 'nodenext' });
      expect(await app.run('core.js', { REDIS_URL: redis.url })).toEqual({ name: 'stock' });
    }, 60_000);

    it('has a command', async () => {
      const answer = await app.command('nestjs-redis-lock', ['ls', '--json'], { REDIS_URL: redis.url });
      expect(JSON.parse(answer)).toEqual({ locks: [], synchronizers: [], results: [], cursor: null });
    }, 60_000);
  });
});
