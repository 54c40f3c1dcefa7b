import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { packLibrary, ThrowAwayApp } from '../throw-away-app.js';

const INSTALL_TIMEOUT = 300_000;
const PAGE = fileURLToPath(new URL('../../../docs/cron-jobs.md', import.meta.url));

/** The recipe as it stands in docs/cron-jobs.md. */
async function recipe(): Promise<string> {
  const text = await readFile(PAGE, 'utf8');
  const [, code] = /```ts\n([^`]*RunCoordinator[\s\S]*?)\n```/.exec(text) ?? [];
  return code;
}

describe('the recipe for node-cron', () => {
  let folder: string;
  let app: ThrowAwayApp;
  let redis: RedisServer;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'packed-'));
    const nest = ['@nestjs/common@12', '@nestjs/core@12', 'reflect-metadata', 'rxjs@7'];
    const packages = ['node-cron@^4.6.0', 'ioredis@6', ...nest, '@types/node@22', 'typescript@5'];
    app = await ThrowAwayApp.create(await packLibrary(folder), { type: 'module', packages });
    redis = await startRedis();
  }, INSTALL_TIMEOUT);
  afterAll(async () => {
    await redis?.stop();
    await app?.remove();
    await rm(folder, { recursive: true, force: true });
  });

  it('compiles, and runs a task once for each time on two replicas', async () => {
    await app.write('coordinator.ts', await recipe());
    await app.compileFiles(['coordinator.ts'], { module: 'nodenext' });
    const { times, runs, skipped, errors } = (await app.run('node-cron.mjs', { REDIS_URL: redis.url })) as Outcome;
    expect(errors).toEqual([]);
    expect(times).toBeGreaterThanOrEqual(3);
    expect([runs, skipped]).toEqual([times, times]);
  });
});

interface Outcome {
  /** Seconds at which the task was due on both replicas. */
  readonly times: number;
  readonly runs: number;
  readonly skipped: number;
  readonly errors: readonly string[];
}
