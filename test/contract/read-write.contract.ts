import { until } from '../support/until.js';
import { type ContractWorld, LONG, SHORT } from './contract-world.js';

const STAND_BACK = { preferWriters: true };
const WAITING = { placeTimeout: LONG };

/** Many readers or one writer, and what happens between them. */
export function describeReadWrite(world: ContractWorld): void {
  const lock = () => {
    const key = world.key();
    const [rita, ron, rose] = world.owners('read', 3, key);
    const [walt, wilma] = world.owners('write', 2, key);
    return { rita, ron, rose, walt, wilma };
  };
  /** Who reads or writes now. */
  const state = async ({ rita }: ReturnType<typeof lock>) => {
    const { mode, owners } = await rita.inspect();
    return { mode, owners: owners.map(({ owner }) => owner).sort() };
  };

  describe('a read/write lock', () => {
    it('is shared by readers', async () => {
      const own = lock();
      const { rita, ron, rose } = own;
      const tokens = [(await rita.take()).token, (await ron.take()).token, (await rose.take()).token];
      expect(tokens).toStrictlyGrow();
      expect(await state(own)).toEqual({ mode: 'read', owners: [rita, ron, rose].map(({ owner }) => owner).sort() });
    });

    it('is shared by as many readers as ask at once', async () => {
      const readers = world.owners('read', 50);
      await Promise.all(readers.map((reader) => reader.take()));
      expect((await readers[0].inspect()).owners).toHaveLength(50);
      await Promise.all(readers.map((reader) => reader.release()));
      expect((await readers[0].inspect()).mode).toBe('free');
    });

    it('keeps a writer out until the last reader has left', async () => {
      const { rita, ron, walt } = lock();
      await rita.take({ leaseTime: 5_000 });
      await ron.take({ leaseTime: 20_000 });
      const busy = await walt.meet();
      expect([rita.owner, ron.owner]).toContain(busy.holder);
      expect(busy.remaining).toBeWithin(5_001, 20_000);
      await rita.release();
      await walt.meet();
      await ron.release();
      await walt.take();
    });

    it('wakes a writer when the last reader leaves', async () => {
      const { rita, ron, walt } = lock();
      const listener = await world.listen(walt);
      await rita.take();
      await ron.take();
      await walt.meet(WAITING);
      await rita.release();
      await walt.meet(WAITING);
      await ron.release();
      await listener.hears();
      await walt.take();
    });

    it('keeps readers out while somebody writes, and wakes them all then', async () => {
      const { rita, ron, walt } = lock();
      const listeners = [await world.listen(rita), await world.listen(ron)];
      await walt.take({ leaseTime: 5_000 });
      const busy = await rita.meet();
      expect(busy.holder).toBe(walt.owner);
      expect(busy.remaining).toBeWithin(1, 5_000);
      await ron.meet();
      await walt.release();
      await Promise.all(listeners.map((listener) => listener.hears()));
      await rita.take();
      await ron.take();
    });

    it.each([
      ['R R W', SHORT, 3 * SHORT],
      ['R R W, the longer lease first', 3 * SHORT, SHORT],
    ])('gives each reader a lease of its own: %s', async (_case, first, second) => {
      const { rita, ron, walt } = lock();
      await rita.take({ leaseTime: first });
      await ron.take({ leaseTime: second });
      const [early, late] = first < second ? [rita, ron] : [ron, rita];
      await until(async () => !(await early.holds()));
      expect(await early.renew()).toBe(false);
      expect(await late.renew(3 * SHORT)).toBe(true);
      await walt.meet();
      expect(await walt.takeInTime()).toBeWithin(1, 5);
      expect(await late.renew()).toBe(false);
    });

    it('gives each reader a lease of its own: W R R', async () => {
      const { rita, ron, walt, wilma } = lock();
      await walt.take({ leaseTime: SHORT });
      await rita.takeInTime({ leaseTime: SHORT });
      await ron.take({ leaseTime: LONG });
      await world.elapse(SHORT);
      expect(await rita.holds()).toBe(false);
      await wilma.meet();
      await ron.release();
      await wilma.take();
    });

    it('does not wait for a reader that died once the others have left', async () => {
      const own = lock();
      const { rita: zombie, ron, walt } = own;
      await zombie.take({ leaseTime: SHORT });
      await ron.take();
      await world.elapse(SHORT);
      expect(await state(own)).toEqual({ mode: 'read', owners: [ron.owner] });
      await ron.release();
      await walt.take();
    });

    it('wakes a writer when the last living reader leaves a dead one behind', async () => {
      const { rita: zombie, ron, walt } = lock();
      const listener = await world.listen(walt);
      await zombie.take({ leaseTime: SHORT });
      await ron.take();
      await world.elapse(SHORT);
      await ron.release();
      await listener.hears();
      await walt.take();
    });

    it('renews one reader and not the others', async () => {
      const { rita, ron } = lock();
      await rita.take({ leaseTime: 5_000 });
      await ron.take({ leaseTime: 5_000 });
      await rita.renew(LONG);
      expect(await rita.remaining()).toBeWithin(5_001, LONG);
      expect(await ron.remaining()).toBeWithin(1, 5_000);
    });

    it('is not cut short by a reader with a shorter lease', async () => {
      const { rita, ron, rose, walt } = lock();
      await rita.take({ leaseTime: LONG });
      await ron.take({ leaseTime: SHORT });
      await rose.take({ leaseTime: LONG });
      await rose.renew(SHORT);
      await world.elapse(SHORT);
      expect(await rita.remaining()).toBeGreaterThan(SHORT);
      await walt.meet();
    });

    it('lets the writer read as well, and leaves it reading when it stops to write', async () => {
      const own = lock();
      const { ron, walt, wilma } = own;
      const waltReading = walt.as('read');
      await walt.take();
      await waltReading.take();
      expect(await state(own)).toEqual({ mode: 'write', owners: [walt.owner] });
      await ron.meet();
      expect(await walt.release()).toMatchObject({ released: true });
      expect(await state(own)).toEqual({ mode: 'read', owners: [walt.owner] });
      await wilma.meet();
      await ron.take();
      await ron.release();
      expect(await waltReading.renew()).toBe(true);
      expect(await waltReading.release()).toMatchObject({ released: true });
      await wilma.take();
    });

    it('wakes readers when the writer goes on reading only', async () => {
      const { ron, walt } = lock();
      const listener = await world.listen(ron);
      await walt.take();
      await walt.as('read').take();
      await ron.meet();
      await walt.release();
      await listener.hears();
      await ron.take();
    });

    it('stays with the writer when its read part ends first', async () => {
      const own = lock();
      const { ron, walt } = own;
      await walt.take();
      await walt.as('read').take();
      expect(await walt.as('read').release()).toMatchObject({ released: true });
      expect(await walt.as('read').release()).toMatchObject({ released: false });
      expect(await state(own)).toEqual({ mode: 'write', owners: [walt.owner] });
      await ron.meet();
      expect(await walt.renew()).toBe(true);
    });

    it('is written at least as long as its writer may read', async () => {
      const own = lock();
      const { ron, walt } = own;
      await walt.take({ leaseTime: SHORT });
      await walt.as('read').take({ leaseTime: LONG });
      await world.elapse(SHORT);
      expect(await state(own)).toEqual({ mode: 'write', owners: [walt.owner] });
      await ron.meet();
      expect(await walt.renew(SHORT)).toBe(true);
      await world.elapse(SHORT);
      expect(await walt.release()).toMatchObject({ released: true });
      expect(await state(own)).toEqual({ mode: 'read', owners: [walt.owner] });
    });

    it('passes the read part of its writer to nobody', async () => {
      const own = lock();
      const { rita, walt } = own;
      await walt.take();
      await walt.as('read').take();
      expect(await walt.as('read').passTo(rita)).toBeUndefined();
      expect(await state(own)).toEqual({ mode: 'write', owners: [walt.owner] });
    });

    it('keeps its writer when a pass to its read part comes late', async () => {
      const { rita, walt } = lock();
      await walt.take();
      await walt.as('read').take();
      await rita.passTo(walt.as('read'), 5_000);
      expect(await walt.remaining()).toBeGreaterThan(5_000);
    });

    it('tells nobody when one of several readers leaves', async () => {
      const { rita, ron, walt } = lock();
      const listener = await world.listen(walt);
      await rita.take();
      await ron.take();
      expect(await rita.release()).toEqual({ released: true, listeners: 0, resent: false });
      await ron.release();
      await listener.hears();
      expect(listener.heard).toHaveLength(1);
    });

    it('passes to no other writer while the one before it reads', async () => {
      const own = lock();
      const { walt, wilma } = own;
      await walt.take();
      await walt.as('read').take();
      expect(await walt.passTo(wilma)).toBeUndefined();
      expect((await state(own)).owners).toEqual([walt.owner]);
    });

    it('is not upgraded by a reader', async () => {
      const own = lock();
      const { rita } = own;
      await rita.take();
      await rita.as('write').meet();
      expect(await state(own)).toEqual({ mode: 'read', owners: [rita.owner] });
    });

    it('tells read and write parts apart', async () => {
      const own = lock();
      const { rita, walt } = own;
      await rita.take();
      expect(await rita.as('write').release()).toMatchObject({ released: false });
      expect(await rita.as('write').renew()).toBe(false);
      expect(await rita.as('write').passTo(walt)).toBeUndefined();
      expect(await state(own)).toEqual({ mode: 'read', owners: [rita.owner] });
      await rita.release();
      await walt.take();
      expect(await walt.as('read').release()).toMatchObject({ released: false });
      expect(await walt.as('read').renew()).toBe(false);
      expect(await walt.as('read').passTo(rita)).toBeUndefined();
      expect(await state(own)).toEqual({ mode: 'write', owners: [walt.owner] });
    });

    it('is freed by force from all readers, and from a writer that reads', async () => {
      const own = lock();
      const { rita, ron, walt } = own;
      await rita.take();
      await ron.take();
      expect(await rita.forceRelease()).toBe(true);
      expect(await state(own)).toEqual({ mode: 'free', owners: [] });
      expect(await ron.renew()).toBe(false);
      await walt.take();
      await walt.as('read').take();
      expect(await rita.forceRelease()).toBe(true);
      expect(await state(own)).toEqual({ mode: 'free', owners: [] });
      expect(await walt.as('read').renew()).toBe(false);
    });
  });

  describe('a waiting writer with a place', () => {
    it('is let in before new readers that stand back', async () => {
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

    it('does not keep readers out that do not stand back, nor those that are in', async () => {
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

    it('keeps nobody out without a place', async () => {
      const { rita, ron, walt } = lock();
      await rita.take();
      await walt.meet();
      await ron.take(STAND_BACK);
    });

    it('keeps nobody out once its place has lapsed', async () => {
      const { rita, ron, walt } = lock();
      await rita.take();
      await walt.meet({ placeTimeout: SHORT });
      expect(await ron.takeInTime(STAND_BACK)).toBeWithin(1, 5);
      expect(await walt.refreshPlace()).toBe(false);
    });

    it('keeps readers waiting until the last of several places has lapsed', async () => {
      const { rita, ron, walt, wilma } = lock();
      await rita.take();
      await walt.meet({ placeTimeout: 5_000 });
      await wilma.meet({ placeTimeout: LONG });
      expect((await ron.meet(STAND_BACK)).remaining).toBeWithin(5_001, LONG);
      await wilma.refreshPlace(SHORT);
      expect((await ron.meet(STAND_BACK)).remaining).toBeWithin(SHORT, 5_000);
    });

    it('keeps its place by refreshing it', async () => {
      const { rita, ron, walt, wilma } = lock();
      await rita.take();
      await walt.meet({ placeTimeout: SHORT });
      expect(await walt.refreshPlace()).toBe(true);
      expect(await wilma.refreshPlace()).toBe(false);
      await world.elapse(SHORT);
      await ron.meet(STAND_BACK);
    });

    it('leaves way for the readers that stood back, and wakes them', async () => {
      const { rita, ron, walt, wilma } = lock();
      const listener = await world.listen(ron);
      await rita.take();
      await walt.meet(WAITING);
      await wilma.meet(WAITING);
      expect((await ron.meet(STAND_BACK)).remaining).toBeWithin(1, LONG);
      await walt.leavePlace();
      await ron.meet(STAND_BACK);
      await wilma.leavePlace();
      await listener.hears();
      await ron.take(STAND_BACK);
    });

    it('stands in no queue that is shown', async () => {
      const { rita, walt } = lock();
      await rita.take();
      await walt.meet(WAITING);
      expect((await rita.inspect()).queue).toEqual([]);
    });
  });
}
