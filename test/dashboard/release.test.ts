import { jest } from '@jest/globals';
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

/** What the name of a lock may contain, but has another meaning in a path, a pattern, a page or a log. */
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

describe('an operator who releases a lock by force', () => {
  it.each<[string, NonNullable<RedisLockDashboardOptions['userOf']>]>([
    [
      'throws',
      () => {
        throw new TypeError("Cannot read properties of undefined (reading 'email')");
      },
    ],
    ['tells no text', () => ({ email: 'ann@example.org' }) as never],
    ['rejects', () => Promise.reject(new Error('no session')) as never],
  ])('is asked for first: if userOf %s, nothing is released', async (_what, userOf) => {
    const dashboard = await open({ dashboard: { readOnly: false, userOf } });
    const lease = await dashboard.locks.acquire('order:42');
    const answer = await dashboard.release('order:42', { reason });
    expect(answer.status).toBe(500);
    expect(answer.message).toMatch(/userOf.*nothing was released/);
    expect(await dashboard.locks.isLocked('order:42')).toBe(true);
    expect(dashboard.logger.lines.some((line) => /userOf/.test(line))).toBe(true);
    await lease.release();
  });

  it('is logged in one line, even if userOf gives a name with line breaks', async () => {
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

describe('a lock that changes hands after a forced release has read it', () => {
  /** Runs this after the dashboard has read the lock and before it releases it. */
  const meanwhile = (locks: DashboardApp['locks'], happen: () => Promise<unknown>) => {
    const inspect = locks.inspect.bind(locks);
    jest.spyOn(locks, 'inspect').mockImplementationOnce(async (name) => {
      const seen = await inspect(name);
      await happen();
      return seen;
    });
  };

  it('is left to its new holder, and nothing is logged', async () => {
    const dashboard = await open({ dashboard: { readOnly: false } });
    const first = await dashboard.locks.acquire('order:42', { leaseTime: '1m' });
    const waiting = dashboard.locks.acquire('order:42', { leaseTime: '2m' });
    meanwhile(dashboard.locks, async () => {
      await first.release();
      await waiting;
    });
    const answer = await dashboard.release('order:42', { reason, owners: [first.owner] });
    expect(answer).toEqual({ status: 409, message: expect.stringContaining('nothing was released') });
    const second = await waiting;
    expect(second.held).toBe(true);
    expect(dashboard.logger.lines.filter((line) => line.includes('was released by force'))).toEqual([]);
    expect((await dashboard.board()).events).toEqual([]);
    await second.release();
  });

  it('is logged with the holders that it was in fact taken from', async () => {
    const dashboard = await open({ dashboard: { readOnly: false } });
    const { locks } = dashboard;
    const [left, held] = await Promise.all([1, 2].map(() => locks.acquire('order:42', { type: 'read' })));
    meanwhile(locks, () => left.release());
    expect(await dashboard.release('order:42', { reason, owners: [left.owner, held.owner] })).toEqual({ status: 200 });
    const [line] = dashboard.logger.lines.filter((text) => text.includes('was released by force'));
    expect(line).toContain(held.owner);
    expect(line).not.toContain(left.owner);
  });

  it('is logged with the holder that it was in fact taken from if the request names none', async () => {
    const dashboard = await open({ dashboard: { readOnly: false } });
    const { locks } = dashboard;
    const first = await locks.acquire('order:42', { leaseTime: '1m' });
    const waiting = locks.acquire('order:42', { leaseTime: '2m' });
    meanwhile(locks, async () => {
      await first.release();
      await waiting;
    });
    expect(await dashboard.release('order:42', { reason })).toEqual({ status: 200 });
    const [line] = dashboard.logger.lines.filter((text) => text.includes('was released by force'));
    expect(line).toContain((await waiting).owner);
    expect(line).not.toContain(first.owner);
  });
});

it('releases all readers of a lock of which the page shows a few, and says that there are others', async () => {
  const dashboard = await open({ dashboard: { readOnly: false } });
  const { locks } = dashboard;
  const readers = await Promise.all(Array.from({ length: 8 }, () => locks.acquire('order:42', { type: 'read' })));
  const owners = readers.slice(0, 5).map(({ owner }) => owner);
  expect(await dashboard.release('order:42', { reason, owners, others: true })).toEqual({ status: 200 });
  expect(await locks.isLocked('order:42')).toBe(false);
});

it('releases nothing where the fenced lock has had another token since it was shown', async () => {
  const dashboard = await open({ dashboard: { readOnly: false } });
  const { locks } = dashboard;
  const lease = await locks.acquire('order:42', { type: 'fenced' });
  const body = { reason, owners: [lease.owner], token: lease.fencingToken - 1 };
  expect((await dashboard.release('order:42', body)).status).toBe(409);
  expect(lease.held).toBe(true);
  expect((await dashboard.release('order:42', { ...body, token: 'x' })).status).toBe(400);
  expect(await dashboard.release('order:42', { ...body, token: lease.fencingToken })).toEqual({ status: 200 });
});
