import { type HeldType, isTransferable, type Removal } from '../../../lib/backends/lock-backend.js';
import { until } from '../../support/until.js';
import type { ContractWorld } from '../support/contract-world.js';
import type { Owner } from '../support/owner.js';

/**
 * Which subscribers are notified of a release. A waiter of a fair lock has to be registered, because only registered
 * waiters are notified.
 */
export function describeWakeUps(world: ContractWorld, type: HeldType): void {
  const queue = async (waiter: Owner) => {
    if (type === 'fair') await waiter.meet({ waiterTimeout: 60_000 });
  };

  it('wakes a waiter of another client when it is released', async () => {
    const [ann, bob] = world.owners(type, 2);
    const listener = await world.listen(bob);
    await ann.take();
    await queue(bob);
    await ann.release();
    await listener.hears();
    await bob.take();
  });

  it('wakes a waiter of the same client when it is released', async () => {
    const [ann] = world.owners(type, 1);
    const bob = world.owner(type, ann.key, ann.client);
    const listener = await world.listen(bob);
    await ann.take();
    await queue(bob);
    await ann.release();
    await listener.hears();
    await bob.take();
  });

  it('wakes waiters when it is released by force', async () => {
    const [ann, bob, eve] = world.owners(type, 3);
    const listener = await world.listen(bob);
    await ann.take();
    await queue(bob);
    await eve.forceRelease();
    await listener.hears();
    await bob.take();
  });

  it('notifies the clients whose owners were removed by force, and no others', async () => {
    const [ann, eve] = world.owners(type, 2);
    const heard: Removal[] = [];
    const elsewhere: unknown[] = [];
    const subscriptions = [
      ann.client.backend.listenToClient!(ann.client.id, (removal) => heard.push(removal)),
      eve.client.backend.listenToClient!(eve.client.id, (removal) => elsewhere.push(removal)),
    ];
    await Promise.all(subscriptions.map(({ ready }) => ready));
    await ann.take();
    await eve.forceRelease();
    // In a cluster, the message of another test may come late.
    const own = () => heard.find(({ key }) => key === ann.key);
    await until(own);
    expect(own()).toEqual({ key: ann.key, owners: [ann.owner] });
    expect(elsewhere).toEqual([]);
    for (const subscription of subscriptions) subscription.close();
  });

  it('wakes nobody before it is released', async () => {
    const [ann, bob, eve] = world.owners(type, 3);
    const listener = await world.listen(bob);
    await ann.take();
    await queue(bob);
    await ann.take();
    await ann.renew();
    await eve.release();
    await eve.renew();
    let holder = ann;
    if (isTransferable(type)) {
      holder = world.owner(type, ann.key, ann.client);
      await ann.transferTo(holder);
    }
    await holder.release();
    await listener.hears();
    world.expectMessages(listener, 1);
  });

  it('wakes a waiter when its owner makes the lease shorter, because the waiter rests until the former one ends', async () => {
    const [ann, bob] = world.owners(type, 2);
    const listener = await world.listen(bob);
    await ann.take({ leaseTime: 60_000 });
    await queue(bob);
    await ann.renew(120_000);
    expect(listener.heard).toHaveLength(0);
    await ann.renew(30_000);
    await listener.hears();
    expect(await ann.remaining()).toBeWithin(1, 30_000);
  });

  if (world.capabilities.joinsQuorums !== false) {
    it('wakes nobody when it is released quietly', async () => {
      const [ann, bob] = world.owners(type, 2);
      const listener = await world.listen(bob);
      await ann.take();
      await queue(bob);
      expect(await ann.releaseQuietly()).toMatchObject({ released: true, listeners: 0 });
      await bob.take();
      await bob.release();
      await ann.take();
      await queue(bob);
      await ann.release();
      await listener.hears(type === 'fair' ? 1 : 2);
      // For a fair lock, only the message to the head of the queue.
      world.expectMessages(listener, type === 'fair' ? 1 : 2);
    });
  }

  it('wakes the waiters of one lock and of no other', async () => {
    const prefix = world.key('a');
    const [star, exact] = [`${prefix}*`, `${prefix}xyz`].map((key) => world.owners(type, 2, key));
    const listeners = await Promise.all([world.listen(star[1]), world.listen(exact[1])]);
    for (const [ann, bob] of [exact, star]) {
      await ann.take();
      await queue(bob);
      await ann.release();
    }
    await Promise.all(listeners.map((listener) => listener.hears()));
    for (const listener of listeners) world.expectMessages(listener, 1);
  });

  it('notifies each subscription of a client until it is closed', async () => {
    const [ann, bob] = world.owners(type, 2);
    const [one, two] = [await world.listen(bob), await world.listen(bob)];
    const releaseOnce = async () => {
      const before = two.heard.length;
      await ann.take();
      await queue(bob);
      await ann.release();
      await two.hears(before + 1);
      await bob.removeWaiter();
    };
    await releaseOnce();
    world.expectMessages(one, 1);
    one.close();
    one.close();
    const { length } = one.heard;
    await releaseOnce();
    expect(one.heard).toHaveLength(length);
    world.expectMessages(two, 2);
  });

  it('notifies a subscription of nothing from the moment it is closed', async () => {
    const [ann, bob] = world.owners(type, 2);
    const [closed, open] = [await world.listen(bob), await world.listen(bob)];
    await ann.take();
    await queue(bob);
    const released = ann.release();
    closed.close();
    await released;
    await open.hears();
    expect(closed.heard).toEqual([]);
  });

  it('notifies again after all subscriptions were closed and one was opened', async () => {
    const [ann, bob] = world.owners(type, 2);
    for (let round = 0; round < 3; round++) {
      const listener = await world.listen(bob);
      await ann.take();
      await queue(bob);
      await ann.release();
      await listener.hears();
      await bob.removeWaiter();
      listener.close();
    }
  });

  if (world.capabilities.countsListeners === false) return;

  it('says how many other clients listened', async () => {
    const [ann, bob, eve] = world.owners(type, 3);
    const listeners = async () => {
      await ann.take();
      await queue(bob);
      const reply = await ann.release();
      await bob.removeWaiter();
      return reply.listeners;
    };
    expect(await listeners()).toBe(0);
    const own = await world.listen(ann);
    expect(await listeners()).toBe(0);
    const bobs = [await world.listen(bob), await world.listen(bob)];
    expect(await listeners()).toBe(1);
    const eves = await world.listen(eve);
    const others = type === 'fair' ? 1 : 2; // only the head is notified
    expect(await listeners()).toBe(others);
    own.close();
    // The server may count the subscription that has just ended once more.
    await until(async () => (await listeners()) === others);
    for (const listener of [...bobs, eves]) listener.close();
    await until(async () => (await listeners()) === 0);
  });

  it('counts no listeners when nothing was released', async () => {
    const [ann, bob] = world.owners(type, 2);
    await world.listen(ann);
    await ann.take();
    expect(await bob.release()).toMatchObject({ released: false, listeners: 0, published: false, resent: false });
  });
}
