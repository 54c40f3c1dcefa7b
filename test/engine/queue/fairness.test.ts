import { setTimeout as sleep } from 'node:timers/promises';
import type { LockType } from '../../../lib/backends/lock-requests.js';
import { openWorld, STORES } from '../../support/lock-world.js';
import { Section } from '../../support/section.js';
import { woken } from '../../support/time-limits.js';
import { until } from '../../support/until.js';

/** Jain's index: 1 when all shares are equal, 1/n when one has everything. */
function jain(shares: readonly number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0);
  return sum ** 2 / (shares.length * shares.reduce((a, b) => a + b * b, 0));
}

describe.each(STORES)('fairness among processes, on %s', (store) => {
  const world = openWorld(store);

  /**
   * A busy machine can only make a round less fair. So one fair round of four is enough, each twice as long as the one
   * before.
   */
  const fairRound = async <T>(isFair: (round: T) => boolean, run: (time: number) => Promise<T>): Promise<T> => {
    for (const time of [1_000, 2_000, 4_000]) {
      const round = await run(time);
      if (isFair(round)) return round;
    }
    return run(8_000);
  };

  const contend = async (processes: number, callers: number, bodyTime: number, time: number) => {
    const made = await world.processes(processes);
    const services = made.map(({ locks }) => locks);
    const section = new Section();
    const shares = services.map(() => 0);
    const longestWait = services.map(() => 0);
    const end = performance.now() + time;
    await Promise.all(
      services.flatMap((locks, i) =>
        Array.from({ length: callers }, async () => {
          while (performance.now() < end) {
            const asked = performance.now();
            await locks.withLock('order', async () => {
              longestWait[i] = Math.max(longestWait[i], performance.now() - asked);
              shares[i]++;
              await section.pass('', bodyTime);
            });
          }
        }),
      ),
    );
    expect(section.most).toBe(1);
    const commands = made.reduce((sum, { backend }) => sum + backend.count(), 0);
    return {
      evenness: jain(shares),
      /** As a part of the round, because on a busy machine all wait longer. */
      longestWait: Math.max(...longestWait) / time,
      commandsPerBody: commands / shares.reduce((a, b) => a + b, 0),
    };
  };

  const isCheap = ({ commandsPerBody }: { commandsPerBody: number }) => commandsPerBody < 6;
  const isEven = ({ evenness, longestWait }: { evenness: number; longestWait: number }) =>
    evenness > 0.8 && longestWait < 0.5;

  it('gives four processes with 25 callers each about the same share', async () => {
    const { evenness, longestWait } = await fairRound(isEven, (time) => contend(4, 25, 0, time));
    expect(evenness).toBeGreaterThan(0.8);
    expect(longestWait).toBeLessThan(0.5);
  });

  it('gives four processes with one caller each about the same share', async () => {
    const { evenness, longestWait } = await fairRound(isEven, (time) => contend(4, 1, 2, time));
    expect(evenness).toBeGreaterThan(0.8);
    expect(longestWait).toBeLessThan(0.5);
  });

  it('costs a few commands a body, however many wait', async () => {
    const { commandsPerBody } = await fairRound(isCheap, (time) => contend(8, 5, 5, time));
    expect(commandsPerBody).toBeLessThan(6);
  });

  /** Seven processes wait for one lock. Counts their attempts until each of them was served. */
  const serveSeven = async (type: LockType) => {
    const [first, ...others] = await world.processes(8);
    const held = await first.locks.acquire('order', { type: type === 'read' ? 'write' : type });
    const served = others.map(async ({ locks }) => {
      const lease = await locks.acquire('order', { type });
      await sleep(20);
      await lease.release();
    });
    await until(() => others.every(({ backend }) => backend.count('acquire') === 2 && backend.underWay === 0));
    for (const { backend } of others) backend.commands.length = 0;
    await held.release();
    await woken(Promise.all(served));
    return others.reduce((sum, { backend }) => sum + backend.count('acquire'), 0);
  };

  it('lets readers that wait in line ask once each', async () => {
    expect(await serveSeven('read')).toBe(7);
  });

  /**
   * A release tells the first two. The second one finds the lock taken by the first. If it has asked before the first one
   * did, it asks again after the time for which that one goes first. And it asks when it is the first one itself.
   */
  it('lets writers that wait in line ask a few times each, however many wait', async () => {
    expect(await serveSeven('write')).toBeLessThanOrEqual(3 * 7);
  });

  it('lets processes that are granted the lock begin without asking', async () => {
    expect(await serveSeven('reentrant')).toBe(0);
  });

  it('gives a process with one caller its turns beside one with a hundred', async () => {
    const countTurns = async (time: number) => {
      const [crowd, single] = await world.services(2);
      const end = performance.now() + time;
      let turns = 0;
      const section = new Section();
      await Promise.all([
        ...Array.from({ length: 100 }, async () => {
          while (performance.now() < end) await crowd.withLock('order', () => section.pass());
        }),
        (async () => {
          while (performance.now() < end) await single.withLock('order', async () => void turns++);
        })(),
      ]);
      expect(section.most).toBe(1);
      return turns;
    };
    expect(await fairRound((turns) => turns > 5, countTurns)).toBeGreaterThan(5);
  });
});
