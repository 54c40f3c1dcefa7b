import { setTimeout as sleep } from 'node:timers/promises';
import { LockAbortedError, LockError, LockLostError, LockUnavailableError } from '../../lib/engine/errors.js';
import { FOREVER } from '../../lib/engine/terms/duration.js';
import type { Lease } from '../../lib/engine/terms/lease.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { ms, nothingIsLeft, openWorld, STORES } from '../support/lock-world.js';
import { errorOf, Section } from '../support/section.js';
import { type RedisCluster, startCluster } from '../support/servers/redis-cluster.js';
import { woken } from '../support/time-limits.js';
import { until } from '../support/until.js';

/** Lets `contenders` callers, spread over the services, contend for one lock, and returns how often each was served. */
async function contend(services: readonly LockService[], contenders: number) {
  const section = new Section();
  const callers = Array.from({ length: contenders }, async (_, i) => {
    const lease = await services[i % services.length].getLock('order').lock();
    await section.pass(String(i));
    await lease.release();
  });
  await Promise.all(callers);
  expect(section.most).toBe(1);
  expect(section.entries.length).toBe(contenders);
  expect(new Set(section.entries).size).toBe(contenders);
}

describe.each(STORES)('re-entrant lock, acceptance, on %s', (store) => {
  const world = openWorld(store);

  it('try-lock waits no longer than its waitTime', async () => {
    const [locks, other] = await world.services(2);
    const lease = await other.acquire('order');
    expect(await locks.isLocked('order')).toBe(true); // waits until it is connected
    const began = performance.now();
    expect(await woken(locks.getLock('order').tryLock(500))).toBeNull();
    expect(performance.now() - began).toBeGreaterThanOrEqual(499);
    await lease.release();
  });

  it('expires after leaseTime without unlock', async () => {
    const [locks, other] = await world.services(2);
    await locks.getLock('order').lock(2_000);
    expect(await other.isLocked('order')).toBe(true);
    const lease = await woken(other.acquire('order'));
    await lease.release();
  });

  it('auto-renewed while held without a lease', async () => {
    const [locks, other] = await world.services(2, { watchdogTimeout: ms(3_000) });
    const lease = await locks.getLock('order').lock();
    await sleep(3_500);
    expect(lease.held).toBe(true);
    expect(await other.tryAcquire('order')).toBeNull();
    await lease.release();
  });

  it('renewal stops after unlock', async () => {
    const { locks, backend } = await world.process({ watchdogTimeout: ms(3_000) });
    const lease = await locks.getLock('order').lock();
    await until(() => backend.count('renew') > 1);
    await lease.release();
    const renewals = backend.count('renew');
    await sleep(1_200);
    expect(backend.count('renew')).toBe(renewals);
  });

  it('renewal stops after an interrupted (aborted) try-lock', async () => {
    const [process, other] = await world.processes(2, { watchdogTimeout: ms(3_000) });
    const holder = await other.locks.acquire('order');
    const abort = new AbortController();
    const waiting = errorOf(process.locks.tryAcquire('order', { waitTime: '20s', signal: abort.signal }));
    await until(() => process.backend.subscriptions === 1);
    abort.abort();
    expect(await waiting).toBeInstanceOf(LockAbortedError);
    await holder.release();
    await sleep(1_200); // a renewal would fall due
    expect(process.backend.count('renew')).toBe(0);
    expect(await other.locks.isLocked('order')).toBe(false);
  });

  // This cannot be written with a handle, because only what it gave can be released. For owners, see
  // test/contract/clauses/ownership.contract.ts, for Java's unlock of our lock, test/interop.
  it('unlock by a non-owner fails and changes nothing: a lease that was lost frees nothing of its successor', async () => {
    const [locks, other] = await world.services(2);
    const lost = await locks.getLock('order').lock();
    await other.forceRelease('order');
    const lease = await other.getLock('order').lock();
    await errorOf(lost.release());
    await lost.release();
    expect(lease.held).toBe(true);
    expect((await locks.inspect('order')).owners.map(({ owner }) => owner)).toEqual([lease.owner]);
    await lease.release();
  });

  it('unlock of a free lock fails', async () => {
    const [locks, other] = await world.services(2);
    const lease = await locks.getLock('order').lock();
    await other.forceRelease('order');
    expect(await errorOf(lease.release())).toBeInstanceOf(LockLostError);
  });

  it('force-unlock frees and wakes', async () => {
    const [locks, other] = await world.services(2);
    const lease = await locks.acquire('order');
    const waiting = other.acquire('order', { waitTime: '20s' });
    await sleep(20);
    const began = performance.now();
    expect(await locks.getLock('order').forceUnlock()).toBe(true);
    const next = await waiting;
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(next.held).toBe(true);
    await errorOf(lease.release());
    await next.release();
    expect(await locks.getLock('order').forceUnlock()).toBe(false);
  });

  it('held-by-current-owner true/false across owners', async () => {
    const [locks, other] = await world.services(2);
    const lock = locks.getLock('order');
    expect(lock.isHeldByCurrentScope()).toBe(false);
    const lease = await lock.lock();
    expect(lock.isHeldByCurrentScope()).toBe(false);
    await lease.run(async () => {
      await sleep(1);
      expect(lock.isHeldByCurrentScope()).toBe(true);
      expect(locks.getLock('order').isHeldByCurrentScope()).toBe(true);
      expect(other.getLock('order').isHeldByCurrentScope()).toBe(false);
    });
    await locks.withLock('stock', () => expect(lock.isHeldByCurrentScope()).toBe(false));
    await lease.release();
  });

  it('hold count up and down, zero after', async () => {
    const locks = await world.service();
    const lock = locks.getLock('order');
    const counts = [lock.getHoldCount()];
    const inside = async (deeper: () => Promise<void> = async () => {}) => {
      const lease = await lock.lock();
      await lease.run(async () => {
        counts.push(lock.getHoldCount());
        await deeper();
        counts.push(lock.getHoldCount());
      });
      await lease.release();
    };
    await inside(async () => {
      await inside();
      await inside();
    });
    counts.push(lock.getHoldCount());
    expect(counts).toEqual([0, 1, 2, 2, 2, 2, 1, 0]);
  });

  it('remaining time to live, −2 when free', async () => {
    const locks = await world.service();
    const lock = locks.getLock('order');
    expect(await lock.remainTimeToLive()).toBe(-2);
    const lease = await lock.lock('5s');
    expect(await lock.remainTimeToLive()).toBeGreaterThan(1_000);
    expect(await lock.remainTimeToLive()).toBeLessThanOrEqual(5_000);
    await lease.release();
    expect(await lock.remainTimeToLive()).toBe(-2);
  });

  it('re-entry keeps the lock until the last unlock', async () => {
    const [locks, other] = await world.services(2);
    const leases: Lease[] = [];
    const deeper = async (depth: number): Promise<void> => {
      const lease = await locks.getLock('order').lock();
      leases.push(lease);
      if (depth > 1) await lease.run(() => deeper(depth - 1));
    };
    await deeper(5);
    for (const lease of leases) {
      expect(await other.tryAcquire('order')).toBeNull();
      await lease.release();
    }
    const lease = await other.tryAcquire('order');
    expect(lease).not.toBeNull();
    await lease?.release();
  });

  it('100 and 1,000 contenders of one instance, each served exactly once', async () => {
    const process = await world.process();
    await contend([process.locks], 100);
    await contend([process.locks], 1_000);
    await nothingIsLeft(process);
  });

  it('100 and 1,000 contenders of several instances, each served exactly once', async () => {
    const processes = await world.processes(4);
    const services = processes.map(({ locks }) => locks);
    await contend(services, 100);
    await contend(services, 1_000);
    await Promise.all(processes.map(nothingIsLeft));
  });
});

