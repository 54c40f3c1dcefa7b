import { ms, openVirtualWorld } from '../../support/lock-world.js';

const WAITER_TIMEOUT = 3_000;
const INTERVAL = WAITER_TIMEOUT / 3;

describe('the place of a process in a line', () => {
  const world = openVirtualWorld();

  /** Ann holds the lock, and bob waits for it. */
  const waiting = async () => {
    const settings = { waiterTimeout: ms(WAITER_TIMEOUT) };
    const [ann, bob] = [await world.process(settings), await world.process(settings)];
    const held = await ann.locks.acquire('order');
    const served = bob.locks.acquire('order');
    await bob.runtime.settle();
    return { ann, bob, held, served, refreshes: () => bob.backend.count('refreshWaiters') };
  };

  it('is kept three times within waiterTimeout', async () => {
    const { bob, held, served, refreshes } = await waiting();
    await bob.runtime.advance(INTERVAL - 1);
    expect(refreshes()).toBe(0);
    await bob.runtime.advance(2);
    expect(refreshes()).toBe(1);
    await bob.runtime.advance(2 * WAITER_TIMEOUT);
    expect(refreshes()).toBe(7);
    await held.release();
    await (await bob.runtime.until(served)).release();
  });

  it('is not kept by a command of its own before this time has passed since the request that made it', async () => {
    const { ann, bob, held, served, refreshes } = await waiting();
    const { runtime } = bob;
    let holder = held;
    let next = served;
    for (let turn = 0; turn < 10; turn++) {
      await runtime.advance(INTERVAL / 2);
      await holder.release();
      const lease = await runtime.until(next);
      const again = ann.locks.acquire('order');
      await runtime.settle();
      await lease.release();
      holder = await runtime.until(again);
      next = bob.locks.acquire('order');
      await runtime.settle();
    }
    expect(refreshes()).toBe(0);
    await runtime.advance(INTERVAL + 1);
    expect(refreshes()).toBe(1);
    await holder.release();
    await (await runtime.until(next)).release();
  });
});
