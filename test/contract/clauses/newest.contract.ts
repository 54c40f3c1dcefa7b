import type { AcquireReply } from '../../../lib/backends/lock-backend.js';
import { type ContractWorld, SHORT } from '../support/contract-world.js';
import { LONG } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

const ARRIVES = { waiterTimeout: LONG, newest: { superseded: 0, order: undefined } };
const again = ({ newest }: AcquireReply) => ({ waiterTimeout: LONG, newest });
const has = (superseded: number) => ({ newest: expect.objectContaining({ superseded }) });

/** Callers of whom only the newest waits. */
export function describeNewest(world: ContractWorld): void {
  const owners = () => world.owners('reentrant', 4);

  const itGrants = (title: string, body: () => Promise<void>) =>
    it(title, async () => {
      if (!(await world.freesFirst())) await body();
    });

  describe('the newest call in a line', () => {
    it('takes the place of the one before, whose client is told and learns it', async () => {
      const [ann, bob, cem, dan] = owners();
      const listener = await world.listenInLine(bob);
      await ann.take();
      const entered = await bob.meet(ARRIVES);
      expect(entered).toMatchObject(has(0));
      expect(await cem.meet(ARRIVES)).toMatchObject(has(1));
      await listener.hears();
      expect(listener.heard).toEqual([{ kind: 'message', owner: bob.owner, lock: undefined }]);
      expect((await ann.inspect()).queue).toEqual([cem.owner]);
      expect(await bob.meet(again(entered))).toMatchObject({ superseded: true });
      expect(await dan.meet(ARRIVES)).toMatchObject(has(2));
      expect((await ann.inspect()).queue).toEqual([dan.owner]);
    });

    it('keeps the position of the one before, and leaves other places alone', async () => {
      const [ann, bob, cem, dan] = owners();
      await ann.take();
      await bob.meet(ARRIVES);
      await cem.meet({ waiterTimeout: LONG });
      await dan.meet(ARRIVES);
      expect((await ann.inspect()).queue).toEqual([dan.owner, cem.owner]);
    });

    it('keeps its place and its count when it asks again', async () => {
      const [ann, bob, cem] = owners();
      await ann.take();
      await bob.meet(ARRIVES);
      const three = { ...ARRIVES, newest: { superseded: 3, order: undefined } };
      const entered = await cem.meet(three);
      expect(await cem.meet(again(entered))).toMatchObject({ newest: entered.newest });
      expect(await cem.meet(three)).toMatchObject(has(4));
      expect((await ann.inspect()).queue).toEqual([cem.owner]);
    });

    it('may go on under another owner', async () => {
      const [ann, bob, cem, dan] = owners();
      await ann.take();
      await bob.meet(ARRIVES);
      const entered = await cem.meet(ARRIVES);
      expect(await dan.meet(again(entered))).toMatchObject({ newest: entered.newest });
      expect((await ann.inspect()).queue).toEqual([dan.owner]);
    });

    it('keeps its place when late copies of earlier requests arrive', async () => {
      const [ann, bob, cem, dan] = owners();
      const [eve] = world.owners('reentrant', 1, ann.key);
      await ann.take();
      await bob.meet(ARRIVES);
      await cem.meet(ARRIVES);
      await dan.meet(ARRIVES);
      expect(await bob.meet(ARRIVES)).toMatchObject({ superseded: true });
      expect(await cem.meet(ARRIVES)).toMatchObject({ superseded: true });
      await eve.meet(ARRIVES);
      expect(await dan.meet(ARRIVES)).toMatchObject({ superseded: true });
      expect((await ann.inspect()).queue).toEqual([eve.owner]);
    });

    it('supersedes an earlier one, and no later one, if the backend has lost what it knew of them', async () => {
      const [ann, bob, cem, dan] = owners();
      await ann.take();
      await bob.meet({ ...ARRIVES, newest: { superseded: 0, order: 1 } });
      expect(await cem.meet({ ...ARRIVES, newest: { superseded: 1, order: 2 } })).toMatchObject({
        newest: { order: 2 },
      });
      expect(await dan.meet({ ...ARRIVES, newest: { superseded: 0, order: 1 } })).toMatchObject({ superseded: true });
      expect((await ann.inspect()).queue).toEqual([cem.owner]);
    });

    itGrants('waits for the one before if that was granted the lock meanwhile', async () => {
      const [ann, bob, cem] = owners();
      await world.listenInLine(bob);
      await world.listenInLine(cem);
      await ann.take();
      const first = await bob.meet(ARRIVES);
      await ann.release();
      const second = await cem.meet(ARRIVES);
      expect(second).toMatchObject({ ...has(0), holder: bob.owner });
      expect((await bob.take(again(first))).acquired).toBe(true);
      expect((await ann.inspect()).queue).toEqual([cem.owner]);
      await bob.release();
      await cem.take(again(second));
    });

    itGrants('takes a free lock, also if the one before had not asked for it yet', async () => {
      const [ann, bob, cem] = owners();
      expect(await ann.take({ ...ARRIVES, leaseTime: SHORT })).toMatchObject(has(0));
      const first = await bob.meet(ARRIVES);
      await world.elapse(SHORT + 50);
      expect(await cem.take(ARRIVES)).toMatchObject(has(1));
      expect(await bob.meet(again(first))).toMatchObject({ superseded: true });
      await cem.release();
      expect(await bob.acquire(again(first))).toMatchObject({ acquired: false, superseded: true });
      expect(await bob.acquire()).toMatchObject({ acquired: true });
    });

    it('stays the newest when it leaves, so that a call which missed the message does not enter again', async () => {
      const [ann, bob, cem, dan] = owners();
      await ann.take();
      const first = await bob.meet(ARRIVES);
      await cem.meet(ARRIVES);
      await cem.removeWaiter();
      expect((await ann.inspect()).queue).toEqual([]);
      expect(await bob.meet(again(first))).toMatchObject({ superseded: true });
      expect((await ann.inspect()).queue).toEqual([]);
      expect(await dan.meet(ARRIVES)).toMatchObject(has(0));
      expect((await ann.inspect()).queue).toEqual([dan.owner]);
    });

    it('does not count calls whose places have lapsed', async () => {
      const [ann, bob, cem] = owners();
      await ann.take();
      await bob.meet({ ...ARRIVES, waiterTimeout: SHORT });
      await world.elapse(SHORT + 50);
      expect(await bob.refreshWaiter()).toBe(false);
      expect((await cem.meet(ARRIVES)).newest?.superseded).toBeLessThanOrEqual(1);
      expect((await ann.inspect()).queue).toEqual([cem.owner]);
    });
  });
}
