import type { Redis } from 'ioredis';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { startProcess } from '../support/processes/start-process.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { runCli } from './run-cli.js';

const logger = { warn: () => {}, error: () => {} };

describe('the command line', () => {
  let redis: RedisServer;
  let admin: Redis;
  let shop: LockService;
  let other: LockService;

  beforeAll(async () => {
    redis = await startRedis();
    admin = redis.client();
  });
  afterAll(() => redis.stop());
  beforeEach(() => {
    shop = createLockService({ connection: redis.url, applicationName: 'shop-2', logger });
    other = createLockService({ connection: redis.url, applicationName: 'stock', logger });
  });
  afterEach(async () => {
    await Promise.all([shop.close(), other.close()]);
    await admin.flushall();
  });

  const json = async (...args: string[]) => JSON.parse((await runCli([...args, '--json'], redis.url)).stdout);

  /** Settles when the records of these clients say so. */
  const known = (held: number, waiting: number) =>
    until(async () => {
      const clients = await shop.clients();
      const sum = (field: 'held' | 'waiting') => clients.reduce((total, client) => total + client[field], 0);
      return sum('held') >= held && sum('waiting') >= waiting;
    }, 20_000);

  it('shows who holds what, in which method, since when, and how many wait', async () => {
    const lease = await shop.acquire('order:42', { group: 'OrdersService.pay' });
    const waiting = other.acquire('order:42').then((next) => next.release());
    await known(1, 1);

    const list = await runCli(['ls'], redis.url);
    expect(list.stdout).toMatch(/^NAME +TYPE +HELD BY +IN +HELD FOR +LEASE LEFT +WAITING$/m);
    expect(list.stdout).toMatch(
      new RegExp(`^order:42 +exclusive +shop-2 on .+, pid ${process.pid} +OrdersService.pay +\\d+ s +\\d+ s +1$`, 'm'),
    );
    expect(list).toMatchObject({ code: 0, stderr: '' });

    const inspected = await runCli(['inspect', 'order:42'], redis.url);
    expect(inspected.stdout).toMatch(
      /^order:42 is locked \(exclusive\)\n {2}held by +shop-2 on .+, in OrdersService.pay/,
    );
    expect(inspected.stdout).toContain(lease.owner);
    expect(inspected.stdout).toMatch(
      new RegExp(`waiting +1\\n +1\\. stock on .+, pid ${process.pid}: 1 caller, for \\d+ m?s$`, 'm'),
    );
    expect(inspected).toMatchObject({ code: 0, stderr: '' });

    const clients = await runCli(['clients'], redis.url);
    expect(clients.stdout).toMatch(/^stock .* 0 +1 +\d+ m?s +- +[0-9a-f-]{36}\nshop-2 .* 1 +0 +- +- +[0-9a-f-]{36}$/m);
    expect(clients).toMatchObject({ code: 0, stderr: '' });
    await lease.release();
    await waiting;
  });

  it('shows which processes wait, in their order, and how many callers each of them has', async () => {
    const lease = await shop.acquire('order:42');
    const inLine = async () => (await shop.inspect('order:42')).line;
    const third = createLockService({ connection: redis.url, applicationName: 'mail', logger });
    const waiting = [third, third, other].map(async (locks, n) => {
      if (locks === other) await until(async () => (await inLine()).length === 1);
      await locks.withLock('order:42', { group: `job ${n}` }, async () => {});
    });
    await until(async () => (await inLine()).filter(({ waitedFor }) => waitedFor).length === 2, 20_000);

    expect((await runCli(['ls'], redis.url)).stdout).toMatch(/^order:42 .+ 3 in 2 processes$/m);
    expect((await runCli(['inspect', 'order:42'], redis.url)).stdout).toMatch(
      new RegExp(
        [
          ' {2}waiting {5}3 in 2 processes',
          ' {14}1\\. mail on .+, pid \\d+, in job 0: 2 callers, the first for \\d+ m?s',
          ' {14}2\\. stock on .+, pid \\d+, in job 2: 1 caller, for \\d+ m?s$',
        ].join('\n'),
        'm',
      ),
    );
    expect((await json('inspect', 'order:42')).line).toMatchObject([
      { position: 1, callers: 2, mine: false, client: { application: 'mail' } },
      { position: 2, callers: 1, mine: false, client: { application: 'stock' } },
    ]);
    await lease.release();
    await Promise.all(waiting);
    await third.close();
  });

  it('shows a lock that was detached, and by whom', async () => {
    const held = await shop.acquire('order:42');
    await known(1, 0);
    const next = await shop.acquire('order:43');
    await next.detach({ for: '1h' });
    expect((await runCli(['ls'], redis.url)).stdout).toMatch(
      /^order:43 +exclusive +detached by shop-2 on .+, pid \d+ /m,
    );
    expect((await runCli(['inspect', 'order:43'], redis.url)).stdout).toMatch(
      /held by +nobody: the lock was detached by shop-2 on .+, and waits to be adopted \(.+:t-[0-9a-f]{40}\); lease left: /,
    );
    expect((await json('inspect', 'order:43')).owners).toMatchObject([{ detached: true, mine: false }]);
    await held.release();
  });

  it('prints the same as one JSON document', async () => {
    const lease = await shop.acquire('order:42', { group: 'OrdersService.pay' });
    await known(1, 0);
    const owners = [
      expect.objectContaining({
        owner: lease.owner,
        client: expect.objectContaining({ application: 'shop-2', pid: process.pid, group: 'OrdersService.pay' }),
      }),
    ];
    expect(await json('ls')).toEqual({
      locks: [expect.objectContaining({ name: 'order:42', type: 'exclusive', waiting: 0, owners })],
      synchronizers: [],
      results: [],
      cursor: null,
    });
    expect(await json('inspect', 'order:42')).toMatchObject({ name: 'order:42', locked: true, owners });
    expect(await json('clients')).toEqual({
      clients: [expect.objectContaining({ application: 'shop-2', held: 1, waiting: 0 })],
    });
    await lease.release();
  });

  it('shows the size of a kept result and how long it is kept, and never its value', async () => {
    await shop.singleFlight('prices:eur', { keepFor: '5m' }, async () => 'secret-'.repeat(300));
    const list = await runCli(['ls'], redis.url);
    expect(list.stdout).toMatch(/^RESULT OF +SIZE +KEPT FOR\nprices:eur +2\.1 kB +5 min$/m);
    const result = { size: 2_102, remainingTime: expect.any(Number) };
    expect((await json('ls')).results).toEqual([{ name: 'prices:eur', ...result }]);

    const free = await runCli(['inspect', 'prices:eur'], redis.url);
    expect(free).toMatchObject({ code: 0, stderr: '' });
    expect(free.stdout).toBe('prices:eur: not locked; result, 2.1 kB, kept for 5 min\n');
    expect(await json('inspect', 'prices:eur')).toMatchObject({ name: 'prices:eur', locked: false, result });

    const lease = await other.acquire('prices:eur');
    const held = await runCli(['inspect', 'prices:eur'], redis.url);
    expect(held.stdout).toMatch(
      /^prices:eur is locked \(exclusive\)\n[\s\S]*\n {2}kept +result, 2\.1 kB, kept for 5 min$/m,
    );
    expect(list.stdout + free.stdout + held.stdout).not.toContain('secret');
    await lease.release();

    await shop.forgetResult('prices:eur');
    expect((await runCli(['ls'], redis.url)).stdout).not.toContain('RESULT OF');
    expect((await runCli(['inspect', 'prices:eur'], redis.url)).stderr).toContain('is not locked');
  });

  it('shows semaphores, permits and latches, and releases none of them', async () => {
    expect((await runCli(['ls'], redis.url)).stdout).toBe("No lock is held under the prefix 'lock:'\n");
    await shop.getSemaphore('mail', { permits: 10 }).acquire(7);
    const id = await shop.getPermitExpirableSemaphore('cad', { permits: 3 }).acquire();
    await shop.getCountDownLatch('import').trySetCount(4);
    await until(async () => (await shop.clients()).length > 0, 20_000);

    const list = await runCli(['ls'], redis.url);
    expect(list.stdout).toMatch(/^NAME +TYPE +STATE +HELD BY$/m);
    expect(list.stdout).toMatch(/^cad +permit-expirable-semaphore +1 of 3 taken +shop-2 on .+, pid \d+$/m);
    expect(list.stdout).toMatch(/^import +count-down-latch +4 of 4 steps left +\?$/m);
    expect(list.stdout).toMatch(/^mail +semaphore +7 of 10 taken +\?$/m);
    expect(list).toMatchObject({ code: 0, stderr: '' });
    expect((await json('ls', '--match', 'c*')).synchronizers).toEqual([
      expect.objectContaining({ name: 'cad', type: 'permit-expirable-semaphore', count: 2, total: 3, taken: 1 }),
    ]);

    const inspected = await runCli(['inspect', 'cad'], redis.url);
    expect(inspected.stdout).toMatch(
      /^cad: permit-expirable-semaphore, 1 of 3 taken\n {2}held by +shop-2 on .+ \([0-9a-f]{16}…\); lease left: \d+ s$/m,
    );
    expect(inspected).toMatchObject({ code: 0, stderr: '' });
    expect(list.stdout + inspected.stdout).not.toContain(id);
    expect(await json('inspect', 'mail')).toMatchObject({
      locked: false,
      type: 'semaphore',
      synchronizer: { count: 3 },
    });

    for (const name of ['cad', 'mail', 'import']) {
      const { code, stderr } = await runCli(['release', name, '--yes', '--reason', 'stuck'], redis.url);
      expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining(`'${name}' is not a lock but a `) });
      expect(stderr).not.toContain('delete');
    }
    expect(await shop.getPermitExpirableSemaphore('cad').acquiredPermits()).toBe(1);
    await shop.getPermitExpirableSemaphore('cad').release(id);
  });

  it('works while no application runs: it shows what a dead process has left, and frees it', async () => {
    const { child, line: owner } = await startProcess('lock-holder.ts', redis.url, 'lock:', 'left', '30000');
    child.kill('SIGKILL');
    const { stdout } = await runCli(['ls'], redis.url);
    expect(stdout).toContain(owner);
    const released = await runCli(['release', 'left', '--yes', '--reason', 'the host is dead'], redis.url);
    expect(released.stdout).toMatch(/^Released by force at \S+Z: the host is dead$/m);
    expect(released).toMatchObject({ code: 0, stderr: '' });
    expect((await runCli(['ls'], redis.url)).stdout).toBe("No lock is held under the prefix 'lock:'\n");
  });

  it('releases a lock of another process, which is notified', async () => {
    const lease = await shop.acquire('order:42');
    const { owner } = lease;
    const answer = await json('release', 'order:42', '--yes', '--reason', 'stuck');
    expect(answer).toMatchObject({
      name: 'order:42',
      released: true,
      reason: 'stuck',
      before: { owners: [{ owner }] },
    });
    await until(() => !lease.held, 15_000);
    expect(lease.signal.aborted).toBe(true);
    expect(await shop.isLocked('order:42')).toBe(false);
  });

  it.each([['inspect'], ['release', '--yes', '--reason', 'dead']])(
    '%s of a name that is not locked ends with 3, and says so',
    async (verb, ...options) => {
      const lease = await shop.acquire('order:42');
      const { code, stdout, stderr } = await runCli([verb, 'order:43', ...options], redis.url);
      expect({ code, stdout, stderr }).toEqual({
        code: 3,
        stdout: '',
        stderr: "'order:43' is not locked under the prefix 'lock:'\n",
      });
      expect((await runCli([verb, 'lock:order:42', ...options], redis.url)).stderr).toContain(
        "Names are given without the prefix 'lock:'",
      );
      const answer = await json(verb, 'order:43', ...options);
      expect(answer.error).toEqual({ kind: 'notLocked', message: expect.stringContaining("'order:43'") });
      expect(lease.held).toBe(true);
      await lease.release();
    },
  );

  it.each([[], ['--reason', 'stuck']])(
    'release %s: shows who holds the lock, and changes nothing, without --yes',
    async (...options) => {
      const lease = await shop.acquire('order:42');
      const { code, stdout, stderr } = await runCli(['release', 'order:42', ...options], redis.url);
      expect(stdout).toContain(lease.owner);
      expect(stderr).toMatch(/^Nothing was released\. .*add --yes --reason TEXT/);
      expect(code).toBe(2);
      expect(await json('release', 'order:42', ...options)).toMatchObject({
        released: false,
        error: { kind: 'usage' },
      });
      expect(await shop.isLocked('order:42')).toBe(true);
      await lease.release();
    },
  );

  it('goes through the list page by page, and matches names', async () => {
    const names = Array.from({ length: 60 }, (_, n) => `page:${n}`);
    const leases = await Promise.all([...names, 'other'].map((name) => shop.acquire(name)));
    const found = new Set<string>();
    let cursor: string | null = null;
    let pages = 0;
    do {
      const at = cursor === null ? [] : ['--cursor', cursor];
      const page: { locks: { name: string }[]; cursor: string | null } = await json(
        ...['ls', '--match', 'page:*', '--count', '25', ...at],
      );
      for (const { name } of page.locks) found.add(name);
      cursor = page.cursor;
      pages++;
    } while (cursor !== null);
    expect([...found].sort()).toEqual([...names].sort());
    expect(pages).toBeGreaterThan(1);
    const all = await json('ls');
    expect(all.locks.map(({ name }: { name: string }) => name)).toEqual([...names, 'other'].sort());
    await Promise.all(leases.map((lease) => lease.release()));
  });

  it('uses the given prefix', async () => {
    const own = createLockService({ connection: redis.url, keyPrefix: 'app[1]:' });
    const lease = await own.acquire('order:1');
    expect((await json('ls', '--prefix', 'app[1]:')).locks).toEqual([expect.objectContaining({ name: 'order:1' })]);
    expect((await json('ls')).locks).toEqual([]);
    await lease.release();
    await own.close();
  });

  it('does not let names and applications write to the terminal', async () => {
    const evil = createLockService({ connection: redis.url, applicationName: 'x\u{202e}y' });
    const lease = await evil.acquire('\x1b[2J\u{9b}31m');
    await known(1, 0);
    for (const args of [['ls'], ['ls', '--json'], ['inspect', '\x1b[2J\u{9b}31m'], ['inspect', '\x1b[2Jnone']]) {
      const { stdout, stderr } = await runCli(args, redis.url);
      expect(stdout + stderr).toMatch(/\\u\{?0*1b/);
      expect(stdout + stderr).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u);
    }
    expect((await json('ls')).locks[0].name).toBe('\x1b[2J\u{9b}31m');
    await lease.release();
    await evil.close();
  });

  it('is not among the clients, holds nothing and leaves nothing behind', async () => {
    const lease = await shop.acquire('order:42');
    await known(1, 0);
    const keys = (await admin.keys('*')).sort();
    for (const args of [['ls'], ['inspect', 'order:42'], ['clients'], ['doctor'], ['release', 'x', '--reason', 'x']])
      await runCli(args, redis.url);
    expect((await shop.clients()).map(({ application }) => application)).toEqual(['shop-2']);
    expect((await admin.keys('*')).sort()).toEqual(keys);
    await until(async () => !String(await admin.client('LIST')).includes('doctor'));
    await lease.release();
  });

  it('never advises to delete the key of a semaphore', async () => {
    await shop.getSemaphore('uploads').trySetPermits(3);
    const release = ['release', 'uploads', '--yes', '--reason', 'stuck'];
    for (const args of [['inspect', 'uploads'], release]) {
      const { code, stderr } = await runCli(args, redis.url);
      expect(stderr).not.toMatch(/delete|DEL\b/i);
      expect(code).not.toBe(1);
    }
    expect(await admin.get('lock:uploads')).toBe('3');
  });

  it.each([
    {
      url: () => 'redis://127.0.0.1:1',
      says: /ECONNREFUSED 127.0.0.1:1: nothing is listening there\. Check the host and port/,
    },
    {
      url: () => redis.url.replace('//', '//nobody:a-password@'),
      says: /WRONGPASS .* check the user and the password/,
    },
    { url: () => redis.url.replace('127.0.0.1', 'no-such-host.invalid'), says: /the host name cannot be resolved/ },
  ])('ends with 4 if Redis cannot be used: $says', async ({ url, says }) => {
    const { code, stdout, stderr } = await runCli(['ls'], url());
    expect(stderr).toMatch(says);
    expect(stderr).not.toContain('a-password');
    expect({ code, stdout }).toEqual({ code: 4, stdout: '' });
  });

  it('ends with 4 if Redis accepts connections but does not answer', async () => {
    redis.pause();
    try {
      const { code, stderr } = await runCli(['ls'], redis.url);
      expect(stderr).not.toBe('');
      expect(code).toBe(4);
    } finally {
      redis.resume();
    }
  });
});
