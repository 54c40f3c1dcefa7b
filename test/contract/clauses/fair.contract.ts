import { type ContractWorld, SHORT } from '../support/contract-world.js';
import { LONG, type Owner } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

const WAITING = { waiterTimeout: LONG };

/** The queue of a fair lock serves the waiters of all clients in the order of their arrival. */
export function describeFairness(world: ContractWorld): void {
  const fair = (count: number) => world.owners('fair', count);
  const queueUp = async (...waiters: Owner[]) => {
    for (const waiter of waiters) await waiter.meet(WAITING);
  };

  describe('the queue of a fair lock', () => {
    it('serves in order of arrival, across clients', async () => {
      const [holder, ...waiters] = fair(7);
      await holder.take();
      await queueUp(...waiters);
      let last = holder;
      for (const next of waiters) {
        await last.release();
        for (const other of waiters) if (other !== next && other !== last) await other.meet();
        await next.take();
        last = next;
      }
    });

    it('lists the waiters, the head first', async () => {
      const [holder, ...waiters] = fair(4);
      await holder.take();
      await queueUp(...waiters);
      expect((await holder.inspect()).queue).toEqual(waiters.map(({ owner }) => owner));
    });

    it('does not list an owner that does not wait', async () => {
      const [holder, ann] = fair(2);
      await holder.take();
      await ann.meet({ waiterTimeout: 0 });
      expect((await holder.inspect()).queue).toEqual([]);
    });

    it('lets nobody overtake the head while the lock is free', async () => {
      const [holder, head, ann] = fair(3);
      await holder.take();
      await queueUp(head);
      await holder.release();
      for (const waiterTimeout of [0, LONG]) {
        const busy = await ann.meet({ waiterTimeout });
        expect(busy.holder).toBe(head.owner);
        expect(busy.remaining).toBeWithin(1, LONG);
      }
      await head.take();
    });

    it('keeps the position of a waiter that asks again', async () => {
      const [holder, ann, bob] = fair(3);
      await holder.take();
      await queueUp(ann, bob, ann, bob, ann);
      expect((await holder.inspect()).queue).toEqual([ann.owner, bob.owner]);
    });

    it('no longer lists a waiter that acquired the lock', async () => {
      const [holder, ann, bob] = fair(3);
      await holder.take();
      await queueUp(ann, bob);
      await holder.release();
      await ann.take();
      expect((await ann.inspect()).queue).toEqual([bob.owner]);
    });

    it("gives the lock to the head when the holder's lease ends", async () => {
      const [holder, ann, bob] = fair(3);
      await holder.take({ leaseTime: SHORT });
      await queueUp(ann, bob);
      await world.elapse(SHORT);
      await bob.meet(WAITING);
      await ann.take();
    });

    it('gives the lock to the head after a forced release', async () => {
      const [holder, ann, bob] = fair(3);
      await holder.take();
      await queueUp(ann, bob);
      const [toAnn, toBob] = [await world.listen(ann), await world.listen(bob)];
      await bob.forceRelease();
      await toAnn.hears();
      await bob.meet(WAITING);
      await ann.take();
      await ann.release();
      await toBob.hears();
      expect([toAnn.heard.length, toBob.heard.length]).toEqual([1, 1]);
    });

    it('wakes only the head, and names it', async () => {
      const [holder, ...waiters] = fair(4);
      const listeners = await Promise.all(waiters.map((waiter) => world.listen(waiter)));
      await holder.take();
      await queueUp(...waiters);
      let last = holder;
      for (const [n, next] of waiters.entries()) {
        await last.release();
        await listeners[n].hears();
        await next.take();
        last = next;
      }
      for (const [n, { heard }] of listeners.entries()) {
        expect(heard).toEqual([{ kind: 'message', owner: waiters[n].owner }]);
      }
    });

    it('names the owner that a message is for to its client', async () => {
      const [holder, ann] = fair(2);
      const bob = world.owner('fair', ann.key, ann.client);
      const listener = await world.listen(ann);
      await holder.take();
      await queueUp(bob, ann);
      await holder.release();
      await listener.hears();
      expect(listener.heard[0].owner).toBe(bob.owner);
    });

    it('is separate for each lock', async () => {
      const locks = [fair(3), fair(3), fair(3)];
      await Promise.all(
        locks.map(async ([holder, ...waiters]) => {
          await holder.take();
          await queueUp(...waiters);
        }),
      );
      const [[firstHolder, next]] = locks;
      await firstHolder.release();
      await next.take();
      for (const [holder, ...waiters] of locks.slice(1)) {
        expect(await holder.holds()).toBe(true);
        expect((await holder.inspect()).queue).toEqual(waiters.map(({ owner }) => owner));
      }
    });
  });
}
