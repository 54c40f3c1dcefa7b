import { VersioningType } from '@nestjs/common';
import { map } from 'rxjs';
import type { RedisDirectory } from '../../lib/backends/redis/directory/redis-directory.js';
import { RedisLockDashboardModule, type RedisLockDashboardOptions } from '../../lib/dashboard.js';
import {
  createLockService,
  LockConfigurationError,
  type LockService,
  MemoryBackend,
  MemoryStore,
  nodeRuntime,
} from '../../lib/index.js';
import { freePort } from '../support/servers/free-port.js';
import { until } from '../support/until.js';
import {
  type DashboardApp,
  type DashboardAppOptions,
  openDashboard,
  PassGuard,
  type Platform,
} from './dashboard-app.js';

let app: DashboardApp | undefined;
const open = async (options?: DashboardAppOptions) => {
  app = await openDashboard(options);
  return app;
};
afterEach(async () => {
  await app?.close();
  app = undefined;
});

describe('the options of a dashboard', () => {
  it.each<[Partial<RedisLockDashboardOptions> & Record<string, unknown>, RegExp]>([
    [{ path: 'locks' }, /give guards that decide who may see it, or public: true/],
    [{ path: 'locks', guards: [] }, /give guards that decide who may see it, or public: true/],
    [{ path: 'locks', public: 'yes' as never }, /public is 'yes'; it must be true or false/],
    [{ path: 'locks', guards: [{}] as never }, /guards is a list; it must be a list of guards/],
    [{ public: true }, /path is missing; give the place of the page/],
    [{ path: '/', public: true }, /path is '\/'; it must be the place of the page/],
    [{ path: 'a b', public: true }, /path is 'a b'/],
    [{ path: 'locks', public: true, readonly: false }, /there is no option 'readonly'; did you mean 'readOnly'\?/],
    [{ path: 'locks', public: true, environment: ' ' }, /environment is ' '; it must be a text of 1 to 60 characters/],
    [{ path: 'locks', public: true, origin: 'admin.example' }, /origin is "admin.example"; give scheme, host and port/],
    [{ path: 'locks', public: true, origin: 'https://admin.example/locks' }, /give scheme, host and port/],
    [
      { path: 'locks', public: true, origin: ['https://admin.example', '*'] },
      /origin is "\*"; give scheme, host and port/,
    ],
    [{ path: 'locks', public: true, origin: [] }, /origin is an empty list/],
    [{ path: 'locks', public: true, name: '' }, /name is ''; it must be that of a RedisLockModule/],
  ])('%j are refused', (options, why) => {
    const start = () => RedisLockDashboardModule.forRoot(options as RedisLockDashboardOptions);
    expect(start).toThrow(LockConfigurationError);
    expect(start).toThrow(why);
  });
});

