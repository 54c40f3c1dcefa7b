import { LockBusyError, LockDeadlockError } from '../../../lib/engine/errors.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openStage } from '../../support/deadlocks/stage.js';
import type { StoreName } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';

/** Red locks inside of a scope: in virtual time in memory, and the same in real time on Redis. */
export function describeRedLocks(store: StoreName): void {
  describe(`a red lock inside of a scope, in ${store}`, () => {
    const stage = openStage(store);
    const { sleep, apart } = stage;
    const play = (name: string, scenario: () => Promise<void>) => it(name, () => stage.play(scenario));

    /** Holds `name`, and inside of it asks for the lock that the caller of the red lock holds. */
    const peer = async (locks: LockService, name: string, waitTime: number, go: Promise<void>, holds: () => void) => {
      try {
        return await locks.withLock(name, async () => {
          holds();
          await go;
          return await locks.withLock('outer', { waitTime }, async () => 'done' as const);
        });
      } catch (error) {
        return (error as Error).name;
      }
    };

    /**
     * A caller holds `outer` and wants a red lock over `members`. The peers hold its members 'a' and 'b', the second one
     * for 4 s.
     */
    const circle = async (last: 'red lock' | 'peers', members: string[], times = [60_000, 4_000]) => {
      const [one, two, three] = await stage.services(3);
      const [first, second, outer, peersGo, redGoes] = [latch(), latch(), latch(), latch(), latch()];
      const peers = [
        peer(two, 'a', times[0], peersGo.promise, first.open),
        peer(three, 'b', times[1], peersGo.promise, second.open),
      ];
      const red = one
        .withLock('outer', async () => {
          outer.open();
          await redGoes.promise;
          const lock = one.getRedLock(...members.map((name) => one.getLock(name)));
          const lease = await lock.tryLock('12s');
          await lease?.release();
          return lease && ('done' as const);
        })
        .catch((error) => (error as Error).name);
      await Promise.all([first.promise, second.promise, outer.promise]);
      const inOrder = last === 'peers' ? [redGoes, peersGo] : [peersGo, redGoes];
      for (const { open } of inOrder) {
        open();
        await sleep(apart);
      }
      return { red: await red, peers: await Promise.all(peers) };
    };

    it.each(['red lock', 'peers'] as const)(
      'gets its majority, and nobody is refused, where the %s began to wait last',
      (last) =>
        stage.play(async () => {
          expect(await circle(last, ['a', 'b', 'c'])).toEqual({ red: 'done', peers: ['done', LockBusyError.name] });
        }),
    );

    play('gives up at its waitTime where no majority can be had, and its peers go on', async () => {
      const { red, peers } = await circle('red lock', ['a', 'b', 'c'], [60_000, 60_000]);
      expect({ red, peers }).toEqual({ red: null, peers: ['done', 'done'] });
    });

    play('is refused for a deadlock where it needs each of its members', async () => {
      const { red, peers } = await circle('red lock', ['a', 'd'], [60_000, 60_000]);
      expect({ red, peers }).toEqual({ red: LockDeadlockError.name, peers: ['done', 'done'] });
    });
  });
}
