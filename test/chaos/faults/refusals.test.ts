import type { Redis } from 'ioredis';
import { LockKeyError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { errorOf } from '../../support/section.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { machineTime } from '../history.js';
import { COMMAND_TIMEOUT, FaultRun } from './fault-run.js';
import { fault, ms, printFaultTable } from './fault-table.js';
import { leftInRedis } from './leftovers.js';

/**
 * What users notice when Redis forgets scripts, closes connections, pauses clients or refuses commands. The same is
 * tested command by command in test/backends/redis/refusals.test.ts.
 */
describe('Redis', () => {
  let redis: RedisServer;
  let admin: Redis;
  let run: FaultRun;

  beforeAll(async () => {
    redis = await startRedis();
    admin = redis.client();
  });
  beforeEach(async () => {
    await admin.call('ACL', 'SETUSER', 'clerk', 'reset', 'on', '>a-password', '~*', '&*', '+@all');
    run = await FaultRun.start({ connection: redis.url.replace('//', '//clerk:a-password@') });
  });
  afterEach(async () => {
    await run.stop().catch(() => {});
    expect(await leftInRedis(redis)).toEqual([]);
  });
  afterAll(async () => {
    printFaultTable();
    await redis?.stop();
  });

  it('forgets its scripts: nobody notices', async () => {
    await run.breaks(() => {});
    for (let round = 0; round < 20; round++) {
      await admin.script('FLUSH');
      await run.busy(20);
    }
    const report = await run.finish();
    expect(report.losses).toEqual([]);
    expect(run.errors).toBe('no errors');
    fault('SCRIPT FLUSH, 20 times', 'nothing', `0 leases lost; ${run.errors}`);
  });

  it.each([
    ['normal', 'commands'],
    ['pubsub', 'subscriptions'],
  ] as const)('closes all %s connections: they are opened again, and no wake-up is lost', async (type, what) => {
    await run.breaks(() => {});
    const since = machineTime();
    let killed = 0;
    for (let round = 0; round < 10; round++) {
      killed += Number(await admin.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes'));
      await run.busy(20);
    }
    expect(killed).toBeGreaterThan(10);
    const report = await run.finish();
    expect(report.losses).toEqual([]);
    const pause = Math.max(...['stock', 'queue', 'ledger', 'page'].map((name) => report.longestPause(name)));
    expect(machineTime() - since).toBeLessThan(60_000);
    fault(
      `CLIENT KILL of all connections for ${what}, 10 times`,
      'a short delay; waiters ask again after the reconnect',
      `longest pause of a lock ${ms(pause)}; 0 leases lost; ${run.errors}`,
    );
  });

  it('pauses all clients for a while: calls wait until it is over', async () => {
    const lease = await run.service().acquire('mine');
    await run.breaks(() => admin.call('CLIENT', 'PAUSE', String(COMMAND_TIMEOUT), 'ALL'));
    const resumed = await run.resumed();
    await run.busy();
    expect(lease.held).toBe(true);
    await lease.release();
    const report = await run.finish();
    expect(report.losses).toEqual([]);
    fault(
      `CLIENT PAUSE of ${ms(COMMAND_TIMEOUT)}`,
      'a delay',
      `served ${ms(resumed)} after the pause began; ${run.errors}`,
    );
  });

  it('has no memory left: held locks are renewed and released, new ones are refused', async () => {
    const locks = run.service();
    const [kept, given] = [await locks.acquire('kept'), await locks.acquire('given')];
    let renewals = 0;
    locks.on('renewed', ({ name }) => {
      if (name === 'kept') renewals++;
    });
    await run.breaks(() => admin.config('SET', 'maxmemory', '1'));
    try {
      const before = renewals;
      await given.release();
      expect(await admin.exists('lock:given')).toBe(0);
      const error = await errorOf(locks.acquire('given', { waitTime: 0 }));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toContain('OOM');
      await until(() => renewals >= before + 4);
      expect(kept.held).toBe(true);
    } finally {
      await admin.config('SET', 'maxmemory', '0');
    }
    const resumed = await run.resumed();
    await kept.release();
    await run.busy();
    const report = await run.finish();
    expect(report.losses).toEqual([]);
    fault(
      '`maxmemory` reached',
      'renewals and releases still work; new acquisitions wait, or get `LockUnavailableError` with `waitTime`',
      `0 leases lost over ${renewals} renewals; served ${ms(resumed)} after there was memory; ${run.errors}`,
    );
  });

  it('becomes a replica: calls wait until it is a master again', async () => {
    const locks = run.service();
    const lease = await locks.acquire('mine');
    await run.breaks(() => admin.replicaof('127.0.0.1', '1'));
    const error = await errorOf(locks.acquire('other', { waitTime: 0 }));
    expect(error).toBeInstanceOf(LockUnavailableError);
    await admin.replicaof('NO', 'ONE');
    const resumed = await run.resumed();
    await run.busy();
    expect(lease.held).toBe(true);
    await lease.release();
    const report = await run.finish();
    expect(report.losses).toEqual([]);
    fault(
      'READONLY (a master that became a replica)',
      'the client reconnects, because the master may be elsewhere; callers wait; `waitTime: 0`: `LockUnavailableError`',
      `0 leases lost; served ${ms(resumed)} after it was a master; ${run.errors}`,
    );
  });

  it('revokes rights: new callers get an error at once, and a held lease survives if the rights are back in time', async () => {
    const locks = run.service();
    const lease = await locks.acquire('mine');
    await run.breaks(() => admin.call('ACL', 'SETUSER', 'clerk', 'resetkeys', '~elsewhere:*'));
    const asked = machineTime();
    const error = await errorOf(locks.acquire('other'));
    const refused = machineTime() - asked;
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error.message).toContain('NOPERM');
    expect(lease.held).toBe(true);
    await admin.call('ACL', 'SETUSER', 'clerk', '~*');
    const resumed = await run.resumed();
    await run.busy();
    expect(lease.held).toBe(true);
    await lease.release();
    // Callers without waitTime get the error, too, because waiting does not help against a missing right.
    await run.finish({ except: ['every caller answered'] });
    expect(refused).toBeLessThan(5_000);
    fault(
      'wrong ACL (keys taken from the user)',
      '`LockUnavailableError` with NOPERM at once, also without `waitTime`; held leases stay until they end',
      `refused after ${ms(refused)}; served ${ms(resumed)} after the rights were back; ${run.errors}`,
    );
  });

  it('has something else under the name of a lock: only callers of that name get an error', async () => {
    const locks = run.service();
    await admin.set('lock:taken', 'a value of yours');
    await run.breaks(() => {});
    const asked = machineTime();
    const errors = await Promise.all([
      errorOf(locks.acquire('taken')),
      errorOf(locks.acquire(['fine', 'taken'])),
      errorOf(locks.inspect('taken')),
      errorOf(locks.forceRelease('taken')),
      ...(['fair', 'read', 'write', 'fenced'] as const).map((type) => errorOf(locks.acquire('taken', { type }))),
    ]);
    const refused = machineTime() - asked;
    for (const error of errors) expect(error).toBeInstanceOf(LockKeyError);
    expect(await admin.get('lock:taken')).toBe('a value of yours');
    expect(await locks.isLocked('fine')).toBe(false);
    await admin.del('lock:taken');
    await run.busy();
    const report = await run.finish();
    expect(report.losses).toEqual([]);
    expect(run.errors).toBe('no errors');
    fault(
      'a key of another type under the lock’s name',
      '`LockKeyError` that names key and type; the key stays as it is; other locks are not affected',
      `refused after ${ms(refused)}; others: ${run.errors}`,
    );
  });
});
