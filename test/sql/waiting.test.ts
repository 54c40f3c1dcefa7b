import { setTimeout as sleep } from 'node:timers/promises';
import { LockAbortedError, LockBusyError, LockUnavailableError } from '../../lib/engine/errors.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { until } from '../support/until.js';
import { countSessions } from './sessions.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

describe.each(ALL_SQL_LOCKS)('waiting for a lock in SQL, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);
  /** Whether it has connected. */
  const warmUp = async (locks: LockService) => (await locks.acquire(world.name())).release();

  it('is served by another process when the holder releases, without polling', async () => {
    const [ann, bob] = [world.service(), world.service()];
    const name = world.name();
    const lease = await ann.acquire(name);
    let granted = false;
    const next = bob.acquire(name).then((got) => {
      granted = true;
      return got;
    });
    await sleep(300);
    expect(granted).toBe(false);
    await lease.release();
    const second = await next;
    expect(second.fencingToken).toBeGreaterThan(lease.fencingToken);
    await second.release();
  });

  it('takes one connection for a thousand waiters of one process', async () => {
    const [ann, bob] = [world.service(), world.service({ connections: 2 })];
    const name = world.name();
    const lease = await ann.acquire(name);
    let served = 0;
    let inside = 0;
    const waiters = Array.from({ length: 1_000 }, () =>
      bob.withLock(name, async () => {
        expect(++inside).toBe(1);
        served++;
        await Promise.resolve();
        inside--;
      }),
    );
    await until(async () => (await countSessions(world.server)).waiting === 1);
    await sleep(200);
    expect(await countSessions(world.server)).toMatchObject({ waiting: 1 });
    expect(served).toBe(0);
    await lease.release();
    await Promise.all(waiters);
    expect(served).toBe(1_000);
  });

  it('ends in time, or at once by a signal, and leaves nothing behind in the database', async () => {
    const [ann, bob] = [world.service(), world.service()];
    const name = world.name();
    const lease = await ann.acquire(name);
    await warmUp(bob);
    await expect(bob.acquire(name, { waitTime: 1_000 })).rejects.toThrow(LockBusyError);
    const abort = new AbortController();
    const aborted = expect(bob.acquire(name, { signal: abort.signal })).rejects.toThrow(LockAbortedError);
    await until(async () => (await countSessions(world.server)).waiting === 1);
    abort.abort();
    await aborted;
    await until(async () => (await countSessions(world.server)).waiting === 0);
    expect(await bob.tryAcquire(name)).toBeNull();
    await lease.release();
    const own = await bob.tryAcquire(name);
    expect(own).not.toBeNull();
    await own?.release();
  });

  it('refuses a single try at once while another caller of the process waits', async () => {
    const [ann, bob] = [world.service(), world.service()];
    const name = world.name();
    const lease = await ann.acquire(name);
    const waiting = bob.acquire(name);
    await until(async () => (await countSessions(world.server)).waiting === 1);
    // The process certainly knows that the other one waits when the first of them has its answer.
    for (const _ of ['first', 'second']) {
      let answer: unknown;
      void bob.tryAcquire(name).then((got) => {
        answer = got;
      });
      await until(() => answer === null);
    }
    await lease.release();
    await (await waiting).release();
  });

  it('continues for those behind a waiter that leaves', async () => {
    const [ann, bob] = [world.service(), world.service()];
    const name = world.name();
    const lease = await ann.acquire(name);
    await warmUp(bob);
    const first = expect(bob.acquire(name, { waitTime: 1_000 })).rejects.toThrow(LockBusyError);
    const second = bob.acquire(name);
    await first;
    await lease.release();
    await (await second).release();
    await until(async () => !(await ann.isLocked(name)));
  });

  it('says so when all connections are in use, to those who must not wait for one', async () => {
    const locks = world.service({ connections: 1 });
    const outer = world.name();
    const full = new RegExp(`all 1 connections of ${which}\\(\\) .*set connections to more than 1`);
    await locks.withLock(outer, async () => {
      const nested = locks.acquire(world.name());
      await expect(nested).rejects.toThrow(LockUnavailableError);
      await expect(nested).rejects.toThrow(full);
      await expect(locks.tryAcquire(world.name())).rejects.toThrow(full);
    });
    await (await locks.acquire(world.name())).release();
  });

  it('waits for a connection in the order of arrival, outside of a lock', async () => {
    const locks = world.service({ connections: 1 });
    const lease = await locks.acquire(world.name());
    const others = [1, 2, 3].map((n) => locks.withLock(world.name(), () => n));
    await sleep(1_500);
    await lease.release();
    expect(await Promise.all(others)).toEqual([1, 2, 3]);
  });

  it('takes several locks in one transaction, all or none', async () => {
    const [ann, bob] = [world.service({ connections: 1 }), world.service()];
    const names = [world.name(), world.name(), world.name()];
    const lease = await ann.acquire(names);
    for (const name of names) expect(await bob.tryAcquire(name)).toBeNull();
    await lease.release();
    const all = await Promise.all([1, 2, 3, 4].map((n) => bob.withLock([...names].reverse(), () => n)));
    expect(all).toEqual([1, 2, 3, 4]);
    for (const name of names) expect(await ann.isLocked(name)).toBe(false);
  });
});
