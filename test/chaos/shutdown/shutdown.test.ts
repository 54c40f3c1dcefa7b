import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Redis } from 'ioredis';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { fault, ms, printFaultTable } from '../faults/fault-table.js';
import { leftInRedis } from '../faults/leftovers.js';
import { machineTime } from '../history.js';

interface Said {
  readonly at: number;
  readonly what: 'begins' | 'ends' | 'told' | 'SIGTERM';
  readonly name?: string;
  readonly error?: string;
}

/** A Nest application in a separate process. test/nest/module/shutdown.test.ts tests the same in this process. */
describe('an application under load that gets SIGTERM', () => {
  let redis: RedisServer;
  let watch: Redis;
  beforeAll(async () => {
    redis = await startRedis();
    watch = redis.client();
  });
  afterAll(async () => {
    printFaultTable();
    await redis.stop();
  });

  it('lets everything end that was begun, refuses nobody, and leaves all locks free when the last body has ended', async () => {
    const said: Said[] = [];
    const app = startApp(redis.url, said);
    await until(() => said.filter(({ what }) => what === 'ends').length >= 20, 30_000);
    const signalled = machineTime();
    app.kill('SIGTERM');
    const ended = once(app, 'exit');
    const free = await lastLockGone(watch, signalled, () => app.exitCode !== null || app.signalCode !== null);
    await ended;
    const exited = machineTime();

    const heard = said.find(({ what }) => what === 'SIGTERM')!.at;
    const began = said.filter(({ what }) => what === 'begins');
    const ends = said.filter(({ what }) => what === 'ends');
    expect(ends.length).toBe(began.length);
    // The callers that waited for a body of this process, and their next calls.
    expect(began.filter(({ at }) => at > heard).length).toBeGreaterThanOrEqual(100);
    expect(said.filter(({ what }) => what === 'told')).toEqual([]);
    const lastBody = Math.max(...ends.map(({ at }) => at));
    const rest = Math.max(0, free - lastBody);
    expect(rest).toBeLessThan(1_000);
    expect(exited - lastBody).toBeLessThan(5_000);
    fault(
      'SIGTERM under load (40 callers, 10 locks)',
      'running bodies end, with the locks that they need, and so do those that wait for them; nobody is refused',
      `all locks free ${ms(rest)} after the last body; process gone ${ms(exited - lastBody)} after it; ${began.length} bodies begun, ${ends.length} ended`,
    );
    expect(await leftInRedis(redis)).toEqual([]);
  });
});

function startApp(url: string, said: Said[]): ChildProcess {
  const args = ['--import', './test/support/jest/typescript-loader.mjs', 'test/chaos/shutdown/busy-app.ts', url];
  const app = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  createInterface({ input: app.stdout! }).on('line', (line) => said.push(JSON.parse(line)));
  return app;
}

/**
 * Checks the locks until the process has ended. Returns the time of the first answer without any lock, after which
 * there was none.
 */
async function lastLockGone(watch: Redis, signalled: number, gone: () => boolean): Promise<number> {
  let free: number | undefined = signalled;
  while (!gone() || free === undefined) {
    const locked = (await watch.keys('lock:*')).length > 0;
    free = locked ? undefined : (free ?? machineTime());
  }
  return free;
}
