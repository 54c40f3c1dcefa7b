import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { ReadmeApp } from './readme-app.js';
import { packLibrary, ThrowAwayApp } from './throw-away-app.js';

const INSTALL_TIMEOUT = 300_000;
const OTHERS = ['reflect-metadata', 'rxjs@7', '@types/node@22'];
/** What else an application may be compiled, bundled and tested with. */
export const TOOLS = ['esbuild', 'webpack', '@swc/core', 'jest@30'];

const nest = (version: number) =>
  ['common', 'core', 'platform-express', 'platform-fastify', 'testing'].map((name) => `@nestjs/${name}@${version}`);

export interface VersionsOfReadme {
  readonly nestjs: number;
  readonly type: 'commonjs' | 'module';
  /** Packages besides NestJS; the second one is the Redis client. */
  readonly packages: readonly string[];
}

/** Tests README's code in a fresh application with these versions. */
export function describeReadme({ nestjs, type, packages }: VersionsOfReadme): void {
  describe(`README's code in a fresh app of type ${type} on NestJS ${nestjs} with ${packages[1]}`, () => {
    let folder: string;
    let redis: RedisServer;
    let app: ThrowAwayApp;
    let readme: ReadmeApp;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'packed-'));
      const install = async () =>
        ThrowAwayApp.create(await packLibrary(folder), { type, packages: [...nest(nestjs), ...packages, ...OTHERS] });
      [app, redis] = await Promise.all([install(), startRedis()]);
      readme = new ReadmeApp(app);
      await readme.write();
      // As in an application that `nest new` makes; the types of the library are checked in consumers.test.ts.
      const options = { module: 'nodenext', skipLibCheck: true };
      for (const outDir of ['redis', 'memory']) await app.compileFiles(readme.sources, { ...options, outDir });
      await readme.connect('redis', `connection: '${redis.url}'`);
      await readme.connect('memory', "backend: 'memory'");
    }, INSTALL_TIMEOUT);
    afterAll(async () => {
      await Promise.all([redis?.stop(), app?.remove()]);
      await rm(folder, { recursive: true, force: true });
    });

    const works = { busy: 423, retryAfter: true, free: 200, refused: true };

    it.each([
      ['redis', 'express'],
      ['redis', 'fastify'],
      ['memory', 'express'],
      ['memory', 'fastify'],
    ])('runs as it stands, with locks in %s and requests from %s', async (backend, platform) => {
      const result = await app.run(`${backend}/main.js`, { PLATFORM: platform });
      expect(result).toEqual({ ran: readme.running, ...works });
    });

    it.each(['blocked.mjs', 'blocked.cjs'])('keeps locks of a blocked event loop in %s', async (program) => {
      await app.add(program);
      expect(JSON.parse(await app.node([program], { REDIS_URL: redis.url }))).toEqual({ held: true });
    });

    if (packages.some((name) => name.startsWith('redis@'))) {
      it('has no other client than node-redis, and loads that only to connect', async () => {
        expect(() => app.version('ioredis')).toThrow(/Cannot find module/);
        expect(await app.run('loads-no-client.mjs')).toEqual({ loaded: [] });
      });

      it('compiles strictly, and locks', async () => {
        await app.compile('shop.ts', { module: 'nodenext' });
        expect(await app.run('shop.js', { REDIS_URL: redis.url })).toMatchObject({
          redis: { busy: true, grew: true, superseded: 'LockSupersededError', stands: true, permits: 2 },
          decorated: { shipped: 'order:7 locked', after: false },
        });
      });

      it('never lets two callers in at once, wherever Node.js starts them', async () => {
        const results = await app.run('exclusion.mjs', { REDIS_URL: redis.url });
        const seen = Object.values(results as Record<string, object>).flatMap((sources) => Object.values(sources));
        expect(seen.length).toBeGreaterThan(40);
        for (const result of seen) expect(result).toEqual({ most: 1, served: 6, locked: false });
      });
    }
    if (!packages.includes('webpack')) return;

    it('runs when SWC has compiled it', async () => {
      await app.add('swc.mjs');
      await app.node(['swc.mjs', type === 'module' ? 'es6' : 'commonjs', 'swc', ...readme.sources]);
      await readme.connect('swc', `connection: '${redis.url}'`);
      expect(await app.run('swc/main.js')).toEqual({ ran: readme.running, ...works });
    });

    it.each(['esbuild', 'webpack'])('runs as one file of %s', async (bundler) => {
      await app.add('bundle.mjs');
      await app.node(['bundle.mjs', bundler, 'redis/main.js', `${bundler}.cjs`]);
      expect(await app.run(`${bundler}.cjs`)).toEqual({ ran: readme.running, ...works });
    });

    it.each(['esbuild', 'webpack'])('keeps locks of a blocked event loop in a bundle of %s', async (bundler) => {
      await app.add('blocked.cjs');
      await app.add('bundle.mjs');
      const alone = await mkdtemp(join(tmpdir(), 'bundled-'));
      try {
        const thread = 'node_modules/nestjs-redis-lock/dist/cjs/thread.js';
        await app.node(['bundle.mjs', bundler, 'blocked.cjs', join(alone, 'app.cjs')]);
        await app.node(['bundle.mjs', bundler, 'blocked.cjs', 'blocked-bundle.cjs']);
        const run = (file: string) => app.node([file], { REDIS_URL: redis.url }).then(JSON.parse);
        expect(await run('blocked-bundle.cjs')).toEqual({ held: true });
        const remedy = 'bundle nestjs-redis-lock/thread into a file nestjs-redis-lock-thread.js beside it';
        expect(await run(join(alone, 'app.cjs'))).toEqual({ refused: expect.stringContaining(remedy) });
        await app.node(['bundle.mjs', bundler, thread, join(alone, 'nestjs-redis-lock-thread.js')]);
        expect(await run(join(alone, 'app.cjs'))).toEqual({ held: true });
      } finally {
        await rm(alone, { recursive: true, force: true });
      }
    });

    it('is tested with Jest', async () => {
      await app.compile('consumer.spec.ts', { module: 'nodenext', skipLibCheck: true });
      const modules = type === 'module' ? ['--experimental-vm-modules'] : [];
      const config = JSON.stringify({ transform: {}, testMatch: ['**/consumer.spec.js'] });
      const report = await app.node([...modules, 'node_modules/jest/bin/jest.js', '--config', config, '--json']);
      expect(JSON.parse(report)).toMatchObject({ numPassedTests: 2, numFailedTests: 0 });
    });
  });
}