describe('re-entrant lock, acceptance, on Redis alone', () => {
  const world = openWorld('Redis');

  it('Redis stopped during a wait gives an error, then works again after the restart', async () => {
    const [process, other] = await world.processes(2, { commandTimeout: 300 });
    await other.locks.acquire('order');
    const limited = errorOf(process.locks.acquire('order', { waitTime: 1_000 }));
    const patient = process.locks.acquire('order');
    await until(() => process.backend.subscriptions === 1);
    await world.redis.kill();
    try {
      expect(await errorOf(process.locks.acquire('stock', { waitTime: 500 }))).toBeInstanceOf(LockUnavailableError);
      expect(await errorOf(process.locks.tryAcquire('stock'))).toBeInstanceOf(LockUnavailableError);
      expect(await limited).toBeInstanceOf(LockError);
    } finally {
      await world.redis.start();
    }
    // The lock was lost with the memory of Redis, so the waiter gets it.
    const lease = await patient;
    expect(lease.held).toBe(true);
    await lease.release();
    await process.locks.withLock('stock', async () => {});
  });

  it('many locks on one subscriber connection', async () => {
    const [holder, waiter] = await world.processes(2);
    const names = Array.from({ length: 200 }, (_, i) => `order:${i}`);
    const leases = await Promise.all(names.map((name) => holder.locks.acquire(name)));
    expect(await waiter.locks.isLocked('order:0')).toBe(true); // its other connection is open
    const admin = world.redis.client();
    const clients = async () =>
      String(await admin.client('LIST'))
        .trim()
        .split('\n').length;
    const before = await clients();
    const waiting = names.map((name) => waiter.locks.acquire(name));
    await until(() => waiter.backend.subscriptions === names.length && waiter.backend.count('acquire') >= 400);
    // One for each process: the holder may open its own late.
    expect(await clients()).toBeLessThanOrEqual(before + 2);
    await Promise.all(leases.map((lease) => lease.release()));
    await Promise.all(waiting.map(async (lease) => (await lease).release()));
    await nothingIsLeft(waiter);
  });
});

describe('re-entrant lock, acceptance, in a cluster', () => {
  const world = openWorld('Redis');
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  it('works in a cluster', async () => {
    const services = await world.services(3, { connection: { nodes: cluster.nodes } });
    await contend(services, 100);
    await services[0].withLock(['a', 'b', 'c', 'd', 'e'], async () => {
      expect(await services[1].tryAcquire('c')).toBeNull();
    });
    expect(await services[1].isLocked('c')).toBe(false);
  });

  it('works through a cluster failover', async () => {
    const connection = { nodes: cluster.nodes };
    const processes = await world.processes(2, { connection, commandTimeout: 500, outageTimeout: FOREVER });
    const [locks, other] = processes.map(({ locks }) => locks);
    const lease = await locks.acquire('order');
    const slot = await cluster.slotOf(`${world.keyPrefix}order`);
    const replica = await cluster.replicaOf(slot);
    const admin = replica.client();
    await admin.readonly();
    await until(async () => (await admin.exists(`${world.keyPrefix}order`)) === 1);
    const waiting = other.acquire('order', { waitTime: '60s' });
    await until(() => processes[1].backend.subscriptions === 1);
    const master = await cluster.masterOf(slot);
    await master.kill();
    await until(async () => (await cluster.masterOf(slot)) !== master, 30_000);
    expect(lease.held).toBe(true);
    await lease.extend('1m').catch(() => {});
    await lease.release();
    const next = await waiting;
    expect(next.held).toBe(true);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
  });
});
