import { randomUUID } from 'node:crypto';
import { HEAD_START } from '../../../lib/backends/lock-backend.js';
import { toClientId } from '../../../lib/backends/owner-ids.js';
import { type ContractWorld, SHORT } from '../support/contract-world.js';
import { inHeadStart } from '../support/head-start.js';
import { LONG, Owner } from '../support/owner.js';
import { it } from '../support/timed-clause.js';

const WAITING = { waiterTimeout: LONG, pastLine: false };

/** Readers and writers that wait in line: a release tells the first, and all readers up to the first writer. */
export function describeReadWriteLine(world: ContractWorld): void {
  const lock = () => {
    const key = world.key();
    const [rita, ron, ruth] = world.owners('read', 3, key);
    const [walt, wilma, wim] = world.owners('write', 3, key);
    return { rita, ron, ruth, walt, wilma, wim };
  };
  /** Requests of one client are executed in the order in which they are sent. */
  const ofOneClient = () => {
    const key = world.key();
    const [walt, wilma, wim] = Array.from({ length: 3 }, () => world.owner('write', key));
    return { walt, wilma, wim };
  };
  const listen = (owner: Owner) => world.listenInLine(owner);
  const told = ({ owner }: Owner) => ({ kind: 'message', owner, lock: undefined });

  describe('a line of readers and writers', () => {
    it('tells the first writer of a release, and the second, and leaves the lock to the first for a while', async () => {
      const begin = async () => {
        const { walt, wilma, wim } = ofOneClient();
        const line = await listen(wilma);
        await walt.take();
        await wilma.meet(WAITING);
        await wim.meet(WAITING);
        return { walt, wilma, wim, line };
      };
      await inHeadStart(
        world,
        begin,
        ({ walt, wim }) => [() => walt.release(), () => wim.acquire(WAITING)] as const,
        async ([, reply], { walt, wilma, wim, line }) => {
          expect(reply).toMatchObject({ acquired: false, holder: wilma.owner });
          await line.hears(2);
          expect(line.heard[0]).toEqual(told(wilma));
          expect(line.heard.filter(({ owner }) => owner === wim.owner)).toEqual([{ ...told(wim), lock: 'free' }]);
          await wilma.take(WAITING);
          expect((await walt.inspect()).queue).toEqual([wim.owner]);
        },
      );
    });

    it('tells all readers up to the first writer, who goes before the readers behind it', async () => {
      const { rita, ron, ruth, walt, wim } = lock();
      const listeners = [await listen(rita), await listen(ron), await listen(ruth)];
      await walt.take();
      await rita.meet(WAITING);
      await ron.meet(WAITING);
      await wim.meet(WAITING);
      await ruth.meet(WAITING);
      await walt.release();
      await listeners[1].hears();
      await rita.take(WAITING);
      await ron.take(WAITING);
      await ruth.meet(WAITING);
      await wim.meet(WAITING);
      await rita.release();
      await wim.meet(WAITING);
      await ron.release();
      await listeners[2].hears();
      await wim.take(WAITING);
      expect((await rita.inspect()).queue).toEqual([ruth.owner]);
    });

    it('lets those behind a place have the lock that was told and has not asked in time', async () => {
      const begin = async () => {
        const { walt, wilma, wim } = ofOneClient();
        await walt.take();
        await listen(wilma);
        await wilma.meet(WAITING);
        await wim.meet(WAITING);
        return { walt, wilma, wim };
      };
      await inHeadStart(
        world,
        begin,
        ({ walt, wim }) => [() => walt.release(), () => wim.meet(WAITING)] as const,
        async ([, reply], { wilma, wim }) => {
          expect(reply.remaining).toBeWithin(1, HEAD_START);
          await world.elapse(HEAD_START + 1);
          await wim.take(WAITING);
          expect((await wim.inspect()).queue).toEqual([wilma.owner]);
        },
      );
    });

    it('keeps the place of whoever was told and finds the lock taken by somebody else', async () => {
      const { walt, wilma, wim } = lock();
      await walt.take();
      await wilma.meet(WAITING);
      await walt.release();
      await wim.take();
      await wilma.meet(WAITING);
      await world.elapse(SHORT + 50);
      expect((await wim.inspect()).queue).toEqual([wilma.owner]);
    });

    it('tells the first again when a place is refreshed while the lock is free', async () => {
      const { walt, wilma, wim } = lock();
      await walt.take();
      await wilma.meet(WAITING);
      await wim.meet(WAITING);
      await walt.release();
      const listener = await listen(wilma);
      expect(await wim.refreshWaiter()).toBe(true);
      await listener.hears();
      expect(listener.heard).toContainEqual(told(wilma));
    });

    it('lets the readers behind a writer in when it leaves', async () => {
      const { rita, ron, ruth, walt } = lock();
      const listener = await listen(ruth);
      await rita.take();
      await walt.meet(WAITING);
      await ruth.meet(WAITING);
      await walt.removeWaiter();
      await listener.hears();
      await ruth.take(WAITING);
      await ron.take(WAITING);
    });

    it('is told when the lease becomes shorter', async () => {
      const { rita, walt, wilma } = lock();
      const listener = await listen(wilma);
      await rita.take();
      await wilma.meet(WAITING);
      await rita.renew(SHORT);
      await listener.hears();
      expect((await wilma.meet(WAITING)).remaining).toBeWithin(0, SHORT);
      await walt.removeWaiter();
    });

    it('listens outside itself to the releases of clients that know no line: its first place, and readers', async () => {
      const { rita, walt, wilma } = lock();
      const holder = (clientId: string) => new Owner(rita.client, rita.key, 'write', `${clientId}:1`);
      const heldAs = async () => {
        const busy = [await walt.meet(WAITING), await wilma.meet(WAITING), await rita.meet(WAITING)];
        return busy.map((reply) => reply.heldAs);
      };
      const stranger = holder(randomUUID());
      await stranger.take();
      expect(await heldAs()).toEqual(['write', undefined, 'write']);
      await stranger.release();
      await holder(toClientId(randomUUID())).take();
      expect(await heldAs()).toEqual([undefined, undefined, undefined]);
    });

    it('is served after a forced release', async () => {
      const { rita, walt, wilma } = lock();
      const listener = await listen(wilma);
      await rita.take();
      await wilma.meet(WAITING);
      expect(await walt.forceRelease()).toEqual([rita.owner]);
      await listener.hears();
      await wilma.take(WAITING);
    });

    it('stands behind locks of other types, and those stand in it', async () => {
      const { rita, ron, walt, wilma } = lock();
      const [ann, bob] = [rita.as('reentrant'), ron.as('reentrant')];
      const listener = await listen(wilma);
      await ann.take();
      await wilma.meet(WAITING);
      await bob.meet(WAITING);
      await ann.release();
      await listener.hears();
      await wilma.take(WAITING);
      await wilma.release();
      await world.until(async () => {
        const reply = await bob.acquire(WAITING);
        return reply.acquired;
      });
      await rita.meet(WAITING);
      await bob.release();
      await rita.take(WAITING);
      expect((await walt.inspect()).queue).toEqual([]);
    });

    it('leaves a free lock to whoever goes past it', async () => {
      const { rita, walt, wilma } = lock();
      await walt.take();
      await wilma.meet(WAITING);
      await walt.release();
      await rita.take({ pastLine: true });
      await wilma.meet(WAITING);
    });
  });
}
