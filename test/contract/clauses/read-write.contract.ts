import { type ContractWorld, LAPSING, SHORT } from '../support/contract-world.js';
import { LONG } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

const WAITING = { waiterTimeout: LONG };

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

    it('is shared by all readers that ask at once', async () => {
      const readers = world.owners('read', 50);
      await Promise.all(readers.map((reader) => reader.take()));
      expect((await readers[0].inspect()).owners).toHaveLength(50);
      await Promise.all(readers.map((reader) => reader.release()));
      expect((await readers[0].inspect()).mode).toBe('free');
    });

    it('keeps a writer out until the last reader released it', async () => {
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

    it('keeps readers out while a writer holds it, and wakes them all afterwards', async () => {
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
    ])('gives each reader a separate lease: %s', async (_case, first, second) => {
      const { rita, ron, walt } = lock();
      await rita.take({ leaseTime: first });
      await ron.take({ leaseTime: second });
      const [early, late] = first < second ? [rita, ron] : [ron, rita];
      await world.until(async () => !(await early.holds()));
      expect(await early.renew()).toBe(false);
      expect(await late.renew(SHORT)).toBe(true);
      await walt.meet();
      expect(await walt.takeInTime()).toBeWithin(1, 5);
      expect(await late.renew()).toBe(false);
    });

    it('gives each reader a separate lease: W R R', async () => {
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

    it('does not wait for a reader that died once the others released it', async () => {
      const own = lock();
      const { rita: zombie, ron, walt } = own;
      await zombie.take({ leaseTime: LAPSING });
      await ron.take();
      await world.elapse(LAPSING);
      expect(await state(own)).toEqual({ mode: 'read', owners: [ron.owner] });
      await ron.release();
      await walt.take();
    });

    it('wakes a writer when the last living reader releases it, beside a dead one', async () => {
      const { rita: zombie, ron, walt } = lock();
      const listener = await world.listen(walt);
      await zombie.take({ leaseTime: LAPSING });
      await ron.take();
      await world.elapse(LAPSING);
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
      await ron.take({ leaseTime: LAPSING });
      await rose.take({ leaseTime: LONG });
      await rose.renew(LAPSING);
      await world.elapse(LAPSING);
      expect(await rita.remaining()).toBeGreaterThan(SHORT);
      await walt.meet();
    });

    it('publishes nothing when one of several readers releases it', async () => {
      const { rita, ron, walt } = lock();
      const listener = await world.listen(walt);
      await rita.take();
      await ron.take();
      expect(await rita.release()).toEqual({ released: true, listeners: 0, published: false, resent: false });
      await ron.release();
      await listener.hears();
      world.expectMessages(listener, 1);
    });

    it('is released by force from all readers, and from a writer that also reads', async () => {
      const own = lock();
      const { rita, ron, walt } = own;
      await rita.take();
      await ron.take();
      world.expectForced(await rita.forceRelease(), [rita.owner, ron.owner]);
      expect(await state(own)).toEqual({ mode: 'free', owners: [] });
      expect(await ron.renew()).toBe(false);
      await walt.take();
      await walt.as('read').take();
      world.expectForced(await rita.forceRelease(), [walt.owner]);
      expect(await state(own)).toEqual({ mode: 'free', owners: [] });
      expect(await walt.as('read').renew()).toBe(false);
    });
  });
}
