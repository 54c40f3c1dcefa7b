import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { packLibrary, ThrowAwayApp } from '../throw-away-app.js';

const INSTALL_TIMEOUT = 300_000;
const OTHERS = ['reflect-metadata', 'rxjs@7', '@types/node@22'];

describe.each([
  { version: 11, type: 'commonjs', packages: ['ioredis@5', 'typescript@5'] },
  { version: 12, type: 'module', packages: ['ioredis@6'] },
] as const)('the health indicator in an app with terminus $version', ({ version, type, packages }) => {
  let folder: string;
  let redis: RedisServer;
  let app: ThrowAwayApp;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'packed-'));
    const nest = ['common', 'core', 'platform-express', 'terminus'].map((name) => `@nestjs/${name}@${version}`);
    const install = async () =>
      ThrowAwayApp.create(await packLibrary(folder), { type, packages: [...nest, ...packages, ...OTHERS] });
    [app, redis] = await Promise.all([install(), startRedis()]);
  }, INSTALL_TIMEOUT);
  afterAll(async () => {
    await Promise.all([redis?.stop(), app?.remove()]);
    await rm(folder, { recursive: true, force: true });
  });

  it('compiles, is up while Redis answers, down while it does not, and up again', async () => {
    await app.compile('health.ts', { module: 'nodenext', skipLibCheck: true });
    const { url, pid } = redis;
    const up = { code: 200, status: 'up', problems: [] };
    expect(await app.run('health.js', { REDIS_URL: url, REDIS_PID: String(pid) })).toEqual({
      before: up,
      during: { code: 503, status: 'down', problems: [expect.stringContaining('no answer')] },
      after: up,
    });
  });
});
