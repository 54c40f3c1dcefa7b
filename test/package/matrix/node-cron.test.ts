import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { AppWithRedis } from './app-with-redis.js';

const PAGE = fileURLToPath(new URL('../../../docs/cron-jobs.md', import.meta.url));

/** The recipe as it stands in docs/cron-jobs.md. */
async function recipe(): Promise<string> {
  const text = await readFile(PAGE, 'utf8');
  const [, code] = /```ts\n([^`]*RunCoordinator[\s\S]*?)\n```/.exec(text) ?? [];
  return code;
}

describe('the recipe for node-cron', () => {
  const nest = ['@nestjs/common@12', '@nestjs/core@12', 'reflect-metadata', 'rxjs@7'];
  const packages = ['node-cron@^4.6.0', 'ioredis@6', ...nest, '@types/node@22', 'typescript@5'];
  const world = new AppWithRedis({ type: 'module', packages });

  it('compiles, and runs a task once for each time on two replicas', async () => {
    const { app, redis } = world;
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
