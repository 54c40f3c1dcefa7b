import { LockBusyError, LockDeadlockError, LockError } from '../../../lib/engine/errors.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openStage, type Stage } from '../../support/deadlocks/stage.js';
import type { StoreName } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';

/** A caller that holds one lock, and then asks for others. */
class Caller {
  readonly holds = latch();
  owner = '';
  began = 0;
  ended = 0;

  constructor(
    private readonly locks: LockService,
    private readonly stage: Stage,
  ) {}

  /** Acquires `first`, waits for `go`, acquires `second` inside of it, and returns 'done' or the error. */
  async nest(
    first: string,
    go: Promise<void>,
    second: string | string[],
    options: LockOptions = {},
  ): Promise<'done' | Error> {
    try {
      const { type, permits } = options;
      return await this.locks.withLock(first, { type, permits }, async (lease) => {
        this.owner = lease.owner;
        this.holds.open();
        await go;
        this.began = this.stage.now();
        return await this.locks.withLock(second, options, async () => 'done' as const);
      });
    } catch (error) {
      return error as Error;
    } finally {
      this.ended = this.stage.now();
    }
  }
}

/**
 * Lets `callers` ask for the second lock in their order, one after the other, as soon as all of them hold their first
 * one.
 */
async function ring(
  stage: Stage,
  services: LockService[],
  options: LockOptions = {},
): Promise<[Caller[], ('done' | Error)[]]> {
  const callers = services.map((locks) => new Caller(locks, stage));
  const gates = callers.map(() => latch());
  const names = callers.map((_, i) => `ring:${i}`);
  const results = callers.map((caller, i) =>
    caller.nest(names[i], gates[i].promise, names[(i + 1) % names.length], options),
  );
  await Promise.all(callers.map(({ holds }) => holds.promise));
  for (const gate of gates) {
    gate.open();
    await stage.sleep(stage.apart); // so that their waits begin in this order
  }
  return [callers, await Promise.all(results)];
}

