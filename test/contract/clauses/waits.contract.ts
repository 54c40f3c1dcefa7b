import { hasLine, isReadWrite } from '../../../lib/backends/lock-backend.js';
import type { WaitBackend } from '../../../lib/backends/wait-backend.js';
import { type ContractWorld, LAPSING } from '../support/contract-world.js';
import { LONG } from '../support/owner.js';

/** The journal in which callers that hold locks record what they wait for. */
export function describeWaits(world: ContractWorld): void {
  const waits = (client = 0) => world.clients[client].backend.waits as WaitBackend;
  const owner = () => world.owner('reentrant').owner;
  const write = (holder: string, waiting: Record<string, string>, ended: string[] = [], lifetime = LONG) =>
    waits().write([{ holder, waiting: new Map(Object.entries(waiting)), ended }], lifetime);
  const read = async (...holders: string[]) => (await waits().read(holders)).map((found) => Object.fromEntries(found));

  describe('the waits of owners', () => {
    it('are read as they were written, owner by owner', async () => {
      const [ann, bob, cem] = [owner(), owner(), owner()];
      const waiting = new Map([
        ['w1', 'for {order}'],
        ['w2', 'for "stock"'],
      ]);
      await waits().write(
        [
          { holder: ann, waiting, ended: [] },
          { holder: bob, waiting: new Map([['w1', 'for page']]), ended: [] },
        ],
        LONG,
      );
      expect(await read(bob, ann, cem)).toEqual([{ w1: 'for page' }, { w1: 'for {order}', w2: 'for "stock"' }, {}]);
    });

    it('are replaced, added to and removed, one by one', async () => {
      const ann = owner();
      await write(ann, { w1: 'first', w2: 'second' });
      await write(ann, { w1: 'again', w3: 'third' }, ['w2', 'w9']);
      expect(await read(ann)).toEqual([{ w1: 'again', w3: 'third' }]);
      await write(ann, {}, ['w1', 'w3']);
      expect(await read(ann)).toEqual([{}]);
    });

    it('are forgotten after their lifetime, unless they are written again', async () => {
      const [ann, bob] = [owner(), owner()];
      await write(ann, { w1: 'once' }, [], LAPSING);
      await write(bob, { w1: 'once' }, [], LAPSING);
      await write(bob, { w1: 'twice' });
      await world.elapse(LAPSING + 100);
      expect(await read(ann, bob)).toEqual([{}, { w1: 'twice' }]);
    });

    it('are dated by a clock that advances', async () => {
      const before = (await waits().clockOffset(owner())) + world.now();
      await world.elapse(LAPSING);
      const after = (await waits(1).clockOffset(owner())) + world.now();
      expect(after - before).toBeWithin(LAPSING - 50, LONG);
    });
  });

  describe('the holders of a lock', () => {
    it.each(world.types.filter((type) => type !== 'read'))(
      'are the owner of a %s lock, while it is held',
      async (type) => {
        const [ann, bob] = world.owners(type, 2);
        expect(await waits().holders(ann.key)).toEqual([]);
        const isGranted =
          hasLine(type) && !isReadWrite(type) && bob.client.backend.line !== undefined && !(await world.freesFirst());
        if (isGranted) await world.listenInLine(bob);
        await ann.take();
        await bob.meet({ waiterTimeout: 1_000 });
        expect(await waits().holders(ann.key)).toEqual([ann.owner]);
        await ann.release();
        expect(await waits().holders(ann.key)).toEqual(isGranted ? [bob.owner] : []);
      },
    );

    it('are all its readers, except those whose lease has ended', async () => {
      if (!world.has('read')) return;
      const [ann, bob, cem] = world.owners('read', 3);
      await ann.take();
      await bob.take({ leaseTime: LAPSING });
      await cem.take();
      expect([...(await waits().holders(ann.key))].sort()).toEqual(
        [ann, bob, cem].map((reader) => reader.owner).sort(),
      );
      await world.elapse(LAPSING + 100);
      expect([...(await waits().holders(ann.key))].sort()).toEqual([ann, cem].map((reader) => reader.owner).sort());
    });

    it('include a writer that also reads only once', async () => {
      if (!world.has('read', 'write')) return;
      const [ann] = world.owners('write', 1);
      await ann.take();
      await ann.as('read').take();
      expect(await waits().holders(ann.key)).toEqual([ann.owner]);
      await ann.release();
      expect(await waits().holders(ann.key)).toEqual([ann.owner]);
    });
  });
}
