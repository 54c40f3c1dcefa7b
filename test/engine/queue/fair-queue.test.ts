import type { LockBackend, Wake } from '../../../lib/backends/lock-backend.js';
import { openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';

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
});
