import type { LockBackend, OwnerRef } from '../../../lib/backends/lock-backend.js';
import type { UnusedOwner } from '../../../lib/engine/ask/unused-owner.js';
import { type RegisteredWaiter, unregister, WaiterHeartbeat } from '../../../lib/engine/queue/waiter-registration.js';
import type { Services } from '../../../lib/engine/services.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { latch } from '../../support/section.js';

const WAITER: OwnerRef = { key: 'lock:order', type: 'fair', owner: 'me:1' };

describe('a waiter that leaves', () => {
  const leave = (removeWaiter: (place: OwnerRef) => Promise<void>) => {
    const removals: string[] = [];
    const released: UnusedOwner[] = [];
    const services = {
      backend: { removeWaiter } as unknown as LockBackend,
      backgroundReleases: { release: (owner: UnusedOwner) => void released.push(owner) },
      waiterTimeout: 6_000,
      work: {
        removalStarted: () => void removals.push('started'),
        removalEnded: () => void removals.push('ended'),
      },
    } as unknown as Services;
    unregister(services, { ...WAITER, leaseTime: 30_000 } as OwnerRef);
    return { removals, released };
  };

  it('is removed from the backend, which shutdown waits for', async () => {
    const answer = latch();
    const removed: OwnerRef[] = [];
    const { removals, released } = leave((place) => {
      removed.push(place);
      return answer.promise;
    });
    expect(removed).toEqual([WAITER]);
    expect(removals).toEqual(['started']);
    answer.open();
    await new VirtualRuntime().settle();
    expect(removals).toEqual(['started', 'ended']);
    expect(released).toEqual([]);
  });

  it('is removed in the background for as long as the backend may remember it, if there was no answer', async () => {
    const { removals, released } = leave(async () => {
      throw new Error('no answer');
    });
    await new VirtualRuntime().settle();
    expect(released).toEqual([{ ...WAITER, leaseTime: 6_000, waits: true }]);
    expect(removals).toEqual(['started', 'ended']);
  });
});

