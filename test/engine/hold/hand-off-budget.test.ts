import { HandOffBudget } from '../../../lib/engine/hold/hand-off-budget.js';
import { type HeldLock, TokenBlock } from '../../../lib/engine/hold/held-lock.js';

describe('the budget for hand-offs in one process', () => {
  /** The process got the lock after running for an hour, with tokens for further callers unless `left` is undefined. */
  const held = (left?: number) => {
    const block = left === undefined ? undefined : new TokenBlock(64);
    if (block !== undefined) block.left = left as number;
    return { since: 3_600_000, block } as HeldLock;
  };
  const isSpent = (waiting: number, elapsed: number, left?: number) =>
    new HandOffBudget().isSpent(held(left), waiting, { monotonic: 3_600_000 + elapsed, wall: 0 });

  it.each([
    ['the last caller', 1, 25],
    ['a caller with another one behind it', 2, 20],
    ['a caller with many others behind it', 100, 20],
  ])('for %s ends some time after the process got the lock, not after the process started', (_, waiting, limit) => {
    for (const left of [undefined, 64]) {
      expect(isSpent(waiting, 0, left)).toBe(false);
      expect(isSpent(waiting, limit - 1, left)).toBe(false);
      expect(isSpent(waiting, limit, left)).toBe(true);
    }
  });

  it('ends with the last token that was reserved', () => {
    expect(isSpent(2, 1, 1)).toBe(false);
    expect(isSpent(2, 1, 0)).toBe(true);
  });

  it('lets one permit leave this process in each period, and each of them after 100 ms at the latest', () => {
    const budget = new HandOffBudget();
    const permit = (since: number) => ({ since, block: undefined, permits: 3 }) as HeldLock;
    const [first, second, third] = [permit(0), permit(0), permit(0)];
    const leavesAt = (held: HeldLock, monotonic: number) => budget.isSpent(held, 9, { monotonic, wall: 0 });

    expect(leavesAt(first, 20)).toBe(true);
    // A caller that arrives before the release is sent does not get a permit that has to leave.
    expect(leavesAt(first, 20)).toBe(true);
    expect(leavesAt(second, 20)).toBe(false);
    expect(leavesAt(second, 39)).toBe(false);
    expect(leavesAt(second, 40)).toBe(true);
    expect(leavesAt(third, 59)).toBe(false);
    expect(leavesAt(third, 60)).toBe(true);

    const fourth = permit(60);
    for (let now = 80; now < 160; now += 20) expect(leavesAt(permit(now - 20), now)).toBe(true);
    expect(leavesAt(fourth, 159)).toBe(false);
    expect(leavesAt(fourth, 160)).toBe(true);
  });

  it('lets timers and sockets have a turn before every 256th hand-off', () => {
    const budget = new HandOffBudget();
    const yields = Array.from({ length: 600 }, () => budget.mustYieldToEventLoop());
    expect(yields.flatMap((mustYield, index) => (mustYield ? [index + 1] : []))).toEqual([256, 512]);
  });

  it('expects further callers after two in a row that came before the release was sent', () => {
    const budget = new HandOffBudget();
    budget.followed();
    expect(budget.isFollowed).toBe(false);
    budget.followed();
    expect(budget.isFollowed).toBe(true);
    budget.notFollowed();
    budget.followed();
    expect(budget.isFollowed).toBe(false);
  });
});
