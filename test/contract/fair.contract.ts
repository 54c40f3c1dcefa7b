import { type ContractWorld, SHORT } from './contract-world.js';
import { LONG, type Owner } from './owner.js';

const WAITING = { fairWaitTimeout: LONG };

/** Order of arrival, over clients: what the queue of a fair lock promises. */
export function describeFairness(world: ContractWorld): void {
  const fair = (count: number) => world.owners('fair', count);
  const queueUp = async (...waiters: Owner[]) => {
    for (const waiter of waiters) await waiter.meet(WAITING);
  };

  describe('the queue of a fair lock', () => {
    it('serves in order of arrival, over clients', async () => {
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

    it('lists who waits, the head first', async () => {
      const [holder, ...waiters] = fair(4);
      await holder.take();
      await queueUp(...waiters);
      expect((await holder.inspect()).queue).toEqual(waiters.map(({ owner }) => owner));
    });

    it('does not list one who would not wait', async () => {
      const [holder, ann] = fair(2);
      await holder.take();
      await ann.meet({ fairWaitTimeout: 0 });
      expect((await holder.inspect()).queue).toEqual([]);
    });

    it('lets nobody pass the head, while the lock is free', async () => {
      const [holder, head, ann] = fair(3);
      await holder.take();
      await queueUp(head);
      await holder.release();
      for (const fairWaitTimeout of [0, LONG]) {
        const busy = await ann.meet({ fairWaitTimeout });
        expect(busy.holder).toBe(head.owner);
        expect(busy.remaining).toBeWithin(1, LONG);
      }
      await head.take();
    });

    it('keeps the place of one who asks again', async () => {
      const [holder, ann, bob] = fair(3);
      await holder.take();
      await queueUp(ann, bob, ann, bob, ann);
      expect((await holder.inspect()).queue).toEqual([ann.owner, bob.owner]);
    });

    it('loses one who got the lock', async () => {
      const [holder, ann, bob] = fair(3);
      await holder.take();
      await queueUp(ann, bob);
      await holder.release();
      await ann.take();
      expect((await ann.inspect()).queue).toEqual([bob.owner]);
    });

    it('passes to the head when the lease of the holder lapses', async () => {
      const [holder, ann, bob] = fair(3);
      await holder.take({ leaseTime: SHORT });
      await queueUp(ann, bob);
      await world.elapse(SHORT);
      await bob.meet(WAITING);
      await ann.take();
    });

    it('passes to the head when the holder is freed by force', async () => {
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

    it('wakes only the next, and says whom', async () => {
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

    it('tells a client which of its owners a message is for', async () => {
      const [holder, ann] = fair(2);
      const bob = world.owner('fair', ann.key, ann.client);
      const listener = await world.listen(ann);
      await holder.take();
      await queueUp(bob, ann);
      await holder.release();
      await listener.hears();
      expect(listener.heard[0].owner).toBe(bob.owner);
    });

    it('of one lock leaves that of another alone', async () => {
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
