import { type ContractWorld, LAPSING, SHORT } from '../support/contract-world.js';
import { LONG, type Owner } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

const WAITING = { waiterTimeout: LONG };

/** What becomes of waiters of a fair lock that leave, die or are refreshed. */
export function describeFairWaiters(world: ContractWorld): void {
  const fair = (count: number) => world.owners('fair', count);
  const queueUp = async (...waiters: Owner[]) => {
    for (const waiter of waiters) await waiter.meet(WAITING);
  };

  describe('the queue of a fair lock whose waiters leave or die', () => {
    it('continues without a waiter that left', async () => {
      const [holder, ann, bob, eve] = fair(4);
      await holder.take();
      await queueUp(ann, bob, eve);
      await bob.removeWaiter();
      expect((await holder.inspect()).queue).toEqual([ann.owner, eve.owner]);
      await ann.removeWaiter();
      await holder.release();
      await eve.take();
    });

    it('wakes the next one when the waiter that was woken leaves', async () => {
      const [holder, ann, bob] = fair(3);
      const listener = await world.listen(bob);
      await holder.take();
      await queueUp(ann, bob);
      await holder.release();
      await ann.removeWaiter();
      await listener.hears();
      await bob.take();
    });

    it('wakes nobody when a waiter leaves that was not woken', async () => {
      const [holder, ann, bob, eve] = fair(4);
      const listener = await world.listen(eve);
      await holder.take();
      await queueUp(ann, bob, eve);
      await ann.removeWaiter();
      await bob.removeWaiter();
      await holder.release();
      await listener.hears();
      await eve.take();
      expect(listener.heard).toHaveLength(1);
    });

    it('wakes nobody again when a waiter leaves behind the one that was woken', async () => {
      const [holder, ann, bob, eve] = fair(4);
      const listeners = [await world.listen(ann), await world.listen(eve)];
      await holder.take();
      await queueUp(ann, bob, eve);
      await holder.release();
      await bob.removeWaiter();
      await ann.removeWaiter();
      await Promise.all(listeners.map((listener) => listener.hears()));
      expect(listeners.map(({ heard }) => heard.map(({ owner }) => owner))).toEqual([[ann.owner], [eve.owner]]);
    });

    it('is not disturbed by an owner that leaves without having a place', async () => {
      const [holder, ann, stranger] = fair(3);
      await stranger.removeWaiter();
      await holder.take();
      await queueUp(ann);
      await stranger.removeWaiter();
      await holder.removeWaiter();
      expect(await holder.holds()).toBe(true);
      expect((await holder.inspect()).queue).toEqual([ann.owner]);
    });

    it('skips a dead head once its place has expired', async () => {
      const [holder, dead, bob] = fair(3);
      await holder.take();
      await dead.meet({ waiterTimeout: SHORT });
      await queueUp(bob);
      await holder.release();
      expect(await bob.takeInTime(WAITING)).toBeWithin(2, 5);
    });

    it('does not add up the places of several dead waiters', async () => {
      const [holder, ...dead] = fair(12);
      const last = world.owner('fair', holder.key);
      await holder.take();
      for (const owner of dead) await owner.meet({ waiterTimeout: SHORT });
      await queueUp(last);
      await holder.release();
      await world.elapse(SHORT);
      await last.take();
    });

    it('wakes the waiter behind a dead head when it refreshes its own place', async () => {
      const [holder, dead, bob] = fair(3);
      const listener = await world.listen(bob);
      await holder.take();
      await dead.meet({ waiterTimeout: SHORT });
      await queueUp(bob);
      await holder.release();
      await world.until(async () => {
        await bob.refreshWaiter();
        return listener.heard.length > 0;
      });
      await bob.take();
    });

    it('keeps waiters that are refreshed, all of a client in one call', async () => {
      const [holder] = fair(1);
      const client = world.clients[1];
      const waiters = [holder.key, world.key()].map((key) => world.owner('fair', key, client));
      const holders = waiters.map(({ key }) => world.owner('fair', key));
      for (const [n, waiter] of waiters.entries()) {
        await holders[n].take();
        await waiter.meet({ waiterTimeout: SHORT });
      }
      expect(await client.backend.refreshWaiters(waiters, LONG)).toEqual([true, true]);
      await world.elapse(SHORT);
      for (const waiter of waiters) expect((await waiter.inspect()).queue).toEqual([waiter.owner]);
    });

    it('says which waiters had lost their place, and gives none back by refreshing', async () => {
      const [holder, live, dead, stranger] = fair(4);
      await holder.take();
      await queueUp(live);
      await dead.meet({ waiterTimeout: LAPSING });
      await world.elapse(LAPSING);
      const waiters = [live, dead, stranger];
      expect(await holder.client.backend.refreshWaiters(waiters, LONG)).toEqual([true, false, false]);
      expect((await holder.inspect()).queue).toEqual([live.owner]);
      expect(await holder.client.backend.refreshWaiters([], LONG)).toEqual([]);
    });

    it('appends a waiter whose place had expired', async () => {
      const [holder, ann, bob, eve] = fair(4);
      await holder.take();
      await queueUp(ann);
      await bob.meet({ waiterTimeout: LAPSING });
      await queueUp(eve);
      await world.elapse(LAPSING);
      await queueUp(bob);
      expect((await holder.inspect()).queue).toEqual([ann.owner, eve.owner, bob.owner]);
    });

    it('does not slow down after hundreds of waiters gave up', async () => {
      const [holder, dead, bob] = fair(3);
      await holder.take();
      for (let n = 0; n < 300; n++) {
        const waiter = world.owner('fair', holder.key);
        await waiter.meet(WAITING);
        await waiter.removeWaiter();
      }
      expect((await holder.inspect()).queue).toEqual([]);
      await dead.meet({ waiterTimeout: LAPSING });
      await queueUp(bob);
      await holder.release();
      await world.elapse(LAPSING);
      await bob.take();
    });
  });
}
