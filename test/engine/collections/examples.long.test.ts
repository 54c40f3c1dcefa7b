import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

const path = (file: string) => fileURLToPath(new URL(file, import.meta.url));
const LOADER = path('../../support/jest/typescript-loader.mjs');
const PROGRAM = path('../../support/processes/idle-service.ts');

/** What all acquisitions run, in names that neither Node.js nor ioredis has. */
const OURS = ['LockLease', 'HeldLock', 'LockQueue', 'Waiter', 'createLease', 'serveNext', 'setDeadlines', 'endIfIdle'];

describe('a service that is idle while the garbage is collected', () => {
  let redis: RedisServer;

  beforeAll(async () => {
    redis = await startRedis();
  });

  afterAll(() => redis.stop());

  function run(flags: readonly string[], ...args: readonly string[]): string {
    const program = ['--import', LOADER, '--expose-gc', ...flags, PROGRAM, redis.url, ...args];
    return execFileSync(process.execPath, program, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  }

  it('keeps the optimized code of acquisitions', () => {
    const lines = run(['--trace-deopt'])
      .split('\n')
      .filter((line) => /marking dependent code.*weak/.test(line));
    const thrownAway = new Set(lines.map((line) => /SharedFunctionInfo (\w+)/.exec(line)?.[1]));
    expect(thrownAway).toContain('Forgotten'); // V8 reports what it throws away
    expect(OURS.filter((name) => thrownAway.has(name))).toEqual([]);
  });

  it('keeps nothing of its callers', () => {
    expect(run([], 'signals')).toBe('in memory: \n');
  });
});
