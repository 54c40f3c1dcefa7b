import { jest } from '@jest/globals';
import { confirmDeadlock, type PossibleDeadlock } from '../../../lib/engine/deadlock/confirm-deadlock.js';
import { type Obstacle, Waits } from '../../support/deadlocks/waits.js';
import { SeededRandom } from '../../support/seeded-random.js';

/** Callers by number, and what each of them waits for. Callers with lower numbers began to wait earlier. */
type Graph = ReadonlyMap<number, Obstacle>;

const several = (permits: number, ...holders: readonly number[]): Obstacle => ({ holders, permits });
const graph = (...obstacles: readonly Obstacle[]): Graph => new Map(obstacles.map((obstacle, i) => [i + 1, obstacle]));

async function written(waiting: Graph): Promise<Waits> {
  const waits = new Waits();
  for (const [n, obstacle] of waiting) await waits.write(n, obstacle);
  return waits;
}

/** The callers who find a deadlock. */
async function refused(waiting: Graph): Promise<number[]> {
  const waits = await written(waiting);
  const found: number[] = [];
  for (const [n, obstacle] of waiting) if ((await waits.deadlockFrom(n, obstacle)) !== undefined) found.push(n);
  return found;
}

/** The callers that are left when all who can go on have done so, and have released their locks. */
function stuck(waiting: Graph, without: readonly number[] = []): ReadonlySet<number> {
  const left = new Set([...waiting.keys()].filter((n) => !without.includes(n)));
  const canGoOn = (n: number) => {
    const obstacle = waiting.get(n) as Obstacle;
    if (!('permits' in obstacle)) return obstacle.every((holder) => !left.has(holder));
    return obstacle.holders.filter((holder) => left.has(holder)).length < obstacle.permits;
  };
  for (let next = [...left].find(canGoOn); next !== undefined; next = [...left].find(canGoOn)) left.delete(next);
  return left;
}

/** Some of the holders are callers that do not wait. */
function randomGraph(chance: SeededRandom, onlySeveral: boolean): Graph {
  const count = chance.whole(2, 8);
  const obstacles = Array.from({ length: count }, () => {
    const holders = Array.from({ length: count + 1 }, (_, i) => i + 1).filter(() => chance.chance(0.35));
    if (holders.length === 0) holders.push(chance.whole(1, count));
    if (!onlySeveral && chance.chance(0.4)) return holders;
    return several(chance.whole(1, holders.length), ...holders);
  });
  return graph(...obstacles);
}

