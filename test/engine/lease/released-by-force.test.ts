import { setTimeout as sleep } from 'node:timers/promises';
import type { LockType } from '../../../lib/backends/lock-backend.js';
import { LockLostError } from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { type LockProcess, nothingIsLeft, openWorld, STORES } from '../../support/lock-world.js';
import { startProcess } from '../../support/processes/start-process.js';
import { latch } from '../../support/section.js';
import { woken } from '../../support/time-limits.js';
import { until } from '../../support/until.js';
import { answerAfter } from '../../support/watched/watched-backend.js';

const TYPES: readonly LockType[] = ['reentrant', 'fair', 'read', 'write', 'fenced'];

describe.each(STORES)('a lock in %s that is released by force', (store) => {
  const world = openWorld(store);

  const isTaken = async ({ locks }: LockProcess, name: string, owner?: string) =>
    (await locks.inspect(name)).owners.some((held) => owner === undefined || held.owner === owner);

  it.each(TYPES)('during its acquisition is not given to a waiter: type %s', async (type) => {
    const taking = await world.process();
    for (let round = 0; round < 20; round++) {
      const name = `order:${round}`;
      const answered = latch();
      taking.backend.disturb(answerAfter(answered.promise), 'acquire');
      const waiting = taking.locks.acquire(name, { type });
      await until(() => isTaken(taking, name));
      const { owners } = await taking.locks.inspect(name);
      expect(await taking.locks.forceRelease(name)).toBe(true);
      taking.backend.heal();
      answered.open();
      const lease = await woken(waiting);
      expect(lease.owner).not.toBe(owners[0].owner);
      expect(lease.held).toBe(true);
      expect((await taking.locks.inspect(name)).owners.map(({ owner }) => owner)).toEqual([lease.owner]);
      await lease.release();
    }
    await nothingIsLeft(taking);
  });

  it('is not handed on to another waiter when the one that acquired it has left', async () => {
    const taking = await world.process();
    const answered = latch();
    taking.backend.disturb(answerAfter(answered.promise), 'acquire');
    const leaving = new AbortController();
    const left = taking.locks.acquire('order', { signal: leaving.signal }).catch(() => {});
    const waiting = taking.locks.acquire('order');
    await until(() => isTaken(taking, 'order'));
    leaving.abort();
    await left;
    expect(await taking.locks.forceRelease('order')).toBe(true);
    taking.backend.heal();
    answered.open();
    const lease = await woken(waiting);
    expect(await isTaken(taking, 'order', lease.owner)).toBe(true);
    await lease.release();
    await nothingIsLeft(taking);
  });

  it('is not passed to the next waiter while the answer to a transfer is under way', async () => {
    const passing = await world.process();
    for (let passes = 0, round = 0; passes < 20; round++) {
      const name = `order:${round}`;
      const first = await passing.locks.acquire(name, { leaseTime: '20s' });
      const answered = latch();
      passing.backend.disturb(answerAfter(answered.promise), 'transfer');
      const waiting = passing.locks.acquire(name, { leaseTime: '20s' });
      const released = first.release();
      if (passing.backend.count('transfer') === passes) {
        // This machine was too slow: a lock that was held for so long is released, not handed off.
        await released;
        await (await waiting).release();
        continue;
      }
      passes++;
      await until(async () => (await isTaken(passing, name)) && !(await isTaken(passing, name, first.owner)));
      expect(await passing.locks.forceRelease(name)).toBe(true);
      answered.open();
      await released;
      passing.backend.heal();
      const lease = await woken(waiting);
      expect(lease.held).toBe(true);
      expect(await isTaken(passing, name, lease.owner)).toBe(true);
      await lease.release();
    }
    await nothingIsLeft(passing);
  });

  it('is lost at once when its answer came before that of the forced release', async () => {
    const taking = await world.process();
    const answered = latch();
    taking.backend.disturb(async (execute) => {
      const owners = await execute();
      await answered.promise;
      return owners;
    }, 'forceRelease');
    const first = await taking.locks.acquire('order');
    const forced = taking.locks.forceRelease('order');
    const other = await world.process();
    await until(async () => !(await isTaken(other, 'order', first.owner)));
    answered.open();
    expect(await forced).toBe(true);
    expect(first.signal.reason).toBeInstanceOf(LockLostError);
    expect(first.held).toBe(false);
  });

  it('is acquired again when it is one of several that are being acquired', async () => {
    const taking = await world.process();
    const answered = latch();
    taking.backend.disturb(answerAfter(answered.promise), 'acquire', 'acquireAll');
    const waiting = taking.locks.acquire(['a', 'b']);
    await until(() => isTaken(taking, 'b'));
    const { owners } = await taking.locks.inspect('b');
    expect(await taking.locks.forceRelease('b')).toBe(true);
    taking.backend.heal();
    answered.open();
    const lease = await waiting;
    expect(lease.held).toBe(true);
    expect(lease.owners.get('b')).not.toBe(owners[0].owner);
    for (const name of ['a', 'b']) expect(await isTaken(taking, name, lease.owners.get(name))).toBe(true);
    await lease.release();
    await until(async () => !(await isTaken(taking, 'a')));
  });

  describe('by another process', () => {
    it.each(TYPES)('is lost long before its renewal: type %s', async (type) => {
      const [holder, other] = await world.processes(2);
      const lease = await holder.locks.acquire('order', { type });
      const fixed = await holder.locks.acquire('stock', { type, leaseTime: '60s' });
      await isLostByForce(holder, lease, other);
      await isLostByForce(holder, fixed, other);
      expect(holder.backend.count('renew')).toBe(0);
    });

    it('is lost by each of its owners there', async () => {
      const [holder, other] = await world.processes(2);
      const leases = await Promise.all([1, 2, 3].map(() => holder.locks.acquire('page', { type: 'read' })));
      await isLostByForce(holder, leases[0], other);
      await until(() => leases.every(({ held }) => !held));
    });

    it('is still held when the backend still names its owner', async () => {
      const [holder, other] = await world.processes(2);
      const lease = await holder.locks.acquire('order');
      await isLostByForce(holder, await holder.locks.acquire('stock'), other);
      holder.backend.disturb(
        async (execute) => ({ ...(await execute()), owners: [{ owner: lease.owner }] }),
        'inspect',
      );
      const before = holder.backend.count('inspect');
      await other.locks.forceRelease('order');
      await until(() => holder.backend.count('inspect') > before);
      expect(lease.held).toBe(true);
    });
  });

  it('makes its holder listen to the channel of its client when it holds something for a heartbeat', async () => {
    const holder = await world.process();
    await holder.locks.withLock('order', () => {});
    await sleep(1_200);
    expect(holder.backend.listensToClient).toBe(false);
    const lease = await holder.locks.acquire('order');
    await until(() => holder.backend.listensToClient);
    await lease.release();
  });

  it('is lost by a holder that did not listen yet, as soon as it does', async () => {
    const [holder, other] = await world.processes(2);
    const lease = await holder.locks.acquire('order');
    expect(holder.backend.listensToClient).toBe(false);
    expect(await other.locks.forceRelease('order')).toBe(true);
    await until(() => !lease.held, 9_000);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(holder.backend.count('renew')).toBe(0);
  });
});

describe('a lock that a process on the same Redis releases by force', () => {
  const world = openWorld('Redis');

  it('is lost in the process that holds it, long before its renewal', async () => {
    const { locks } = await world.process();
    const { child, line } = await startProcess('loss-reporter.ts', world.redis.url, world.keyPrefix, 'order');
    try {
      let told = '';
      child.stdout!.on('data', (text) => {
        told += text;
      });
      const channel = `nestjs_redis_lock_client:{${line.slice(0, line.lastIndexOf(':'))}}`;
      const client = world.redis.client();
      await until(async () => (await client.pubsub('NUMSUB', channel))[1] === 1);
      expect(await locks.forceRelease('order')).toBe(true);
      await until(() => told.includes('lost'), 9_000);
    } finally {
      child.kill('SIGKILL');
    }
  });
});

async function isLostByForce(holder: LockProcess, lease: Lease, other: LockProcess): Promise<void> {
  await until(() => holder.backend.listensToClient);
  expect(await other.locks.forceRelease(lease.name)).toBe(true);
  await until(() => !lease.held, 9_000);
  expect(lease.signal.reason).toBeInstanceOf(LockLostError);
}
