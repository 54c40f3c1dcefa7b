import type { ChildProcess } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { openWorld } from '../../support/lock-world.js';
import { startProcess } from '../../support/processes/start-process.js';
import { until } from '../../support/until.js';

const LONGEST = 20_000;

describe('several locks at once, among processes of their own', () => {
  const world = openWorld('Redis');
  let children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  /** @param visits what its callers lock again and again, as nested scopes */
  const crowd = async (callers: number, ...visits: string[][][]) => {
    const { child } = await startProcess(
      'lock-crowd.ts',
      world.redis.url,
      world.keyPrefix,
      String(callers),
      JSON.stringify(visits),
    );
    children = [...children, child];
    return child;
  };

  /** Ends the process in the regular way, and returns how often each visit was made. */
  const end = async (child: ChildProcess): Promise<number[]> => {
    child.kill('SIGTERM');
    const lines = await text(child.stdout as NodeJS.ReadableStream);
    return JSON.parse(lines.trim().split('\n').at(-1) as string);
  };

  it('are given again and again beside callers of one name each', async () => {
    const locks = await world.service();
    const crowds = await Promise.all([crowd(4, [['a']], [['b']]), crowd(4, [['a']], [['b']])]);
    let over = false;
    let turns = 0;
    const beside = ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'b'].map(async (name) => {
      for (; !over; turns++) await locks.withLock(name, () => sleep(3));
    });
    let served = 0;
    const both = (async () => {
      for (; served < 5; served++) await locks.withLock(['a', 'b'], { waitTime: LONGEST }, () => sleep(3));
    })();
    await Promise.allSettled([both]);
    over = true;
    await Promise.all(beside);
    expect(served).toBe(5);
    expect(turns).toBeGreaterThan(5);
    for (const made of await Promise.all(crowds.map(end))) expect(Math.min(...made)).toBeGreaterThan(5);
  }, 120_000);

  it('are given in bounded time beside callers that hold the last name in a scope and wait for the first one', async () => {
    const locks = await world.service();
    const nested = await crowd(2, [['z'], ['a', 'm']]);
    const several = await crowd(2, [['m', 'z']], [['a', 'z']]);
    for (let served = 0; served < 2; served++) {
      await (await locks.acquire(['a', 'm', 'z'], { waitTime: LONGEST })).release();
    }
    const [made, crossing] = await Promise.all([nested, several].map(end));
    expect(made[0]).toBeGreaterThan(2);
    expect(Math.min(...crossing)).toBeGreaterThan(0);
    await until(async () => !(await locks.isLocked('z')));
  }, 120_000);
});
