import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { AcquireRequest, Removal } from '../../../lib/backends/lock-backend.js';
import { type Attempt, PendingAttempts } from '../../../lib/engine/ask/attempt.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';
import { refused } from '../../support/watched/watched-backend.js';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const { begin } = PendingAttempts.prototype;
afterEach(() => {
  PendingAttempts.prototype.begin = begin;
});

/** Lists the attempts that begin from now on, without keeping them alive. */
function watchAttempts(): readonly WeakRef<Attempt>[] {
  const begun: WeakRef<Attempt>[] = [];
  PendingAttempts.prototype.begin = function (attempt) {
    begun.push(new WeakRef(attempt));
    begin.call(this, attempt);
  };
  return begun;
}

describe('an acquisition that is under way', () => {
  const world = openVirtualWorld();

  it.each(['before', 'after'])(
    'grants nothing when this process has released it by force, %s another process said that it did',
    async (order) => {
      const { locks, backend, runtime } = await world.process();
      const other = await world.process();
      const listeners: ((removal: Removal) => void)[] = [];
      backend.listenToClient = (_, listener) => {
        listeners.push(listener);
        return { ready: Promise.resolve(), close: () => {} };
      };
      const long = await locks.acquire('long');
      await runtime.advance(2_000);
      expect(listeners).toHaveLength(1);
      const answer = latch();
      let sent: AcquireRequest | undefined;
      backend.disturb(async (execute, request) => {
        sent = request as AcquireRequest;
        const reply = await execute();
        await answer.promise;
        return reply;
      }, 'acquire');
      const served: string[] = [];
      const waiting = locks.acquire('order');
      void waiting.then(({ owner }) => served.push(owner));
      await runtime.settle();
      const { key, owner } = sent as AcquireRequest;
      const message = () => listeners[0]({ key, owners: [owner] });
      if (order === 'after') message();
      expect(await locks.forceRelease('order')).toBe(true);
      if (order === 'before') message();
      const theirs = await other.locks.acquire('order');
      backend.heal();
      answer.open();
      await runtime.advance(100);
      expect(served).toEqual([]);
      await theirs.release();
      const lease = await runtime.until(waiting);
      expect(lease.owner).not.toBe(owner);
      await lease.release();
      await long.release();
    },
  );

  it.each<[string, (process: VirtualProcess) => Promise<void>]>([
    [
      'of one lock',
      async ({ locks, backend, runtime }) => {
        backend.disturb(refused, 'acquire');
        const waiting = locks.acquire('order');
        await runtime.advance(60_000);
        backend.heal();
        await (await runtime.until(waiting)).release();
      },
    ],
    [
      'of a fair lock',
      async ({ locks, backend, runtime }) => {
        backend.disturb(refused, 'acquire');
        const waiting = locks.acquire('order', { type: 'fair' });
        await runtime.advance(60_000);
        backend.heal();
        await (await runtime.until(waiting)).release();
      },
    ],
    [
      'of several locks',
      async ({ locks, backend, runtime }) => {
        backend.disturb(refused, 'acquireAll');
        const waiting = locks.acquire(['order', 'stock']);
        await runtime.advance(60_000);
        backend.heal();
        await (await runtime.until(waiting)).release();
      },
    ],
    [
      'of a read lock inside of the write lock',
      async ({ locks, backend, runtime }) => {
        const write = await locks.acquire('page', { type: 'write' });
        backend.disturb(refused, 'acquire');
        const reading = write.run(() => locks.acquire('page', { type: 'read' }));
        await runtime.advance(60_000);
        backend.heal();
        await (await runtime.until(reading)).release();
        await write.release();
      },
    ],
    [
      'of a predecessor in the process',
      async ({ locks, backend, runtime }) => {
        backend.disturb(refused, 'transfer');
        const options = { leaseTime: '20s' } as const;
        await runtime.until(Promise.all(Array.from({ length: 30 }, () => locks.withLock('order', options, () => {}))));
        expect(backend.count('transfer')).toBeGreaterThan(10);
      },
    ],
  ])('is forgotten when it fails: %s', async (_, fail) => {
    const process = await world.process({ outageTimeout: FOREVER });
    const begun = watchAttempts();
    await fail(process);
    expect(begun.length).toBeGreaterThan(20);
    await process.runtime.settle();
    collectGarbage();
    expect(begun.filter((attempt) => attempt.deref() !== undefined).length).toBeLessThan(5);
  });
});
