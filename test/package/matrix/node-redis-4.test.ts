import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { packLibrary, ThrowAwayApp } from '../throw-away-app.js';

const INSTALL_TIMEOUT = 300_000;

describe('the packed library in an app with node-redis 4', () => {
  let folder: string;
  let tarball: string;
  let redis: RedisServer;
  const apps: ThrowAwayApp[] = [];
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'packed-'));
    [tarball, redis] = await Promise.all([packLibrary(folder), startRedis()]);
  }, INSTALL_TIMEOUT);
  afterAll(async () => {
    await Promise.all([redis?.stop(), ...apps.map((app) => app.remove())]);
    await rm(folder, { recursive: true, force: true });
  });

  it(
    'is installed beside ioredis, and uses that',
    async () => {
      const nest = ['@nestjs/common@11', '@nestjs/core@11', 'reflect-metadata', 'rxjs@7', '@types/node@22'];
      const app = await ThrowAwayApp.create(tarball, { type: 'module', packages: ['redis@4', 'ioredis@5', ...nest] });
      apps.push(app);
      expect(app.version('redis')).toMatch(/^4\./);
      await app.compile('core.ts', { module: 'nodenext' });
      expect(await app.run('core.js', { REDIS_URL: redis.url })).toEqual({ name: 'stock' });
    },
    INSTALL_TIMEOUT,
  );

  it(
    'says that it is too old, if there is no other client',
    async () => {
      const app = await ThrowAwayApp.create(tarball, { type: 'module', packages: ['redis@4'], withoutPeers: true });
      apps.push(app);
      const tooOld = expect.stringMatching(
        /redis 4\.\d+\.\d+ is too old: locks need redis 5\.0\.0 or later\. Update it: npm install redis@latest\. Or keep it, npm install ioredis@latest/,
      );
      expect(await app.run('old-node-redis.mjs', { REDIS_URL: redis.url })).toEqual({
        url: tooOld,
        options: tooOld,
        client: tooOld,
        cluster: tooOld,
      });
    },
    INSTALL_TIMEOUT,
  );
});