describe.each<Platform>(['Express', 'Fastify'])('the dashboard on %s', (platform) => {
  it.each([undefined, 'api'])(
    'is served at its path, with the global prefix %s, and has a strict policy',
    async (prefix) => {
      const { get } = await open({ platform, prefix }).then((it) => ({ get: it.get.bind(it) }));
      const page = await get();
      expect(page.status).toBe(200);
      expect(page.headers.get('content-type')).toMatch(/^text\/html; charset=utf-8/i);
      const policy = page.headers.get('content-security-policy') ?? '';
      expect(policy).toContain("default-src 'none'");
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      const text = await page.text();
      expect(text).not.toMatch(/<style|style="|<script>|\son\w+=/);
      const files = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path);
      expect(files).toHaveLength(5);
      for (const file of files) expect(file).toMatch(/^\.\/locks\/page\//);
      const script = await get('/page/board.js');
      expect(script.headers.get('content-type')).toMatch(/^text\/javascript/);
      const etag = script.headers.get('etag') as string;
      expect((await get('/page/board.js', { 'if-none-match': etag })).status).toBe(304);
      expect((await get('/page/nothing.js')).status).toBe(404);
      expect((await get('/page/constructor')).status).toBe(404);
    },
  );

  it('asks the guards before anything is shown or done', async () => {
    const { url } = await open({ platform, dashboard: { public: false, guards: [PassGuard], readOnly: false } });
    const lease = await app!.locks.acquire('order:42');
    for (const path of ['', '/page/board.js', '/api/board', '/api/stream'])
      expect((await fetch(url + path)).status).toBe(401);
    const release = { reason: 'stuck since noon' };
    expect((await app!.release('order:42', release)).status).toBe(401);
    expect(await app!.locks.isLocked('order:42')).toBe(true);
    expect((await app!.get('', { 'x-pass': 'let me in' })).status).toBe(200);
    await lease.release();
  });

  it('is not changed by interceptors, versions and prefixes of the application', async () => {
    await open({
      platform,
      setUp: (nest) => {
        nest.useGlobalInterceptors({ intercept: (_context, next) => next.handle().pipe(map((data) => ({ data }))) });
        nest.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
      },
    });
    expect((await app!.board()).summary).toMatchObject({ held: 0, waiting: 0 });
    expect(await (await app!.get()).text()).toMatch(/^<!doctype html>/);
  });

  it('streams what changes', async () => {
    await open({ platform });
    const stop = new AbortController();
    const response = await fetch(`${app!.url}/api/stream`, { signal: stop.signal });
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    const messages: { locks?: { rows: unknown[] }; clients?: unknown }[] = [];
    const reading = (async () => {
      let text = '';
      for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
        text += chunk;
        const parts = text.split('\n\n');
        text = parts.pop() as string;
        messages.push(...parts.map((part) => JSON.parse(part.replace(/^data: /, ''))));
      }
    })().catch(() => {});
    await until(() => messages.length > 0);
    expect(messages[0].locks?.rows).toEqual([]);
    const [first, second] = [await app!.locks.acquire('order:1'), await app!.locks.acquire('order:2')];
    await until(() => messages.some(({ locks }) => locks?.rows.length === 2));
    const rows = () => messages.filter(({ locks }) => locks !== undefined).at(-1)!.locks!.rows;
    const row = rows().find((one) => (one as { name: string }).name === 'order:1');
    expect(row).toMatchObject({ type: 'exclusive', ownerCount: 1, token: first.fencingToken, waiting: 0 });
    await first.release();
    await until(() => rows().length === 1);
    // For a row that has not changed, only the name is sent.
    expect(rows()).toEqual(['order:2']);
    expect(messages.at(-1)).not.toHaveProperty('readOnly');
    await second.release();
    await until(() => rows().length === 0);
    stop.abort();
    await reading;
  });

  it('does not keep the application from closing while somebody watches', async () => {
    const dashboard = await open({ platform });
    const response = await fetch(`${dashboard.url}/api/stream`);
    const reading = response.text();
    app = undefined;
    await dashboard.close();
    await reading;
  });
});

