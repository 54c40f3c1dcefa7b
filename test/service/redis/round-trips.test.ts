import { setTimeout as sleep } from 'node:timers/promises';
import { type LockProcess, ms, nothingIsLeft, openWorld, type ProcessSettings } from '../../support/lock-world.js';
import { until } from '../../support/until.js';

describe('a lock service asks Redis', () => {
  const world = openWorld('Redis');
  const admin = () => world.redis.client();

  /** How often each command was sent to Redis. Commands that scripts call are not counted. */
  const asked = async (work: () => Promise<unknown>): Promise<Record<string, number>> => {
    const client = admin();
    await client.config('RESETSTAT');
    await work();
    const counts: Record<string, number> = {};
    for (const [, command, calls] of (await client.info('commandstats')).matchAll(/cmdstat_([a-z|]+):calls=(\d+)/g)) {
      if (/^(evalsha|eval|subscribe|unsubscribe|script)/.test(command)) counts[command] = Number(calls);
    }
    return counts;
  };

  const asleep = ({ backend }: LockProcess) =>
    until(() => backend.subscriptions > 0 && backend.count('acquire') > backend.subscriptions);

  /** A service that has already sent what a service sends once. */
  const warm = async (settings?: ProcessSettings) => {
    const { locks, backend } = await world.process(settings);
    await locks.withLock('first', async () => {
      await until(() => backend.listensToClient);
      // It has looked for what was removed before.
      await until(() => backend.count('inspect') > 0 && backend.underWay === 0);
    });
    return locks;
  };

  it('once for an uncontended acquisition, and once for its release', async () => {
    const locks = await warm();
    await locks.withLock('order', async () => {});
    expect(await asked(() => locks.withLock('order', async () => {}))).toEqual({ evalsha: 2 });
    const lease = await locks.acquire('order');
    expect(await asked(() => lease.release())).toEqual({ evalsha: 1 });
  });

  it('once for several locks, and once for their release', async () => {
    const locks = await warm();
    const names = ['a', 'b', 'c'];
    await locks.withLock(names, async () => {});
    expect(await asked(() => locks.withLock(names, async () => {}))).toEqual({ evalsha: 2 });
  });

  it('a few times for what starts in one tick', async () => {
    const locks = await warm();
    await locks.withLock('order', async () => {});
    const names = Array.from({ length: 64 }, (_, i) => `order:${i}`);
    const { evalsha } = await asked(() => Promise.all(names.map((name) => locks.withLock(name, async () => {}))));
    expect(evalsha).toBeLessThanOrEqual(8);
  });

  it('a few times for a thousand callers of one lock', async () => {
    const locks = await warm();
    await locks.withLock('order', async () => {});
    const { evalsha } = await asked(() =>
      Promise.all(Array.from({ length: 1_000 }, () => locks.withLock('order', async () => {}))),
    );
    // Some 5, and more on a slow machine: the lock is handed off for 20 ms at a time.
    expect(evalsha).toBeLessThanOrEqual(200);
  });

  it('nothing while a thousand callers wait for a lock of another process', async () => {
    const [other, process] = await world.processes(2);
    const holder = await other.locks.acquire('order');
    await until(() => other.backend.listensToClient);
    const all = Array.from({ length: 1_000 }, () => process.locks.withLock('order', async () => {}));
    await asleep(process);
    expect(await asked(() => sleep(500))).toEqual({});
    await holder.release();
    await Promise.all(all);
    await nothingIsLeft(process);
  });

  it('a few times for the renewals of many locks', async () => {
    const locks = await warm({ watchdogTimeout: ms(3_000) });
    const leases = await Promise.all(Array.from({ length: 100 }, (_, i) => locks.acquire(`order:${i}`)));
    const { evalsha } = await asked(() => sleep(4_500));
    // Four rounds of about two commands.
    expect(evalsha).toBeLessThanOrEqual(20);
    expect(leases.every(({ held }) => held)).toBe(true);
    await Promise.all(leases.map((lease) => lease.release()));
  });
});
