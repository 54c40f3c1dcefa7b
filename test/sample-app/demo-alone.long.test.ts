import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../support/servers/free-port.js';
import { until } from '../support/until.js';
import { Demo, expectGoodResult } from './run-demo.js';

describe('the demo', () => {
  let demo: Demo | undefined;
  afterEach(async () => {
    demo?.kill('SIGKILL');
    await until(() => demo?.running.length === 0);
  });

  it('oversells without the lock only, in one process where there is no Redis, and says how to see two', async () => {
    const nothing = mkdtempSync(join(tmpdir(), 'no-redis-'));
    demo = new Demo({ PATH: nothing });
    const code = await demo.exitCode();
    rmSync(nothing, { recursive: true });
    expectGoodResult(demo.output);
    expect(code).toBe(0);
    expect(demo.output).toContain('1 process, shop-1, with its locks in memory');
    expect(demo.output).toContain('REDIS_URL=redis://localhost:6379 npm run demo');
    expect(demo.running).toEqual([]);
  }, 90_000);

  it.each([
    { options: ['--stuck', '--after', 'soon'], says: "--after is 'soon'; it must be 2 to 60 seconds" },
    { options: ['--stick'], says: "Unknown option '--stick'" },
    { options: ['--stuck'], says: '--stuck needs two processes that share a Redis' },
  ])(
    '$options: fails, and says why',
    async ({ options, says }) => {
      const nothing = mkdtempSync(join(tmpdir(), 'no-redis-'));
      demo = new Demo({ PATH: nothing }, ...options);
      expect(await demo.exitCode()).toBe(1);
      rmSync(nothing, { recursive: true });
      expect(demo.output).toContain(`✗ ${says}`);
    },
    60_000,
  );

  it('says that a Redis cannot be reached, and fails', async () => {
    const port = await freePort();
    demo = new Demo({ REDIS_URL: `redis://:secret@127.0.0.1:${port}` });
    expect(await demo.exitCode()).toBe(1);
    expect(demo.output).toMatch(/✗ The Redis at 127\.0\.0\.1:\d+\/0 cannot be used: .*ECONNREFUSED/);
    expect(demo.output).not.toContain('secret');
  }, 60_000);
});