describe('what the dashboard shows', () => {
  it('says which backend, prefix and environment it is about, without a password', async () => {
    const port = await freePort();
    await open({
      locks: { connection: `redis://ann:hunter2@127.0.0.1:${port}/3`, commandTimeout: 500, keyPrefix: 'shop:' },
      dashboard: { environment: 'production' },
    });
    expect((await app!.board()).place).toEqual({
      backend: `redis 127.0.0.1:${port}/3`,
      keyPrefix: 'shop:',
      environment: 'production',
    });
    await app!.close();
    await open();
    expect((await app!.board()).place).toEqual({ backend: 'memory', keyPrefix: 'lock:', environment: '' });
  });

  it('finds, sorts and pages', async () => {
    await open();
    const names = Array.from({ length: 120 }, (_, n) => `order:${String(n).padStart(3, '0')}`);
    const leases = await Promise.all(names.map((name) => app!.locks.acquire(name)));
    const first = await app!.board('?sort=name&order=ascending');
    expect(first.summary.held).toBe(120);
    expect(first.locks).toMatchObject({ matching: 120, page: 1, pages: 3 });
    expect(first.locks.rows.map(({ name }: { name: string }) => name)).toEqual(names.slice(0, 50));
    const last = await app!.board('?sort=name&page=9');
    expect(last.locks.page).toBe(3);
    expect(last.locks.rows.at(-1).name).toBe('order:000');
    const found = await app!.board('?search=ORDER:11');
    expect(found.locks.matching).toBe(10);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  it('puts locks that are waited for first, even if it is not known for how long', async () => {
    await open();
    // The record of a client has at most 20 of its waits.
    const names = ['idle', ...Array.from({ length: 25 }, (_, n) => `order:${n}`)];
    const leases = [];
    for (const name of names) leases.push(await app!.locks.acquire(name));
    const waiting = names.slice(1).map((name) => app!.locks.acquire(name));
    const rows = async () => (await app!.board()).locks.rows as { name: string; waitsSince: number | null }[];
    await until(async () => (await rows()).some(({ waitsSince }) => waitsSince !== null), 30_000);
    expect((await rows()).filter(({ waitsSince }) => waitsSince === null).length).toBeGreaterThan(1);
    expect((await rows()).at(-1)?.name).toBe('idle');
    for (const lease of leases) await lease.release();
    for (const lease of waiting) await (await lease).release();
  });

  it('has the processes that wait for a lock, in their order', async () => {
    const store = new MemoryStore();
    const backend = () => new MemoryBackend({ runtime: nodeRuntime, store });
    const { locks } = await open({ locks: { backend: backend() } });
    const lease = await locks.acquire('order:42');
    const waiting: Promise<void>[] = [];
    const others: LockService[] = [];
    for (const n of [1, 2, 3, 4, 5, 6]) {
      const other = createLockService({ backend: backend(), applicationName: `other-${n}`, waitTime: Infinity });
      others.push(other);
      waiting.push(other.withLock('order:42', { group: `job ${n}` }, async () => {}));
      await until(async () => (await locks.inspect('order:42')).line.length === n);
    }
    const row = async () => (await app!.board()).locks.rows[0] as { waiters: { since: number | null }[] };
    await until(async () => (await row()).waiters.every(({ since }) => since !== null), 30_000);
    expect(await row()).toMatchObject({
      waiting: 6,
      waiterCount: 6,
      waiters: [1, 2, 3, 4, 5].map((n) => ({
        position: n,
        application: `other-${n}`,
        pid: process.pid,
        method: `job ${n}`,
        waiters: 1,
        redisson: false,
      })),
    });
    await lease.release();
    await Promise.all(waiting);
    for (const other of others) await other.close();
  });

  it('shows first whose event loop is blocked, and since when', async () => {
    const store = new MemoryStore();
    const backend = () => new MemoryBackend({ runtime: nodeRuntime, store });
    const watchdogTimeout = 6_000; // clients that hold something write their records three times in it
    const { locks } = await open({ locks: { backend: backend(), applicationName: 'shop', watchdogTimeout } });
    const other = createLockService({ backend: backend(), applicationName: 'other', watchdogTimeout });
    const leases = await Promise.all([locks.acquire('one'), locks.acquire('two'), other.acquire('three')]);
    const clients = async () =>
      (await app!.board()).clients as { application: string; clientId: string; blockedSince: number | null }[];
    await until(async () => (await clients()).length === 2, 30_000);
    expect(await clients()).toEqual([
      expect.objectContaining({ application: 'shop', blockedSince: null }),
      expect.objectContaining({ application: 'other', blockedSince: null }),
    ]);
    const [, { clientId }] = await clients();
    const directory = backend().directory as RedisDirectory;
    await until(async () => {
      await directory.noteBlock(clientId, 12_000, 30_000); // the next record of the client says that it is alive
      const [first] = await clients();
      const { application, blockedSince } = first;
      return application === 'other' && blockedSince !== null && blockedSince <= Date.now() - 12_000;
    }, 30_000);
    await Promise.all(leases.map((lease) => lease.release()));
    await other.close();
  });

  it('has semaphores, permits and latches, those with waiters first', async () => {
    await open({ locks: { applicationName: 'shop' } });
    const { locks } = app!;
    await locks.getSemaphore('mail', { permits: 10 }).acquire(7);
    const cad = locks.getPermitExpirableSemaphore('cad', { permits: 1 });
    const id = await cad.acquire();
    const waiting = cad.acquire();
    await locks.getCountDownLatch('import').trySetCount(4);
    // biome-ignore lint/suspicious/noExplicitAny: what a page is sent
    let board: any;
    await until(async () => {
      board = await app!.board();
      return board.synchronizers[0]?.permits[0]?.application === 'shop' && board.synchronizers[0].waiting === 1;
    }, 20_000);
    const permits = [expect.objectContaining({ id: id.slice(0, 16), pid: process.pid, leaseEnds: expect.any(Number) })];
    const plain = { permits: [], permitCount: 0, waiting: 0 };
    expect(board.synchronizers).toEqual([
      { name: 'cad', type: 'permit-expirable-semaphore', state: '1 of 1 taken', permits, permitCount: 1, waiting: 1 },
      { name: 'import', type: 'count-down-latch', state: '4 of 4 steps left', ...plain },
      { name: 'mail', type: 'semaphore', state: '7 of 10 taken', ...plain },
    ]);
    expect(board.summary).toMatchObject({ held: 0, synchronizers: 3 });
    expect(JSON.stringify(board)).not.toContain(id);
    await cad.release(id);
    await cad.release(await waiting);
  });

  it('has the results of single flights that are kept, without their values', async () => {
    await open();
    const { locks } = app!;
    await locks.singleFlight('b', { keepFor: '5m' }, async () => 'secret');
    await locks.singleFlight('a', { keepFor: '1m' }, async () => 'x'.repeat(2_098));
    await locks.singleFlight('c', async () => 'not kept');
    // biome-ignore lint/suspicious/noExplicitAny: what a page is sent
    let board: any;
    await until(async () => {
      board = await app!.board();
      return board.results.length === 2;
    }, 20_000);
    expect(board.results).toEqual([
      { name: 'a', size: '2.1 kB', keptUntil: expect.any(Number) },
      { name: 'b', size: '8 B', keptUntil: expect.any(Number) },
    ]);
    const [a, b] = board.results;
    expect(b.keptUntil - a.keptUntil).toBeGreaterThan(180_000);
    expect(board.summary).toMatchObject({ held: 0, results: 2 });
    expect(JSON.stringify(board)).not.toContain('secret');
    await locks.forgetResult('a');
    await until(async () => (await app!.board()).results.length === 1, 20_000);
  });

  it('releases no semaphore by force', async () => {
    await open({ dashboard: { readOnly: false } });
    await app!.locks.getSemaphore('mail', { permits: 2 }).acquire();
    expect(await app!.release('mail', { reason: 'stuck since noon' })).toMatchObject({ status: 400 });
    expect(await app!.locks.getSemaphore('mail').availablePermits()).toBe(1);
  });

  it.each([
    '?sort=size',
    '?order=up',
    '?page=0',
    '?page=x',
    '?search=a&search=b',
    '?lock=a&lock=b',
    `?search=${'x'.repeat(201)}`,
  ])('refuses %s with a reason', async (query) => {
    await open();
    const response = await app!.get(`/api/board${query}`);
    expect(response.status).toBe(400);
    expect(((await response.json()) as { message: string }).message).toMatch(/must be|one of/);
  });

  it('takes one snapshot a second at most, however many ask, and none while nobody does', async () => {
    await open();
    const { locks } = app!;
    const list = locks.list.bind(locks);
    let asked = 0;
    locks.list = (options) => {
      asked++;
      return list(options);
    };
    const started = performance.now();
    for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 10 }, () => app!.board()));
    const seconds = (performance.now() - started) / 1_000;
    expect(asked).toBeGreaterThan(0);
    expect(asked).toBeLessThanOrEqual(Math.floor(seconds) + 1);
  });
});

