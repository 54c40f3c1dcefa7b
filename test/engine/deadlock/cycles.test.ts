import { confirmDeadlock, deadlockOf } from '../../../lib/engine/deadlock/confirm-deadlock.js';
import { Waits } from '../../support/deadlocks/waits.js';

describe('a cycle of waits', () => {
  it.each([1, 2, 3, 16])('of %d is found from the one that began last, and from no other one', async (count) => {
    const waits = new Waits();
    const next = (n: number) => [(n + 1) % count];
    for (let n = 0; n < count; n++) await waits.write(n, next(n));
    const last = count - 1;
    for (let n = 0; n < last; n++) expect(await waits.from(n, next(n))).toBeUndefined();
    expect(await waits.from(last, next(last))).toEqual(Array.from({ length: count }, (_, n) => `${n}`));
  });

  it('of more than 16 is not followed to its end', async () => {
    const waits = new Waits();
    for (let n = 0; n < 17; n++) await waits.write(n, [(n + 1) % 17]);
    expect(await waits.from(16, [0])).toBeUndefined();
  });

  it('is found among waits that lead nowhere, or into other cycles', async () => {
    const waits = new Waits();
    await waits.write(0, [1, 2]);
    await waits.write(1, [0]);
    await waits.write(2, [7, 9, 3]);
    await waits.write(3, [0, 9]);
    await waits.write(9, [0, 7]);
    expect(await waits.from(9, [0, 7])).toEqual(['0', '2', '9']);
  });

  it('is found beside a crowd of others that all wait for each other', async () => {
    const waits = new Waits();
    const crowd = Array.from({ length: 40 }, (_, n) => 100 + n);
    await waits.write(0, crowd);
    for (const n of crowd) await waits.write(n, crowd);
    for (const n of [1, 2, 3]) await waits.write(n, [n + 1]);
    await waits.write(4, [200]);
    await waits.write(200, [0, 1]);
    expect(await waits.from(200, [0, 1])).toEqual(['1', '2', '3', '4', '200']);
  });

  it('does not exist if another wait of the same owner waits for somebody else', async () => {
    const waits = new Waits();
    await waits.write(0, [5]);
    await waits.write(0, [6], 'wait:of a branch');
    await waits.write(1, [0]);
    expect(await waits.from(1, [0])).toBeUndefined();
  });

  describe('that was found', () => {
    let waits: Waits;
    beforeEach(async () => {
      waits = new Waits();
      await waits.write(0, [1]);
      await waits.write(1, [0]);
    });

    /** Whether the cycle is confirmed if this happens 100 ms later. */
    async function judged(then: () => Promise<void>, over = () => false): Promise<boolean> {
      const cycle = (await waits.find(1, [0])) ?? [];
      expect(cycle).toHaveLength(2);
      const { runtime } = waits;
      runtime.timer(100, () => void then());
      return runtime.until(confirmDeadlock(waits.backend, runtime, deadlockOf(cycle), over, () => runtime.monotonic()));
    }

    it('is confirmed when each wait is written again', async () => {
      expect(
        await judged(async () => {
          await waits.write(0, [1]);
          await waits.write(1, [0]);
        }),
      ).toBe(true);
    });

    it('is confirmed when a wait is written again later', async () => {
      waits.runtime.timer(900, () => void waits.write(0, [1]));
      expect(await judged(() => waits.write(1, [0]))).toBe(true);
    });

    it.each([
      ['only one of them is written again', () => waits.write(1, [0])],
      ['one of them has ended', () => waits.write(1, [0]).then(() => waits.end(0))],
      ['one of them waits for somebody else now', () => waits.write(1, [0]).then(() => waits.write(0, [5]))],
      [
        'one of them was followed by another one',
        () =>
          waits
            .write(1, [0])
            .then(() => waits.end(0))
            .then(() => waits.write(0, [1], 'another wait')),
      ],
    ])('is not confirmed when %s', async (_, then) => {
      expect(await judged(then)).toBe(false);
    });

    it.each([
      ['is not confirmed when one of them ends soon', 600, false],
      ['is not confirmed when the time of one of them is over', 300, false],
      ['is confirmed when one of them ends later', 10_000, true],
    ])('%s', async (_, ends, confirmed) => {
      const again = () => waits.write(1, [0]).then(() => waits.write(0, [1], 'wait:0', ends));
      expect(await judged(again)).toBe(confirmed);
    });

    it('is confirmed when the caller’s own wait ends soon', async () => {
      const again = () => waits.write(0, [1]).then(() => waits.write(1, [0], 'wait:1', 600));
      expect(await judged(again)).toBe(true);
    });

    it('is not confirmed when the caller does not wait any more', async () => {
      const again = () => waits.write(0, [1]).then(() => waits.write(1, [0]));
      expect(await judged(again, () => true)).toBe(false);
    });
  });
});