describe('a deadlock through locks that several hold', () => {
  const found: [string, Graph][] = [
    ['two holders', graph([3], [3], several(2, 1, 2))],
    ['three holders', graph([4], [4], [4], several(3, 1, 2, 3))],
    ['the first that waits is outside', graph(several(2, 2, 3), [1], [1])],
    ['two holders, and a third one that does not wait', graph([3], [3], several(2, 1, 9, 2))],
    ['two rooms', graph(several(2, 2, 4), several(2, 1, 3), several(2, 2, 4), several(2, 1, 3))],
    ['behind a lock that one holds', graph([3], [4], several(2, 1, 2), [3])],
    ['holders that wait for each other’s permits', graph(several(2, 1, 2), several(2, 1, 2))],
  ];
  it.each(found)('is found from the wait that began last, and from no other one: %s', async (_, waiting) => {
    expect(await refused(waiting)).toEqual([waiting.size]);
  });

  const none: [string, Graph][] = [
    ['one of two holders does not wait', graph([3], [9], several(2, 1, 2))],
    ['one of two holders waits for somebody who does not', graph([4], [3], [9], several(2, 1, 2))],
    ['the last one allows more holders than there are', graph([4], [4], [4], several(5, 1, 2, 3))],
    ['one of four holders, in two rooms, does not wait', graph(several(2, 2, 9), several(2, 1, 3), several(2, 2, 9))],
  ];
  it.each(none)('is not found if there is none: %s', async (_, waiting) => {
    expect(await refused(waiting)).toEqual([]);
  });

  it.each(['null', '{"permits":1}', '{"holders":[4],"permits":1}', '{"holders":["4"],"permits":0}'])(
    'is not found through a damaged record: %s',
    async (shared) => {
      const waits = await written(graph([3], [4], several(1, 2)));
      const text = `{"lock":"x","owner":"2","holders":["3"],"began":1,"beat":1,"shared":${shared}}`;
      await waits.backend.write([{ holder: '2', waiting: new Map([['wait:2', text]]), ended: [] }], 2_000);
      expect(await waits.deadlockFrom(3, several(1, 2))).toBeUndefined();
    },
  );

  it('is found for a caller that holds all places itself', async () => {
    const waits = new Waits();
    const both = several(2, 1, 10);
    await waits.write(1, both);
    expect(await waits.deadlockFrom(1, both)).toBeUndefined();
    await waits.write(1, both, 'wait:1', undefined, 10);
    expect(await waits.deadlockFrom(1, both)).toMatchObject({ cycle: [{ id: 'wait:1' }] });
  });

  it('is not found from behind another one, before that has been ended', async () => {
    const waiting = graph([3], [3], several(2, 1, 2), [5], several(2, 2, 4));
    expect(await refused(waiting)).toEqual([3]);
    expect(await refused(new Map([...waiting].filter(([n]) => n !== 3)))).toEqual([]);
  });

  it('has a cycle for the error, which begins behind the wait and ends with it', async () => {
    const waits = await written(graph([4], [3], [4], several(2, 1, 2)));
    const { cycle } = (await waits.deadlockFrom(4, several(2, 2, 1))) as PossibleDeadlock;
    expect(cycle.map(({ holder }) => holder)).toEqual(['1', '4']);
  });

  it('is found, and only where there is one, among random waits', async () => {
    let [all, none] = [0, 0];
    for (let seed = 1; seed <= 1_500; seed++) {
      const waiting = randomGraph(new SeededRandom(seed), false);
      const [ended, waitForever] = [await refused(waiting), stuck(waiting)];
      const isFound = ended.length > 0;
      const areReal = ended.every((n) => waitForever.has(n));
      expect({ seed, isFound, areReal }).toEqual({ seed, isFound: waitForever.size > 0, areReal: true });
      if (isFound) all++;
      else none++;
    }
    expect(Math.min(all, none)).toBeGreaterThan(100);
  });

  it('costs one wait only, among random waits for such locks', async () => {
    let most = 0;
    for (let seed = 1; seed <= 1_500; seed++) {
      const waiting = randomGraph(new SeededRandom(seed), true);
      const ended = await refused(waiting);
      const needless = ended.filter(
        (n) =>
          !stuck(
            waiting,
            ended.filter((other) => other !== n),
          ).has(n),
      );
      expect({ seed, needless }).toEqual({ seed, needless: [] });
      most = Math.max(most, ended.length);
    }
    expect(most).toBeGreaterThan(1);
  });

  it('has its cycle at once, however many ways lead back to the wait', async () => {
    const layer = (n: number) => Array.from({ length: 8 }, (_, i) => 10 * n + i);
    const waits = new Waits();
    for (let n = 1; n < 8; n++) for (const caller of layer(n)) await waits.write(caller, several(8, ...layer(n + 1)));
    for (const caller of layer(8)) await waits.write(caller, [100]);
    await waits.write(100, several(8, ...layer(1)));
    expect((await waits.deadlockFrom(100, several(8, ...layer(1))))?.cycle).toHaveLength(9);
  });

  describe('is followed', () => {
    const readsFrom = async (waits: Waits, n: number, obstacle: Obstacle) => {
      const read = jest.spyOn(waits.backend, 'read');
      await waits.deadlockFrom(n, obstacle);
      return read.mock.calls.length;
    };
    const hundred = Array.from({ length: 100 }, (_, i) => 10 + i);

    it('by one command, if enough holders do not wait', async () => {
      expect(await readsFrom(new Waits(), 1, several(100, ...hundred))).toBe(1);
      expect(await readsFrom(new Waits(), 1, several(98, ...hundred))).toBe(3);
      expect(await readsFrom(new Waits(), 1, several(101, ...hundred))).toBe(0);
    });

    it('by one command for each holder, if the first one waits', async () => {
      const waits = new Waits();
      await waits.write(10, [9]);
      expect(await readsFrom(waits, 100, several(100, ...hundred))).toBe(101);
    });

    it('not at all, if no wait is for such a lock', async () => {
      const waits = await written(graph([2], [3], [4]));
      expect(await readsFrom(waits, 5, [1])).toBe(4);
    });

    it('to the two-thousandth wait, after which callers count as running', async () => {
      const room = several(2, 1, 2);
      const found = async (count: number) => {
        const waits = new Waits();
        const text = '{"lock":"lock:1","owner":"1","holders":["3"],"began":1000,"beat":1}';
        const waiting = new Map(Array.from({ length: count }, (_, i) => [`wait:1 of ${i}`, text]));
        await waits.backend.write([{ holder: '1', waiting, ended: [] }], 2_000);
        await waits.write(2, [3]);
        await waits.write(3, room);
        return waits.deadlockFrom(3, room);
      };
      expect((await found(1_998))?.cycle).toHaveLength(2);
      expect(await found(1_999)).toBeUndefined();
    });

    it('to the thousandth owner', async () => {
      const crowd = Array.from({ length: 3_000 }, (_, i) => 10 + i);
      expect(await readsFrom(new Waits(), 5_000, several(1, ...crowd))).toBe(1_000);
    });
  });

  describe('that was found', () => {
    const room = several(2, 1, 2, 3);
    let waits: Waits;
    beforeEach(async () => {
      waits = await written(graph([4], [4], [4], room));
    });

    /** Whether the deadlock is confirmed if this happens 100 ms later. */
    async function judged(then: () => Promise<void>, hasEnded = (_: string) => false): Promise<boolean> {
      const deadlock = (await waits.deadlockFrom(4, room)) as PossibleDeadlock;
      expect(deadlock.waits.map(({ holder }) => holder)).toEqual(['1', '2', '3', '4']);
      const { runtime } = waits;
      runtime.timer(100, () => void then());
      return runtime.until(confirmDeadlock(waits.backend, runtime, deadlock, hasEnded, () => runtime.monotonic()));
    }

    const again = async (...callers: readonly number[]) => {
      for (const n of callers) await waits.write(n, n === 4 ? room : [4]);
    };

    it('is confirmed when each wait is written again', async () => {
      expect(await judged(() => again(1, 2, 3, 4))).toBe(true);
    });

    it('is confirmed although a wait has ended that is not needed for it', async () => {
      expect(await judged(() => again(1, 2, 4).then(() => waits.end(3)))).toBe(true);
    });

    it('is not confirmed by a wait that ends soon in place of one that is not written again', async () => {
      expect(await judged(() => again(1, 4).then(() => waits.write(2, [4], 'wait:2', 600)))).toBe(false);
    });

    it('is confirmed although such a wait of the same service has ended', async () => {
      const hasEnded = (id: string) => id === 'wait:2';
      expect(await judged(() => again(1, 3, 4), hasEnded)).toBe(true);
    });

    it.each<[string, () => Promise<void>]>([
      ['only one of the holders is written again', () => again(1, 4)],
      ['one is left of the holders', () => again(1, 4).then(() => Promise.all([waits.end(2), waits.end(3)]).then())],
      ['one of the holders waits for somebody else now', () => again(1, 4).then(() => waits.write(2, [9]))],
      ['one of the holders ends soon', () => again(1, 4).then(() => waits.write(2, [4], 'wait:2', 600))],
      ['another one holds the lock now', () => again(1, 2).then(() => waits.write(4, several(2, 1, 9)))],
      ['the caller is not written again', () => again(1, 2, 3)],
    ])('is not confirmed when %s', async (_, then) => {
      expect(await judged(() => then().then(() => waits.end(3)))).toBe(false);
    });

    it('is not confirmed when the caller does not wait any more', async () => {
      expect(
        await judged(
          () => again(1, 2, 3, 4),
          (id) => id === 'wait:4',
        ),
      ).toBe(false);
    });
  });
});
