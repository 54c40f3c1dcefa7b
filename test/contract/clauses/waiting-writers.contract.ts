import { type ContractWorld, SHORT } from '../support/contract-world.js';
import { LONG } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

const STAND_BACK = { pastLine: false };
const WAITING = { waiterTimeout: LONG };

/** Writers that are registered as waiting, and readers that give way to them. */
export function describeWaitingWriters(world: ContractWorld): void {
  const lock = () => {
    const key = world.key();
    const [rita, ron] = world.owners('read', 2, key);
    const [walt, wilma] = world.owners('write', 2, key);
    return { rita, ron, walt, wilma };
  };

  describe('a registered waiting writer', () => {
    it('is served before new readers', async () => {
      const { rita, ron, walt } = lock();
      await rita.take();
      await walt.meet(WAITING);
      expect((await ron.meet(STAND_BACK)).remaining).toBeWithin(1, LONG);
      await rita.release();
      await ron.meet(STAND_BACK);
      await walt.take();
      await walt.release();
      await ron.take(STAND_BACK);
    });

    it('does not keep out readers that go past it, nor readers that hold the lock', async () => {
      const { rita, ron, walt } = lock();
      await rita.take(STAND_BACK);
      await walt.meet(WAITING);
      await rita.take(STAND_BACK);
      await ron.take();
      expect(await rita.renew()).toBe(true);
    });

    it('does not keep the writer that holds the lock from reading', async () => {
      const { walt, wilma } = lock();
      await walt.take();
      await wilma.meet(WAITING);
      await walt.as('read').take(STAND_BACK);
    });

    it('keeps nobody out unless registered', async () => {
      const { rita, ron, walt } = lock();
      await rita.take();
      await walt.meet();
      await ron.take(STAND_BACK);
    });

    it('keeps nobody out once it has expired', async () => {
      const { rita, ron, walt } = lock();
      await rita.take();
      await walt.meet({ waiterTimeout: SHORT });
      expect(await ron.takeInTime(STAND_BACK)).toBeWithin(1, 5);
      expect(await walt.refreshWaiter()).toBe(false);
    });

    it('keeps readers waiting until the last of several writers has expired', async () => {
      const { rita, ron, walt, wilma } = lock();
      await rita.take();
      await walt.meet({ waiterTimeout: SHORT });
      await wilma.meet({ waiterTimeout: LONG });
      expect((await ron.meet(STAND_BACK)).remaining).toBeWithin(1, LONG);
      await world.elapse(SHORT + 50);
      expect((await ron.meet(STAND_BACK)).remaining).toBeWithin(SHORT, LONG);
      await wilma.removeWaiter();
      await ron.take(STAND_BACK);
    });

    it('stays registered by refreshing', async () => {
      const { rita, ron, walt, wilma } = lock();
      await rita.take();
      await walt.meet({ waiterTimeout: SHORT });
      expect(await walt.refreshWaiter()).toBe(true);
      expect(await wilma.refreshWaiter()).toBe(false);
      await world.elapse(SHORT);
      await ron.meet(STAND_BACK);
    });

    it('lets the waiting readers in when it leaves, and wakes them', async () => {
      const { rita, ron, walt, wilma } = lock();
      const listener = await world.listen(ron);
      await rita.take();
      await walt.meet(WAITING);
      await wilma.meet(WAITING);
      expect((await ron.meet(STAND_BACK)).remaining).toBeWithin(1, LONG);
      await walt.removeWaiter();
      await ron.meet(STAND_BACK);
      await wilma.removeWaiter();
      await listener.hears();
      await ron.take(STAND_BACK);
    });

    it('is shown in the queue', async () => {
      const { rita, walt } = lock();
      await rita.take();
      await walt.meet(WAITING);
      expect((await rita.inspect()).queue).toEqual(world.capabilities.lines === false ? [] : [walt.owner]);
    });
  });
}