/** Deadlocks: in virtual time in memory, and the same in real time on Redis. */
export function describeDeadlocks(store: StoreName): void {
  describe(`deadlocks, in ${store}`, () => {
    const stage = openStage(store);
    const { sleep, apart } = stage;
    /** A test whose time is that of the stage. */
    const play = (name: string, scenario: () => Promise<void>) => it(name, () => stage.play(scenario));

    it.each([2, 3, 5])('of %d processes end with one error, for the one that began to wait last', (count) =>
      stage.play(async () => {
        const [callers, results] = await ring(stage, await stage.services(count));
        const last = count - 1;
        expect(results.slice(0, last)).toEqual(Array(last).fill('done'));
        const error = results[last] as LockDeadlockError;
        expect(error).toBeInstanceOf(LockDeadlockError);
        expect(error).toBeInstanceOf(LockError);
        expect(error.lockName).toBe('ring:0');
        expect(error.cycle).toEqual(
          [last, ...Array(last).keys()].map((i) => ({
            owner: callers[i].owner,
            holds: `ring:${i}`,
            waitsFor: `ring:${(i + 1) % count}`,
          })),
        );
        expect(error.message).toContain(
          `${callers[last].owner} (this caller) holds 'ring:${last}' and waits for 'ring:0'`,
        );
        if (store === 'memory') expect(callers[last].ended - callers[last].began).toBeLessThan(2_000);
        expect(callers[last].ended - callers[last].began).toBeGreaterThan(1_000);
      }),
    );

    play('of one process end in the same way', async () => {
      const locks = (await stage.services(1))[0];
      const [, results] = await ring(stage, [locks, locks, locks]);
      expect(results).toEqual(['done', 'done', expect.any(LockDeadlockError)]);
    });

    it.each(['fair', 'fenced', 'write'] as const)('of %s locks are found', (type) =>
      stage.play(async () => {
        const [, results] = await ring(stage, await stage.services(2), { type });
        expect(results).toEqual(['done', expect.any(LockDeadlockError)]);
      }),
    );

    play('of locks with permits are found while one caller holds each', async () => {
      const [, results] = await ring(stage, await stage.services(2), { permits: 1 });
      expect(results).toEqual(['done', expect.any(LockDeadlockError)]);
    });

    play('are found although the waits would end on their own later', async () => {
      const [, results] = await ring(stage, await stage.services(2), { waitTime: '60s' });
      expect(results).toEqual(['done', expect.any(LockDeadlockError)]);
    });

    play('whose waits end on their own earlier are left alone', async () => {
      const [, results] = await ring(stage, await stage.services(2), { waitTime: 700 });
      expect(results.filter((result) => result instanceof LockBusyError).length).toBeGreaterThan(0);
      expect(results.filter((result) => result instanceof LockDeadlockError)).toEqual([]);
    });

    play('of which one wait ends on its own cost nobody else its lock', async () => {
      const [one, two] = await stage.services(2);
      const { now } = stage;
      /** The first caller gives up after `waitTime`, and keeps what it holds for a while. */
      const pair = async (waitTime: number) => {
        const [a, b] = [`gives up:${waitTime}`, `waits on:${waitTime}`];
        const [first, second] = [latch(), latch()];
        let gaveUp = Number.POSITIVE_INFINITY;
        const giving = one.withLock(a, async () => {
          first.open();
          await second.promise;
          const lease = await one.tryAcquire(b, { waitTime });
          if (lease !== null) return await lease.release();
          gaveUp = now();
          await sleep(600);
        });
        const waiting = two.withLock(b, async () => {
          second.open();
          await first.promise;
          await sleep(apart);
          return await two.withLock(a, async () => 'done' as const);
        });
        const result = await waiting.catch((error) => error as LockDeadlockError);
        const after = now() - gaveUp;
        await giving;
        return { waitTime, result: result === 'done' ? result : result.name, late: result !== 'done' && after >= 0 };
      };
      // The last one is found even on a slow machine.
      const times = [...Array.from({ length: 60 }, (_, n) => apart + 1_200 + n * 20), 30_000];
      const results = await Promise.all(times.map(pair));
      expect(results.filter(({ late }) => late)).toEqual([]);
      expect(new Set(results.map(({ result }) => result))).toEqual(new Set(['done', 'LockDeadlockError']));
    });

    play('of a reader and a writer are found, also behind another reader', async () => {
      const [one, two, three] = await stage.services(3);
      const first = new Caller(one, stage);
      const go = latch();
      const other = latch();
      const bystander = three.withLock('page', { type: 'read' }, () => other.promise);
      const reader = one.withLock('page', { type: 'read' }, async () => {
        first.holds.open();
        await go.promise;
        return await one.withLock('order', async () => 'read' as const);
      });
      const writer = two
        .withLock('order', async () => {
          await first.holds.promise;
          go.open();
          await sleep(apart);
          return await two.withLock('page', { type: 'write' }, async () => 'written' as const);
        })
        .catch((error) => error);
      expect(await writer).toBeInstanceOf(LockDeadlockError);
      expect(await reader).toBe('read');
      other.open();
      await bystander;
    });

    play('through a writer that waits, and lets no reader in, are found', async () => {
      const [one, two, three] = await stage.services(3);
      const go = latch();
      const announced = latch();
      const results = [
        one.withLock('page', { type: 'read' }, async () => {
          go.open();
          await announced.promise;
          await sleep(apart);
          return await one.withLock('order', async () => 'first' as const);
        }),
        two.withLock('order', async () => {
          await go.promise;
          const writing = three.withLock('page', { type: 'write' }, async () => 'written' as const);
          results.push(writing as never);
          await sleep(apart);
          announced.open();
          return await two.withLock('page', { type: 'read' }, async () => 'second' as const);
        }),
      ];
      const [first, second] = await Promise.allSettled(results.slice(0, 2));
      expect([first, second]).toMatchObject([
        { status: 'rejected', reason: expect.any(LockDeadlockError) },
        { status: 'fulfilled', value: 'second' },
      ]);
      expect(await results[2]).toBe('written');
    });

    play('of several names at once are found', async () => {
      const [one, two] = await stage.services(2);
      const [first, second] = [new Caller(one, stage), new Caller(two, stage)];
      const go = [latch(), latch()];
      const results = [
        first.nest('stock', go[0].promise, ['a', 'b', 'order']),
        second.nest('order', go[1].promise, ['b', 'stock']),
      ];
      await Promise.all([first.holds.promise, second.holds.promise]);
      go[0].open();
      await sleep(apart);
      go[1].open();
      expect(await Promise.all(results)).toEqual(['done', expect.any(LockDeadlockError)]);
    });

    play('of two branches of one scope, at the gate of a share, are found', async () => {
      const locks = (await stage.services(1))[0];
      const inside = latch();
      const results = await locks.withLock('A', () =>
        Promise.allSettled([
          locks.withLock('B', async () => {
            await inside.promise;
            return await locks.withLock('A', async () => currentLease()?.name);
          }),
          locks.withLock('A', async () => {
            inside.open();
            await sleep(apart);
            return await locks.withLock('B', async () => currentLease()?.name);
          }),
        ]),
      );
      expect(results).toMatchObject([
        { status: 'fulfilled', value: 'A' },
        { status: 'rejected', reason: expect.any(LockDeadlockError) },
      ]);
    });

    play('through the gate of a share that has ended, behind which a child of it goes on, are found', async () => {
      const locks = (await stage.services(1))[0];
      const [held, inside, ended] = [latch(), latch(), latch()];
      const results = await locks.withLock('A', () =>
        Promise.allSettled([
          locks.withLock('C', async () => {
            held.open();
            await ended.promise;
            return await locks.withLock('A', async () => 'next child');
          }),
          held.promise.then(async () => {
            let grandchild: Promise<string> | undefined;
            await locks.withLock('A', async () => {
              grandchild = locks.withLock('A', async () => {
                inside.open();
                await ended.promise;
                await sleep(apart);
                return await locks.withLock('C', async () => 'grandchild');
              });
              await inside.promise;
            });
            ended.open();
            return await grandchild;
          }),
        ]),
      );
      expect(results).toMatchObject([
        { status: 'fulfilled', value: 'next child' },
        { status: 'rejected', reason: expect.any(LockDeadlockError) },
      ]);
    });

    play('through a gate of one process and a lock of another one are found', async () => {
      const [one, two] = await stage.services(2);
      const [inside, held] = [latch(), latch()];
      const branches = one.withLock('A', () =>
        Promise.allSettled([
          one.withLock('B', async () => {
            await inside.promise;
            return await one.withLock('A', async () => 'behind the gate' as const);
          }),
          one.withLock('A', async () => {
            inside.open();
            await held.promise;
            return await one.withLock('C', async () => 'inside the gate' as const);
          }),
        ]),
      );
      const other = two
        .withLock('C', async () => {
          held.open();
          await sleep(apart);
          return await two.withLock('B', async () => 'other' as const);
        })
        .catch((error) => error);
      expect(await other).toBeInstanceOf(LockDeadlockError);
      expect(await branches).toMatchObject([{ value: 'behind the gate' }, { value: 'inside the gate' }]);
    });

    play('of a caller with itself, through another service, are found', async () => {
      const [one, two] = await stage.services(2);
      const error = await one.withLock('A', () => two.withLock('A', async () => {})).catch((reason) => reason);
      expect(error).toBeInstanceOf(LockDeadlockError);
      expect(error.cycle).toEqual([{ owner: expect.any(String), holds: 'A', waitsFor: 'A' }]);
    });

    play('are found twice when there are two', async () => {
      const services = await stage.services(4);
      const pair = (n: number) => {
        const callers = services.slice(2 * n, 2 * n + 2).map((locks) => new Caller(locks, stage));
        const go = latch();
        const results = [
          callers[0].nest(`pair:${n}:a`, go.promise, `pair:${n}:b`),
          callers[1].nest(
            `pair:${n}:b`,
            go.promise.then(() => sleep(apart)),
            `pair:${n}:a`,
          ),
        ];
        void Promise.all(callers.map(({ holds }) => holds.promise)).then(go.open);
        return Promise.all(results);
      };
      expect(await Promise.all([pair(0), pair(1)])).toEqual(Array(2).fill(['done', expect.any(LockDeadlockError)]));
    });

    describe('that are none, because nobody awaits a branch', () => {
      /**
       * A caller holds A and starts a branch that waits for B. It goes on without the branch, and does `more`. Meanwhile,
       * another caller, which holds B, asks for A.
       */
      const play = async (more: (locks: LockService, startBranch: () => void) => Promise<void>) => {
        const [one, other] = await stage.services(2);
        const holdsB = latch();
        let branch: Promise<unknown> | undefined;
        const stranger = other.withLock('B', async () => {
          holdsB.open();
          await sleep(2 * apart);
          return await other.withLock('A', async () => 'stranger');
        });
        await holdsB.promise;
        const holder = one.withLock('A', async () => {
          await more(one, () => {
            branch = one.withLock('B', async () => 'branch').catch((error) => error);
          });
          await sleep(4_000);
          return 'holder';
        });
        const outcome = await Promise.all([holder, stranger.catch((error) => error)]);
        return [...outcome, await branch];
      };

      it.each<[string, Parameters<typeof play>[0]]>([
        [
          'acquires another lock',
          async (locks, startBranch) => {
            startBranch();
            await locks.withLock('C', async () => {});
          },
        ],
        [
          'acquires several other locks',
          async (locks, startBranch) => {
            startBranch();
            await locks.withLock(['C', 'D'], async () => {});
          },
        ],
        [
          'calls a single flight',
          async (locks, startBranch) => {
            startBranch();
            await locks.singleFlight('C', async () => null);
          },
        ],
        [
          'has left the inner lock in which the branch was started',
          async (locks, startBranch) => {
            await locks.withLock('C', async () => startBranch());
          },
        ],
      ])('refuse the branch, and not the other caller, if the code that started it %s', (_, more) =>
        stage.play(async () => {
          const [holder, stranger, branch] = await play(more);
          expect([holder, stranger]).toEqual(['holder', 'stranger']);
          expect(branch).toBeInstanceOf(LockDeadlockError);
          expect((branch as Error).message).toContain(
            'This wait was ended because the code that started it has gone on',
          );
        }),
      );
    });

    play('are not seen in long waits that are none', async () => {
      const [one, two, three] = await stage.services(3);
      const chain = [
        one.withLock('A', () => sleep(2_500).then(() => 'one')),
        two.withLock('B', () => two.withLock('A', () => sleep(300).then(() => 'two'))),
        three.withLock('C', () => three.withLock('B', () => sleep(300).then(() => 'three'))),
        one.withLock('D', () =>
          Promise.all([one.withLock('A', () => sleep(100)), one.withLock('C', () => sleep(100))]).then(() => 'four'),
        ),
      ];
      expect(await Promise.all(chain)).toEqual(['one', 'two', 'three', 'four']);
    });

    // `b`, which is waited for first, is held by a caller that waits for the red lock's own; `a` becomes free after a
    // while, and makes a majority.
    for (const redLockWaits of ['last', 'first'])
      play(`are not made of a red lock that can do without a member, where it waits ${redLockWaits}`, async () => {
        const [one, two, three] = await stage.services(3);
        const members = ['a', 'b', 'c'].map((name) => one.getLock(name));
        const [held, inside, waits] = [latch(), latch(), latch()];
        const busy = await three.acquire('a');
        const other = two.withLock('b', async () => {
          held.open();
          await inside.promise;
          if (redLockWaits === 'first') await waits.promise.then(() => sleep(apart));
          return await two.withLock('outer', async () => 'done');
        });
        const red = one.withLock('outer', async () => {
          inside.open();
          await held.promise;
          if (redLockWaits === 'last') await sleep(apart);
          waits.open();
          const lease = await one.getRedLock(...members).tryLock('15s');
          await lease?.release();
          return lease?.names;
        });
        await sleep(6_000);
        await busy.release();
        expect(await red).toEqual(['a', 'c']);
        expect(await other).toBe('done');
      });

    play('leave nothing behind', async () => {
      await ring(stage, await stage.services(2));
      await sleep(1_500);
      expect(stage.timers()).toBe(0);
      const redis = stage.world?.redis.client();
      if (redis !== undefined) expect(await redis.keys('nestjs_redis_lock_waits*')).toEqual([]);
    });
  });
}
