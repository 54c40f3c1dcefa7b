import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { packLibrary, ThrowAwayApp } from '../throw-away-app.js';

const INSTALL_TIMEOUT = 300_000;

/** An application that uses old versions of what this library can use, for something else. */
describe('the packed library beside mysql2@2, redis@3, pg@7 and ioredis@4', () => {
  const NEST = ['@nestjs/common@11', '@nestjs/core@11', 'reflect-metadata', 'rxjs@7', '@types/node@22'];
  const OLD = ['mysql2@2', 'redis@3', 'pg@7', 'ioredis@4'];
  let folder: string;
  let tarball: string;
  let redis: RedisServer;
  const apps: ThrowAwayApp[] = [];
  const install = async (...packages: string[]) => {
    const app = await ThrowAwayApp.create(tarball, { type: 'module', packages: [...packages, ...NEST] });
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

  it(
    'is installed by npm, and refuses what it cannot use, with the version, what is needed and the remedy',
    async () => {
      const app = await install(...OLD);
      expect(['redis', 'pg', 'ioredis'].map((name) => app.version(name)[0])).toEqual(['3', '7', '4']);
      const refused = (name: string, needed: string) =>
        expect.stringMatching(
          new RegExp(
            `^LockConfigurationError: .*${name} [\\d.]+ is too old: locks need ${name} ${needed} or later.*\\. Update it: npm install \\w+@latest\\. Or keep `,
          ),
        );
      const [ioredis, nodeRedis] = [refused('ioredis', '5.4.1'), refused('redis', '5.0.0')];
      const [mysql, postgres] = [refused('mysql2', '3.9.0'), refused('pg', '8.11.0')];
      expect(await app.run('old-packages.mjs')).toEqual({
        url: ioredis,
        'options of ioredis': ioredis,
        'options of node-redis': nodeRedis,
        'client of ioredis': ioredis,
        'cluster of ioredis': ioredis,
        'client of node-redis': nodeRedis,
        'url of MySQL': mysql,
        'pool of mysql2': mysql,
        'pool of mysql2/promise': mysql,
        'url of PostgreSQL': postgres,
        'pool of pg': postgres,
      });
    },
    INSTALL_TIMEOUT,
  );

  it.each([
    ['redis@6 beside ioredis@4', ['redis@6', 'ioredis@4']],
    ['iovalkey beside ioredis@4 and redis@3', ['iovalkey@0.4', 'ioredis@4', 'redis@3']],
    ['ioredis@6 beside redis@3', ['ioredis@6', 'redis@3']],
  ])(
    'opens a URL with %s',
    async (_, packages) => {
      const app = await install(...packages);
      await app.compile('core.ts', { module: 'nodenext' });
      expect(await app.run('core.js', { REDIS_URL: redis.url })).toEqual({ name: 'stock' });
    },
    INSTALL_TIMEOUT,
  );
});
