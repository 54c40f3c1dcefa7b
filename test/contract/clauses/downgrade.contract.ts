import { type ContractWorld, LAPSING, SHORT } from '../support/contract-world.js';
import { LONG } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

/**
 * A writer that also reads continues to read when it releases the write lock. A reader that asks for the write lock is
 * refused.
 */
export function describeDowngrade(world: ContractWorld): void {
  const lock = () => {
    const key = world.key();
    const [rita, ron] = world.owners('read', 2, key);
    const [walt, wilma] = world.owners('write', 2, key);
    return { rita, ron, walt, wilma };
  };
  /** The owners that read or write now. */
  const state = async ({ rita }: ReturnType<typeof lock>) => {
    const { mode, owners } = await rita.inspect();
    return { mode, owners: owners.map(({ owner }) => owner) };
  };

  describe('a read/write lock that is written and read by one owner', () => {
    it('lets the writer also read, and keep reading after it has released the write lock', async () => {
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

    it('wakes readers when the writer only keeps the read lock', async () => {
      const { ron, walt } = lock();
      const listener = await world.listen(ron);
      await walt.take();
      await walt.as('read').take();
      await ron.meet();
      await walt.release();
      await listener.hears();
      await ron.take();
    });

    it('stays with the writer when it releases the read lock first', async () => {
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

    it("keeps the write lease at least as long as the writer's read lease", async () => {
      const own = lock();
      const { ron, walt } = own;
      await walt.take({ leaseTime: SHORT });
      await walt.as('read').take({ leaseTime: LONG });
      await world.elapse(SHORT);
      expect(await state(own)).toEqual({ mode: 'write', owners: [walt.owner] });
      await ron.meet();
      expect(await walt.renew(LAPSING)).toBe(true);
      await world.elapse(LAPSING);
      expect(await walt.release()).toMatchObject({ released: true });
      expect(await state(own)).toEqual({ mode: 'read', owners: [walt.owner] });
    });

    it('is transferred to no other writer while the one before it reads', async () => {
      const own = lock();
      const { walt, wilma } = own;
      await walt.take();
      await walt.as('read').take();
      expect(await walt.transferTo(wilma)).toBeUndefined();
      expect((await state(own)).owners).toEqual([walt.owner]);
    });

    it('wakes readers when it is not transferred because its former writer keeps reading', async () => {
      const { ron, walt, wilma } = lock();
      const listener = await world.listen(ron);
      await walt.take();
      await walt.as('read').take();
      await ron.meet();
      expect(await walt.transferTo(wilma)).toBeUndefined();
      await listener.hears();
      await ron.take();
    });

    it('is transferred to another writer once the read lease of the one before it has ended', async () => {
      const own = lock();
      const { walt, wilma } = own;
      await walt.take();
      await walt.as('read').take({ leaseTime: LAPSING });
      await world.elapse(LAPSING);
      expect(await walt.transferTo(wilma)).toMatchObject({ acquired: true });
      expect(await state(own)).toEqual({ mode: 'write', owners: [wilma.owner] });
    });

    it('is not upgraded by a reader', async () => {
      const own = lock();
      const { rita } = own;
      await rita.take();
      await rita.as('write').meet();
      expect(await state(own)).toEqual({ mode: 'read', owners: [rita.owner] });
    });

    it('distinguishes read and write locks of one owner', async () => {
      const own = lock();
      const { rita, walt } = own;
      await rita.take();
      expect(await rita.as('write').release()).toMatchObject({ released: false });
      expect(await rita.as('write').renew()).toBe(false);
      expect(await rita.as('write').transferTo(walt)).toBeUndefined();
      expect(await state(own)).toEqual({ mode: 'read', owners: [rita.owner] });
      await rita.release();
      await walt.take();
      expect(await walt.as('read').release()).toMatchObject({ released: false });
      expect(await walt.as('read').renew()).toBe(false);
      expect(await state(own)).toEqual({ mode: 'write', owners: [walt.owner] });
    });
  });
}