describe('a release by force', () => {
  const reason = 'the worker hangs since noon';

  it.each<Platform>(['Express', 'Fastify'])(
    'frees the lock on %s, and logs the reason and the holder',
    async (platform) => {
      await open({
        platform,
        locks: { applicationName: 'shop' },
        dashboard: { readOnly: false, userOf: () => 'ann@example.org' },
      });
      for (const name of ['order:42', 'a/b c%2F?#', 'ü:1']) {
        const lease = await app!.locks.acquire(name);
        expect(await app!.release(name, { reason: `${reason}\nFAKE line`, owners: [lease.owner] })).toEqual({
          status: 200,
        });
        expect(await app!.locks.isLocked(name)).toBe(false);
        const line = app!.logger.lines.find((text) => text.startsWith(`'${name}'`));
        expect(line).toMatch(
          /was released by force by ann@example.org: the worker hangs since noon FAKE line; it was held by shop on /,
        );
        expect(line).toContain(lease.owner);
      }
      const { events } = await app!.board();
      expect(events.map(({ kind }: { kind: string }) => kind).sort()).toEqual([
        'lost',
        'lost',
        'lost',
        'released',
        'released',
        'released',
      ]);
    },
  );

  it('takes a name that no path can carry in its body', async () => {
    await open({ platform: 'Fastify', dashboard: { readOnly: false } });
    for (const name of ['..', 'x'.repeat(300)]) {
      await app!.locks.acquire(name);
      const response = await fetch(`${app!.url}/api/release`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-redis-lock-dashboard': 'release' },
        body: JSON.stringify({ name, reason }),
      });
      expect(response.status).toBe(200);
      expect(await app!.locks.isLocked(name)).toBe(false);
    }
  });

  it.each<[string, unknown, Record<string, string> | undefined, number, RegExp]>([
    ['without a reason', {}, undefined, 400, /Give a reason of 3 to 500 characters/],
    ['with an empty reason', { reason: ' \n ' }, undefined, 400, /Give a reason/],
    ['with a reason that is not a text', { reason: 5 }, undefined, 400, /Give a reason/],
    ['with a body that is not an object', [], undefined, 400, /Give a reason/],
    ['without the header', { reason }, {}, 403, /with the header x-redis-lock-dashboard/],
    [
      'from another site',
      { reason },
      { 'x-redis-lock-dashboard': '1', 'sec-fetch-site': 'cross-site' },
      403,
      /must come from the dashboard/,
    ],
    ['of another name', { reason, name: 'order:1' }, undefined, 400, /name of one lock/],
    [
      'where somebody else holds it by now',
      { reason, owners: ['other:1'] },
      undefined,
      409,
      /is now held by somebody else/,
    ],
  ])('is refused %s: nothing is released', async (_what, body, headers, status, why) => {
    await open({ dashboard: { readOnly: false } });
    const lease = await app!.locks.acquire('order:42');
    const answer = await app!.release('order:42', body, headers);
    expect(answer.status).toBe(status);
    expect(answer.message).toMatch(why);
    expect(answer.message).toMatch(/nothing was released/);
    expect(await app!.locks.isLocked('order:42')).toBe(true);
    await lease.release();
  });

  it('is refused if nothing is locked, for a bad name, and by a dashboard that is read-only', async () => {
    await open({ dashboard: { readOnly: false } });
    expect(await app!.release('nothing', { reason })).toEqual({
      status: 404,
      message: "'nothing' is not locked; nothing was released",
    });
    expect((await app!.release(' ', { reason })).status).toBeGreaterThanOrEqual(400);
    await app!.close();
    await open();
    const lease = await app!.locks.acquire('order:42');
    const answer = await app!.release('order:42', { reason });
    expect(answer).toMatchObject({ status: 403, message: expect.stringMatching(/read-only; nothing was released/) });
    expect(await app!.locks.isLocked('order:42')).toBe(true);
    await lease.release();
  });
});
