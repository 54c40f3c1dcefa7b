import { SHORTEST_GRANT } from '../../../lib/backends/lock-backend.js';
import { type ContractWorld, SHORT } from '../support/contract-world.js';
import { type AcquireOptions, LONG, type Owner } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

const two = { permits: 2 };

/** A lock that n may hold at a time. */
export function describePermits(world: ContractWorld): void {
  const owners = (count = 4) => world.owners('permits', count);
  const holders = async (lock: Owner) => (await lock.inspect()).owners.map(({ owner }) => owner).sort();

  describe('a lock that n may hold', () => {
    it('is held by n owners, each with a lease and a token', async () => {
      const [ann, bob, eve] = owners();
      const one = await ann.take({ ...two, leaseTime: 20_000 });
      const other = await bob.take({ ...two, leaseTime: 10_000 });
      expect(other.token).toBeGreaterThan(one.token);
      const { mode, owners: held } = await eve.inspect();
      expect(mode).toBe('permits');
      expect(held.map(({ owner }) => owner)).toEqual([bob.owner, ann.owner]);
      expect(held[0].remaining).toBeWithin(1, 10_000);
      expect(held[1].remaining).toBeWithin(10_001, 20_000);
    });

    it('is busy for others until the lease that ends first', async () => {
      const [ann, bob, eve] = owners();
      await ann.take({ ...two, leaseTime: 20_000 });
      await bob.take({ ...two, leaseTime: 10_000 });
      const busy = await eve.meet(two);
      expect(busy.holder).toBe(bob.owner);
      expect(busy.remaining).toBeWithin(1, 10_000);
      for (const type of ['reentrant', 'fair', 'read', 'write', 'fenced'] as const) {
        const other = await eve.as(type).meet();
        expect(other.holder).toBe(bob.owner);
        expect(other.remaining).toBeWithin(1, 10_000);
      }
    });

    it('has room for another owner as soon as one has released it', async () => {
      const [ann, bob, eve, joe] = owners();
      const listener = await world.listen(eve);
      await ann.take(two);
      await bob.take(two);
      await eve.meet(two);
      expect(await ann.release()).toMatchObject({ released: true });
      await listener.hears();
      await eve.take(two);
      await joe.meet(two);
      expect(await holders(ann)).toEqual([bob.owner, eve.owner].sort());
    });

    it('goes to n of many that ask at once', async () => {
      const contenders = owners(30);
      const replies = await Promise.all(contenders.map((owner) => owner.acquire({ permits: 7 })));
      expect(replies.filter(({ acquired }) => acquired)).toHaveLength(7);
      expect(await holders(contenders[0])).toHaveLength(7);
    });

    it('takes the limit of each request', async () => {
      const [ann, bob, eve] = owners();
      await ann.take({ permits: 1 });
      await bob.meet({ permits: 1 });
      await bob.take({ permits: 2 });
      await eve.meet({ permits: 1 });
      await eve.take({ permits: 3 });
      await ann.take({ permits: 1 });
      expect(await holders(ann)).toHaveLength(3);
    });

    it('loses each holder when its own lease ends', async () => {
      const [ann, bob, eve] = owners();
      await ann.take({ ...two, leaseTime: SHORT });
      await bob.take({ ...two, leaseTime: LONG });
      await eve.meet(two);
      await world.elapse(SHORT + 50);
      expect(await holders(eve)).toEqual([bob.owner]);
      expect(await ann.renew()).toBe(false);
      expect(await ann.release()).toMatchObject({ released: false });
      await eve.take(two);
    });

    it('lasts as long as the last of its leases, and leaves nothing behind', async () => {
      const [ann, bob] = owners();
      await ann.take({ ...two, leaseTime: LONG });
      await bob.take({ ...two, leaseTime: SHORT });
      await ann.renew(SHORT);
      await world.elapse(SHORT + 50);
      expect(await ann.inspect()).toMatchObject({ mode: 'free', owners: [] });
      await bob.as('reentrant').take();
    });

    it('is renewed for each holder, and wakes waiters if a lease becomes the first to end', async () => {
      const [ann, bob, eve] = owners();
      const listener = await world.listen(eve);
      await ann.take({ ...two, leaseTime: 20_000 });
      await bob.take({ ...two, leaseTime: 20_000 });
      expect(await ann.renew(30_000)).toBe(true);
      expect(listener.heard).toHaveLength(0);
      expect(await ann.renew(10_000)).toBe(true);
      await listener.hears();
      expect(await ann.remaining()).toBeWithin(1, 10_000);
      expect(await bob.remaining()).toBeWithin(10_001, 20_000);
    });

    it('passes a permit from one owner to another, and leaves the others', async () => {
      const [ann, bob, eve] = owners();
      await ann.take(two);
      await bob.take(two);
      const passed = await ann.transferTo(eve);
      expect(passed).toMatchObject({ acquired: true });
      expect(await holders(ann)).toEqual([bob.owner, eve.owner].sort());
      expect(await ann.release()).toMatchObject({ released: false });
    });

    const lines = () => world.capabilities.lines !== false;
    const waiting = { ...two, waiterTimeout: LONG };
    /** Enters the line, and listens for what concerns the place, as whoever is granted a permit must. */
    const wait = async (owner: Owner, options: AcquireOptions = {}) => {
      await world.listenInLine(owner);
      return owner.meet({ ...waiting, ...options });
    };

    it('is granted to the first places of its line while there is room', async () => {
      if (!lines()) return;
      const [ann, bob, eve, joe] = owners();
      const meg = world.owner('permits', ann.key, ann.client);
      const listeners = await Promise.all([eve, joe, meg].map((owner) => world.listenInLine(owner)));
      await ann.take(two);
      await bob.take(two);
      for (const owner of [eve, joe, meg]) await wait(owner);
      expect((await ann.inspect()).queue).toEqual([eve, joe, meg].map(({ owner }) => owner));
      await ann.release();
      await listeners[0].hears();
      expect(await holders(ann)).toEqual([bob.owner, eve.owner].sort());
      await joe.forceRelease();
      await listeners[1].hears();
      await joe.take(waiting);
      await meg.take(waiting);
      expect(await holders(ann)).toEqual([joe.owner, meg.owner].sort());
      expect((await joe.take(two)).token).toBeGreaterThan(0);
      expect(await joe.remaining()).toBeGreaterThan(LONG / 2);
    });

    it('goes to the next in line that has room, past one that wants fewer holders, but to none that came later', async () => {
      if (!lines()) return;
      const [ann, bob, eve, joe] = owners();
      const meg = world.owner('permits', ann.key, ann.client);
      await ann.take({ permits: 1 });
      await bob.take(two);
      await wait(eve, { permits: 1 });
      await wait(joe);
      const listener = await world.listenInLine(joe);
      await bob.release();
      await listener.hears();
      expect(await joe.holds()).toBe(true);
      await wait(meg);
      await joe.release();
      expect(await holders(ann)).toEqual([ann.owner, meg.owner].sort());
      await ann.release();
      await meg.release();
      expect(await holders(ann)).toEqual([eve.owner]);
    });

    it('is granted to the next in line that has room when a place is kept, past one that wants fewer holders', async () => {
      if (!lines()) return;
      const [ann, bob, eve, joe] = owners();
      await ann.take({ permits: 1 });
      await bob.take({ ...two, leaseTime: SHORT });
      await wait(eve, { permits: 1 });
      await wait(joe);
      await world.elapse(SHORT + 1);
      await joe.refreshWaiter();
      expect(await joe.holds()).toBe(true);
    });

    it('tells nobody when a process takes the permit that it was granted', async () => {
      if (!lines()) return;
      const [ann, bob, eve, joe] = owners();
      await ann.take(two);
      await bob.take(two);
      await wait(eve);
      await wait(joe);
      const listener = await world.listenInLine(joe);
      await ann.release();
      await eve.take(waiting);
      await eve.inspect(); // gives a message time to arrive
      expect(listener.heard).toEqual([]);
    });

    it('tells nobody when a process enters the line while all permits are held', async () => {
      if (!lines()) return;
      const [ann, bob, eve, joe] = owners();
      await ann.take(two);
      await bob.take(two);
      await wait(eve);
      const listener = await world.listenInLine(eve);
      await wait(joe);
      await eve.inspect(); // gives a message time to arrive
      expect(listener.heard).toEqual([]);
    });

    it('goes to the next in line that wants one, past one that wants the whole lock', async () => {
      if (!lines()) return;
      const [ann, bob, eve, joe] = owners();
      await ann.take(two);
      await bob.take(two);
      await world.listenInLine(eve);
      await eve.as('reentrant').meet({ waiterTimeout: LONG });
      await wait(joe);
      await bob.release();
      expect(await holders(ann)).toEqual([ann.owner, joe.owner].sort());
      await joe.release();
      await ann.release();
      expect(await eve.as('reentrant').holds()).toBe(true);
    });

    it('is granted to the next in line when the process that was granted it has died, although others hold on', async () => {
      if (!lines()) return;
      const [ann, bob, eve, joe] = owners();
      await ann.take(two);
      await bob.take(two);
      await wait(eve, { grantLease: SHORTEST_GRANT });
      await wait(joe);
      await ann.release();
      expect(await eve.holds()).toBe(true);
      await world.elapse(SHORTEST_GRANT + 50);
      expect(await joe.refreshWaiter()).toBe(true);
      expect(await holders(ann)).toEqual([bob.owner, joe.owner].sort());
    });

    it('passes a permit on that was granted to who leaves', async () => {
      if (!lines()) return;
      const [ann, bob, eve, joe] = owners();
      await ann.take(two);
      await bob.take(two);
      await wait(eve);
      await wait(joe);
      await ann.release();
      await eve.removeWaiter();
      expect(await holders(ann)).toEqual([bob.owner, joe.owner].sort());
      await joe.removeWaiter();
      expect(await holders(ann)).toEqual([bob.owner]);
    });

    it('lets who is first in line go before those who enter it', async () => {
      if (!lines()) return;
      const [ann, bob, eve, joe] = owners();
      await ann.take({ ...two, leaseTime: SHORT });
      await bob.take(two);
      await wait(eve);
      await world.elapse(SHORT + 50);
      await wait(joe);
      expect(await holders(ann)).toEqual([bob.owner, eve.owner].sort());
    });

    it('goes to all in line that have room when the first of them asks', async () => {
      if (!lines()) return;
      const [ann, bob, eve, joe] = owners();
      const meg = world.owner('permits', ann.key, ann.client);
      const three = { permits: 3 };
      await ann.take({ ...three, leaseTime: SHORT });
      await bob.take({ ...three, leaseTime: SHORT });
      await meg.take(three);
      for (const owner of [eve, joe]) await wait(owner, three);
      await world.elapse(SHORT + 50);
      await eve.take({ ...waiting, ...three });
      expect(await holders(ann)).toEqual([eve.owner, joe.owner, meg.owner].sort());
    });

    it('is taken by force from one holder or from all, and then has room', async () => {
      const [ann, bob, eve, joe] = owners();
      const listener = await world.listen(joe);
      for (const owner of [ann, bob, eve]) await owner.take({ permits: 3 });
      expect(await joe.forceRelease({ owners: [bob.owner] })).toEqual([bob.owner]);
      await listener.hears();
      expect(await holders(joe)).toEqual([ann.owner, eve.owner].sort());
      await joe.take({ permits: 3 });
      expect([...(await joe.forceRelease())].sort()).toEqual([ann.owner, eve.owner, joe.owner].sort());
      expect(await joe.inspect()).toMatchObject({ mode: 'free' });
    });
  });
}
