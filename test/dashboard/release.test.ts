import type { RedisLockDashboardOptions } from '../../lib/dashboard.js';
import { type DashboardApp, type DashboardAppOptions, openDashboard, type Platform } from './dashboard-app.js';

const reason = 'the worker hangs since noon';

let app: DashboardApp | undefined;
const open = async (options?: DashboardAppOptions) => {
  app = await openDashboard(options);
  return app;
};
afterEach(async () => {
  await app?.close();
  app = undefined;
});

/** What a name of a lock may contain, and a path, a pattern, a page or a log might take for something else. */
const ODD_NAMES = [
  'a/b c%2F?#',
  '%',
  '%zz',
  '%25',
  '100 %',
  '../../etc/passwd',
  'a+b&c=d',
  `it's "quoted"`,
  '<script>alert(1)</script>',
  '{{base}}',
  '$& $1 $$',
  '\\*?[a-z]',
  'Straße:日本:🔒:e\u0301',
  '__proto__',
  'constructor',
];

describe.each<Platform>(['Express', 'Fastify'])('a lock with an odd name on %s', (platform) => {
  it.each(ODD_NAMES)('%j is listed, found and released', async (name) => {
    const dashboard = await open({ platform, dashboard: { readOnly: false } });
    const lease = await dashboard.locks.acquire(name);
    const { locks } = await dashboard.board(`?search=${encodeURIComponent(name)}`);
    expect(locks.rows.map((row: { name: string }) => row.name)).toEqual([name]);
    expect(await dashboard.release(name, { reason, owners: [lease.owner] })).toEqual({ status: 200 });
    expect(await dashboard.locks.isLocked(name)).toBe(false);
    const { events } = await dashboard.board();
    expect(events.find(({ kind }: { kind: string }) => kind === 'released').name).toBe(name);
  });
});

describe('who releases a lock by force', () => {
  it.each<[string, NonNullable<RedisLockDashboardOptions['userOf']>]>([
    [
      'throws',
      () => {
        throw new TypeError("Cannot read properties of undefined (reading 'email')");
      },
    ],
    ['tells no text', () => ({ email: 'ann@example.org' }) as never],
    ['rejects', () => Promise.reject(new Error('no session')) as never],
  ])('is asked first: where userOf %s, nothing is released', async (_what, userOf) => {
    const dashboard = await open({ dashboard: { readOnly: false, userOf } });
    const lease = await dashboard.locks.acquire('order:42');
    const answer = await dashboard.release('order:42', { reason });
    expect(answer.status).toBe(500);
    expect(answer.message).toMatch(/userOf.*nothing was released/);
    expect(await dashboard.locks.isLocked('order:42')).toBe(true);
    expect(dashboard.logger.lines.some((line) => /userOf/.test(line))).toBe(true);
    await lease.release();
  });

  it('is logged in one line, also when it is asked for and has line breaks', async () => {
    const dashboard = await open({
      dashboard: { readOnly: false, userOf: async () => 'ann\u2028FAKE\nFAKE' },
    });
    await dashboard.locks.acquire('order:42');
    expect(await dashboard.release('order:42', { reason })).toEqual({ status: 200 });
    const line = dashboard.logger.lines.find((text) => text.includes('was released by force')) as string;
    expect(line).toMatch(/by ann FAKE FAKE: the worker hangs since noon; it was held by /);
    expect(line).not.toMatch(/[\n\u2028]/);
  });
});