describe('the heartbeat of waiters', () => {
  const setUp = () => {
    const runtime = new VirtualRuntime();
    const waiters: RegisteredWaiter[] = [1, 2].map((n) => ({ owner: `me:${n}`, settled: false }));
    const refreshed: unknown[] = [];
    const dropped: string[] = [];
    const registered: { at: number | undefined; longer: boolean } = { at: undefined, longer: false };
    const backend = {
      answer: async (owners: readonly OwnerRef[], _keptLonger: () => void): Promise<readonly boolean[]> =>
        owners.map(() => true),
      refreshWaiters: (owners: readonly OwnerRef[], timeout: number, keptLonger: () => void) => {
        refreshed.push([owners, timeout]);
        return backend.answer(owners, keptLonger);
      },
    };
    const services = {
      backend: backend as unknown as LockBackend,
      runtime,
      waiterTimeout: 6_000,
    } as unknown as Services;
    const heartbeat = new WaiterHeartbeat(
      services,
      'lock:order',
      'write',
      () => waiters,
      ({ owner }) => void dropped.push(owner),
      () => (registered.at === undefined ? undefined : { sent: registered.at, areKeptLonger: registered.longer }),
    );
    return { runtime, waiters, refreshed, dropped, backend, heartbeat, registered };
  };

  it('refreshes all of them by one command, three times before the backend would forget them', async () => {
    const { runtime, refreshed, heartbeat } = setUp();
    heartbeat.start();
    heartbeat.start();
    expect([runtime.timers, runtime.keepAliveTimers]).toEqual([1, 0]);
    await runtime.advance(1_999);
    expect(refreshed).toEqual([]);
    await runtime.advance(4_001);
    const owners = [1, 2].map((n) => ({ key: 'lock:order', type: 'write', owner: `me:${n}` }));
    expect(refreshed).toEqual([1, 2, 3].map(() => [owners, 6_000]));
  });

  describe('if the backend keeps them longer', () => {
    const setUpLonger = async () => {
      const scene = setUp();
      const { backend, heartbeat, runtime } = scene;
      backend.answer = async (owners, keptLonger) => {
        keptLonger();
        return owners.map(() => true);
      };
      heartbeat.start();
      await runtime.advance(2_000);
      return scene;
    };

    it('refreshes them three times within that time', async () => {
      const { runtime, refreshed } = await setUpLonger();
      expect(refreshed).toHaveLength(1);
      await runtime.advance(7_999);
      expect(refreshed).toHaveLength(1);
      await runtime.advance(8_001);
      expect(refreshed).toHaveLength(3);
    });

    it('refreshes them as usual after an answer that says nothing about it', async () => {
      const { runtime, refreshed, backend } = await setUpLonger();
      backend.answer = async (owners) => owners.map(() => true);
      await runtime.advance(10_000);
      expect(refreshed).toHaveLength(3);
    });

    it('refreshes them for the first time as late, if the request that has registered them says so', async () => {
      const { runtime, refreshed, registered, heartbeat } = setUp();
      registered.at = runtime.monotonic();
      registered.longer = true;
      heartbeat.start();
      await runtime.advance(7_999);
      expect(refreshed).toHaveLength(0);
      await runtime.advance(1);
      expect(refreshed).toHaveLength(1);
    });

    it('refreshes another waiter as usual', async () => {
      const { runtime, refreshed, waiters } = await setUpLonger();
      waiters.push({ owner: 'me:3', settled: false });
      await runtime.advance(2_000);
      expect(refreshed).toHaveLength(2);
    });

    it('refreshes them as usual after a later request that has registered them again', async () => {
      const { runtime, refreshed, registered } = await setUpLonger();
      await runtime.advance(1_000);
      registered.at = runtime.monotonic();
      await runtime.advance(1_999);
      expect(refreshed).toHaveLength(1);
      await runtime.advance(1);
      expect(refreshed).toHaveLength(2);
    });
  });

  it('ends when nobody is registered any more, and can begin again', async () => {
    const { runtime, waiters, refreshed, heartbeat } = setUp();
    heartbeat.start();
    const [first] = waiters.splice(0);
    await runtime.advance(2_000);
    expect([refreshed.length, runtime.timers]).toEqual([0, 0]);
    waiters.push(first);
    heartbeat.start();
    await runtime.advance(2_000);
    expect(refreshed).toHaveLength(1);
  });

  it('can be stopped, and begin again', async () => {
    const { runtime, refreshed, heartbeat } = setUp();
    heartbeat.start();
    heartbeat.stop();
    expect(runtime.timers).toBe(0);
    heartbeat.start();
    await runtime.advance(2_000);
    expect(refreshed).toHaveLength(1);
    heartbeat.stop();
    heartbeat.stop();
    expect(runtime.timers).toBe(0);
  });

  it('goes on while an answer is awaited', async () => {
    const { runtime, refreshed, backend, heartbeat } = setUp();
    backend.answer = () => new Promise(() => {});
    heartbeat.start();
    await runtime.advance(4_000);
    expect(refreshed).toHaveLength(2);
  });

  it('reports those that the backend has forgotten, unless they have left meanwhile', async () => {
    const { runtime, waiters, dropped, backend, heartbeat } = setUp();
    waiters.push({ owner: 'me:3', settled: true });
    backend.answer = async () => [true, false, false];
    heartbeat.start();
    await runtime.advance(2_000);
    await runtime.settle();
    expect(dropped).toEqual(['me:2']);
  });

  it('tries again after a failure', async () => {
    const { runtime, refreshed, dropped, backend, heartbeat } = setUp();
    backend.answer = async () => {
      throw new Error('no connection');
    };
    heartbeat.start();
    await runtime.advance(4_000);
    expect([refreshed.length, dropped]).toEqual([2, []]);
  });
});
