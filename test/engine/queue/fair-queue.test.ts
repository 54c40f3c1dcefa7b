import type { AcquireRequest, Busy, LockBackend, OwnerRef, Wake } from '../../../lib/backends/lock-backend.js';
import { leftovers, NOTHING, openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, answerLost } from '../../support/watched/watched-backend.js';

describe('a waiter for a fair lock', () => {
  const world = openVirtualWorld();

  /**
   * Lets no message reach this process. The returned function notifies its listeners as a subscriber does that has
   * connected again.
   */
  function deafen({ backend }: VirtualProcess): () => void {
    const listeners: ((wake: Wake) => void)[] = [];
    const subscribe: LockBackend['subscribe'] = backend.subscribe.bind(backend);
    backend.subscribe = (key, type, clientId, listener) => {
      listeners.push(listener);
      return subscribe(key, type, clientId, () => {});
    };
    return () => {
      for (const listener of listeners) listener({ kind: 'resync' });
    };
  }

  it('asks at once when its subscription is back, since the message of a release may have been lost', async () => {
    const [holder, waiter] = [await world.process(), await world.process()];
    const resync = deafen(waiter);
    const held = await holder.locks.acquire('order', { type: 'fair' });
    const waiting = waiter.locks.acquire('order', { type: 'fair', waitTime: '1m' });
    await world.runtime.settle();
    await held.release();
    await world.runtime.settle();
    const asked = waiter.backend.count('acquire');
    resync();
    await world.runtime.settle();
    expect(waiter.backend.count('acquire')).toBe(asked + 1);
    const lease = await waiting;
    expect(world.runtime.monotonic()).toBe(0);
    await lease.release();
  });

  it('asks at once when it is told to while its request is answered that the lock is busy', async () => {
    const [holder, { locks, backend, runtime }] = [await world.process(), await world.process()];
    const held = await holder.locks.acquire('order', { type: 'fair' });
    const leaving = new AbortController();
    const first = errorOf(locks.acquire('order', { type: 'fair', signal: leaving.signal }));
    await runtime.settle();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const second = locks.acquire('order', { type: 'fair' });
    await runtime.settle();
    leaving.abort();
    await first;
    await held.release();
    await runtime.settle();
    answer.open();
    const lease = await runtime.until(second, 1_000);
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('asks no more until it is told to when the end of the lease is unknown', async () => {
    const { locks, backend, runtime } = await world.process();
    backend.disturb(async (): Promise<Busy> => ({ acquired: false, remaining: -1, holder: 'other:1' }), 'acquire');
    backend.disturb(async (_, places) => (places as OwnerRef[]).map(() => true), 'refreshWaiters');
    const leaving = new AbortController();
    const waiting = errorOf(locks.acquire('order', { type: 'fair', signal: leaving.signal }));
    await runtime.settle();
    const asked = backend.count('acquire');
    await runtime.advance(60_000);
    expect(backend.count('acquire')).toBe(asked);
    leaving.abort();
    await waiting;
  });

  it('gives the lock back that it is granted after it has left', async () => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const leaving = new AbortController();
    const waiting = errorOf(locks.acquire('order', { type: 'fair', signal: leaving.signal }));
    await runtime.settle();
    leaving.abort();
    await waiting;
    answer.open();
    await runtime.settle();
    expect(await locks.isLocked('order')).toBe(false);
    await runtime.advance(1_500); // the watchdog finds nothing to do
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it.each([
    ['asks as another owner', 'order', 2],
    ['asks as the same owner', 'stock', 1],
  ] as const)(
    '%s after an unanswered request and a forced release of the lock %s by its process',
    async (_, name, expected) => {
      const { locks, backend, runtime } = await world.process();
      const owners: string[] = [];
      backend.disturb((execute, request) => {
        owners.push((request as AcquireRequest).owner);
        return owners.length === 1 ? answerLost(execute, request) : execute();
      }, 'acquire');
      const waiting = locks.acquire('order', { type: 'fair' });
      await runtime.settle();
      await locks.forceRelease(name);
      const lease = await runtime.until(waiting);
      expect(owners).toHaveLength(2);
      expect(new Set(owners).size).toBe(expected);
      await lease.release();
    },
  );
});
