import { LockDeadlockError } from '../../../lib/engine/errors.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openStage } from '../../support/deadlocks/stage.js';
import type { StoreName } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';

/** Deadlocks through locks that several may hold: in virtual time in memory, and the same in real time on Redis. */
export function describeDeadlocksWithPermits(store: StoreName): void {
  describe(`deadlocks through locks with permits, in ${store}`, () => {
    const stage = openStage(store);
    const { sleep, apart } = stage;
    const play = (name: string, scenario: () => Promise<void>) => it(name, () => stage.play(scenario));

    /** Holds the first lock, and then asks for the second one, or leaves after a while. */
    interface Actor {
      readonly holds: string;
      readonly asksFor?: string;
      /** The permits that it states for the second lock, if not those of the name. */
      readonly permits?: number;
      /** Another service, so that a second permit of the same lock is no re-entry. */
      readonly through?: LockService;
    }
    /** `room` may be held by two, `hall` by three, and all other locks by one. */
    const permitsOf = (name: string): LockOptions =>
      name.startsWith('room') ? { permits: 2 } : name.startsWith('hall') ? { permits: 3 } : {};

    /** Lets all hold their first locks, and then ask for the second ones in their order. */
    const meet = async (services: readonly LockService[], actors: readonly Actor[]) => {
      const inside = actors.map(() => latch());
      const gates = actors.map(() => latch());
      const act = async ({ holds, asksFor, permits, through }: Actor, i: number) => {
        const locks = services[i % services.length];
        return await locks.withLock(holds, permitsOf(holds), async () => {
          inside[i].open();
          await gates[i].promise;
          if (asksFor === undefined) return await sleep(3_000).then(() => 'left');
          const options = permits === undefined ? permitsOf(asksFor) : { permits };
          return await (through ?? locks).withLock(asksFor, options, async () => 'done');
        });
      };
      const results = actors.map((actor, i) => act(actor, i).catch((error: Error) => error));
      await Promise.all(inside.map(({ promise }) => promise));
      for (const gate of gates) {
        gate.open();
        await sleep(apart);
      }
      return await Promise.all(results);
    };

    const A_REFUSAL = expect.any(LockDeadlockError);
    const inRoom: Actor = { holds: 'room', asksFor: 'x' };
    const outside: Actor = { holds: 'x', asksFor: 'room' };

    it.each([
      ['outside', [inRoom, inRoom, outside]],
      ['inside', [outside, inRoom, inRoom]],
      ['between', [inRoom, outside, inRoom]],
    ])('are found if all holders wait, and end with one error, for the one that began to wait last: %s', (_, actors) =>
      stage.play(async () => {
        const results = await meet(await stage.services(3), actors);
        expect(results).toEqual(['done', 'done', A_REFUSAL]);
        const { cycle, lockName } = results[2] as LockDeadlockError;
        const { holds, asksFor } = actors[2];
        expect(lockName).toBe(asksFor);
        expect(cycle.map((member) => [member.holds, member.waitsFor])).toEqual([
          [holds, asksFor],
          [asksFor, holds],
        ]);
      }),
    );

    play('are found in one process', async () => {
      const [locks] = await stage.services(1);
      expect(await meet([locks], [inRoom, inRoom, outside])).toEqual(['done', 'done', A_REFUSAL]);
    });

    play('are found if others wait in line before the last one', async () => {
      const services = await stage.services(3);
      const others = [services[0], services[2]].map((locks) =>
        sleep(apart / 2).then(() => locks.withLock('room', { permits: 2 }, async () => 'other')),
      );
      expect(await meet(services, [inRoom, inRoom, outside])).toEqual(['done', 'done', A_REFUSAL]);
      expect(await Promise.all(others)).toEqual(['other', 'other']);
    });

    play('are none if one of the holders makes room', async () => {
      const services = await stage.services(3);
      expect(await meet(services, [inRoom, { holds: 'room' }, outside])).toEqual(['done', 'left', 'done']);
    });

    play('are none if one of the holders holds without a scope', async () => {
      const services = await stage.services(3);
      const lease = await services[1].acquire('room', { permits: 2 });
      const results = meet(services, [inRoom, outside]);
      await sleep(4 * apart + 3_000);
      await lease.release();
      expect(await results).toEqual(['done', 'done']);
    });

    play('are none if one of the holders waits for somebody who is about to leave', async () => {
      const services = await stage.services(4);
      const results = await meet(services, [inRoom, { holds: 'room', asksFor: 'y' }, outside, { holds: 'y' }]);
      expect(results).toEqual(['done', 'done', 'done', 'left']);
    });

    play('of three holders are found, and are none if one of them makes room', async () => {
      const services = await stage.services(4);
      const inHall: Actor = { holds: 'hall', asksFor: 'z' };
      const actors = [inHall, inHall, inHall, { holds: 'z', asksFor: 'hall' }];
      expect(await meet(services, actors)).toEqual(['done', 'done', 'done', A_REFUSAL]);
      const others = [inHall, { holds: 'hall' }, inHall, { holds: 'z', asksFor: 'hall' }];
      expect(await meet(services, others)).toEqual(['done', 'left', 'done', 'done']);
    });

    play('through two such locks are found', async () => {
      const services = await stage.services(4);
      const [east, west] = [
        { holds: 'room:e', asksFor: 'room:w' },
        { holds: 'room:w', asksFor: 'room:e' },
      ];
      expect(await meet(services, [east, west, east, west])).toEqual(['done', 'done', 'done', A_REFUSAL]);
      const leaving = [east, west, east, { holds: 'room:w' }];
      expect(await meet(services, leaving)).toEqual(['done', 'done', 'done', 'left']);
    });

    play('are found twice when there are two', async () => {
      const services = await stage.services(6);
      const crowd = (n: number) =>
        meet(services.slice(3 * n, 3 * n + 3), [
          { holds: `room:${n}`, asksFor: `x:${n}` },
          { holds: `room:${n}`, asksFor: `x:${n}` },
          { holds: `x:${n}`, asksFor: `room:${n}` },
        ]);
      expect(await Promise.all([crowd(0), crowd(1)])).toEqual(Array(2).fill(['done', 'done', A_REFUSAL]));
    });

    play('whose holders wait for different callers end with one error', async () => {
      const services = await stage.services(4);
      const results = await meet(services, [
        { holds: 'room', asksFor: 'x' },
        { holds: 'room', asksFor: 'y' },
        { holds: 'x', asksFor: 'room' },
        { holds: 'y', asksFor: 'room' },
      ]);
      expect(results).toEqual(['done', 'done', 'done', A_REFUSAL]);
    });

    play('of two holders that each want a second permit are found', async () => {
      const [one, two, three] = await stage.services(3);
      const again: Actor = { holds: 'room', asksFor: 'room', through: three };
      expect(await meet([one, two], [again, again])).toEqual(['done', A_REFUSAL]);
      expect(await meet([one, two], [again, { holds: 'room' }])).toEqual(['done', 'left']);
    });

    play('are none for a caller that allows more holders than there are', async () => {
      const services = await stage.services(4);
      const inHall: Actor = { holds: 'hall', asksFor: 'z' };
      const actors = [inHall, inHall, inHall, { holds: 'z', asksFor: 'hall', permits: 5 }];
      expect(await meet(services, actors)).toEqual(Array(4).fill('done'));
    });

    play('are found for a caller that wants the lock for itself, if one of the holders waits', async () => {
      const services = await stage.services(3);
      const alone: Actor = { ...outside, permits: 1 };
      expect(await meet(services, [inRoom, { holds: 'room' }, alone])).toEqual(['done', 'left', A_REFUSAL]);
    });

    play('cost the branch its wait that nobody awaits', async () => {
      const [one, two, three] = await stage.services(3);
      const inside = [latch(), latch(), latch()];
      const all = Promise.all(inside.map(({ promise }) => promise));
      let branch: Promise<unknown> | undefined;
      const results = await Promise.all([
        one.withLock('room', { permits: 2 }, async () => {
          inside[0].open();
          await all;
          branch = one.withLock('x', async () => 'branch').catch((error) => error);
          await one.withLock('another', async () => {});
          await branch;
          return 'first';
        }),
        two.withLock('room', { permits: 2 }, async () => {
          inside[1].open();
          await all;
          return await two.withLock('x', async () => 'second');
        }),
        three.withLock('x', async () => {
          inside[2].open();
          await all;
          await sleep(2 * apart);
          return await three.withLock('room', { permits: 2 }, async () => 'third');
        }),
      ]);
      expect(results).toEqual(['first', 'second', 'third']);
      expect(await branch).toBeInstanceOf(LockDeadlockError);
    });
  });
}
