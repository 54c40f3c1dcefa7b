import { jest } from '@jest/globals';
import { confirmDeadlock, deadlockOf } from '../../../lib/engine/deadlock/confirm-deadlock.js';
import { readAgain, WaitReader } from '../../../lib/engine/deadlock/find-cycle.js';
import type { FoundWait } from '../../../lib/engine/deadlock/journal-record.js';
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

  it('is found through any holder of the lock of its last wait, and through a thousand in each later step', async () => {
    const waits = new Waits();
    const crowd = Array.from({ length: 1_001 }, (_, n) => 100 + n);
    await waits.write(1, crowd);
    await waits.write(crowd[999], [9_000]);
    expect(await waits.from(9_000, crowd)).toBeUndefined();
    await waits.write(9_000, [1]);
    expect(await waits.from(9_000, [1])).toEqual(['1', `${crowd[999]}`, '9000']);
    await waits.end(crowd[999]);
    await waits.write(crowd[1_000], [9_000]);
    expect(await waits.from(9_000, [1])).toBeUndefined();
    expect(await waits.from(9_000, crowd)).toEqual([`${crowd[1_000]}`, '9000']);
  });

  it('is followed by one command for each owner', async () => {
    const waits = new Waits();
    await waits.write(1, [2, 3]);
    await waits.write(2, [3, 1]);
    await waits.write(3, [1, 2]);
    const read = jest.spyOn(waits.backend, 'read');
    await waits.from(9, [1, 2]);
    expect(read.mock.calls.map(([holders]) => holders)).toEqual([['1'], ['2'], ['3']]);
  });

  describe('that was found', () => {
    let waits: Waits;
    beforeEach(async () => {
      waits = new Waits();
      await waits.write(0, [1]);
      await waits.write(1, [0]);
    });

    it('is read again, each owner once, without the waits that have ended', async () => {
      await waits.write(1, [0], 'wait:other');
      const [one] = (await waits.find(1, [0])) as readonly FoundWait[];
      const reader = new WaitReader(waits.backend);
      const [own, other] = await reader.waitsOf('1');
      await waits.write(1, [5]);
      await waits.end(0);
      const read = jest.spyOn(waits.backend, 'read');
      const again = await readAgain(waits.backend, [one, own, other]);
      expect(again.map((wait) => wait?.id)).toEqual([undefined, 'wait:1', 'wait:other']);
      expect(again[1]?.record.holders).toEqual(['5']);
      expect(read.mock.calls.map(([holders]) => holders)).toEqual([['0'], ['1']]);
    });

    /** When the cycle is confirmed or not, in milliseconds, if each wait is written again at this time. */
    const confirmedAt = async (time: number, over = () => false) => {
      const cycle = (await waits.find(1, [0])) ?? [];
      const { runtime } = waits;
      runtime.timer(100, () => void waits.write(1, [0]));
      runtime.timer(time, () => void waits.write(0, [1]));
      const read = jest.spyOn(waits.backend, 'read');
      const confirmed = await runtime.until(
        confirmDeadlock(waits.backend, runtime, deadlockOf(cycle), over, () => runtime.monotonic()),
      );
      return { confirmed, at: runtime.monotonic(), reads: read.mock.calls.length };
    };

    it.each([
      [300, 400],
      [450, 600],
      [1_750, 1_800],
    ])('is confirmed at the next check when its waits were written again after %d ms', async (time, at) => {
      expect(await confirmedAt(time)).toMatchObject({ confirmed: true, at });
    });

    it('is given up after eight checks', async () => {
      expect(await confirmedAt(1_850)).toEqual({ confirmed: false, at: 1_800, reads: 2 * 9 });
    });

    it('is given up at the first check at which one of its waits waits for somebody else, even if that passes', async () => {
      waits.runtime.timer(300, () => void waits.write(0, [5]));
      expect(await confirmedAt(450)).toMatchObject({ confirmed: false, at: 400 });
    });

    it('is not read again when the caller does not wait any more', async () => {
      expect(await confirmedAt(300, () => true)).toEqual({ confirmed: false, at: 400, reads: 2 });
    });

    it('is not checked at all if one of its waits is over before the first check', async () => {
      const cycle = (await waits.find(1, [0])) ?? [];
      await waits.end(0);
      const { runtime } = waits;
      const confirmed = confirmDeadlock(waits.backend, runtime, deadlockOf(cycle), () => false, runtime.monotonic);
      expect(await confirmed).toBe(false);
      expect(runtime.timers).toBe(0);
    });

    it('consists of all its waits, each of which waits for the next one', async () => {
      const cycle = (await waits.find(1, [0])) ?? [];
      const { isDeadlock } = deadlockOf(cycle);
      expect([isDeadlock(cycle), isDeadlock(cycle.slice(1)), isDeadlock([...cycle].reverse())]).toEqual([
        true,
        false,
        true,
      ]);
      expect([isDeadlock([cycle[0], cycle[0]]), isDeadlock([])]).toEqual([false, false]);
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
