import { HandOffBudget, mayInherit } from '../../../lib/engine/hold/hand-off-budget.js';
import { HeldLock, type LockKeeper, type LockWaiter, TokenBlock } from '../../../lib/engine/hold/held-lock.js';
import { LeaseClock } from '../../../lib/engine/time/lease-clock.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

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

  describe('reserves tokens for the time that it lasts', () => {
    /** What is reserved after hand-offs for `elapsed` ms that have used `used` of the tokens. */
    const reserved = (budget: HandOffBudget, size: number, used: number, elapsed: number, permits?: number) => {
      const block = new TokenBlock(size);
      block.left = size - used;
      const left = { since: 0, block, permits } as HeldLock;
      expect(budget.isSpent(left, 9, { monotonic: elapsed, wall: 0 })).toBe(true);
      return budget.block;
    };

    it.each([
      ['as many as last time, if these lasted for it', 64, 64, 20, 64],
      ['a power of two that is enough', 64, 64, 19.9, 128],
      ['as many as are needed at once, at a higher pace', 64, 64, 4, 512],
      ['as if a millisecond had passed, if none has', 64, 64, 0, 2_048],
      ['half as many at least, at a lower pace', 64, 2, 20, 32],
      ['half as many at least, if none was used', 64, 0, 20, 32],
      ['32,768 at most', 32_768, 32_768, 1, 32_768],
    ])('%s', (_, size, used, elapsed, expected) => {
      const budget = new HandOffBudget();
      expect(budget.block).toBe(64);
      expect(reserved(budget, size, used, elapsed)).toBe(expected);
    });

    it('always one at least', () => {
      const budget = new HandOffBudget();
      const blocks = Array.from({ length: 8 }, () => reserved(budget, 64, 0, 20));
      expect(blocks).toEqual([32, 16, 8, 4, 2, 1, 1, 1]);
    });

    it('which is five times as long for permits', () => {
      expect(reserved(new HandOffBudget(), 64, 64, 100, 3)).toBe(64);
    });

    it('by what was used when it ended, not before', () => {
      const budget = new HandOffBudget();
      expect(budget.isSpent(held(3), 9, { monotonic: 3_600_001, wall: 0 })).toBe(false);
      expect(budget.block).toBe(64);
    });
  });
});

describe('a caller inherits a lock without asking the backend', () => {
  const LEASE = 10_000;
  const KEEPER = { name: 'order', key: 'lock:order' } as LockKeeper;
  const runtime = new VirtualRuntime();
  const clock = new LeaseClock(runtime);
  const sent = { monotonic: 0, wall: runtime.wall() };

  const holding = (fixed = false, reserved = 64) =>
    new HeldLock(
      KEEPER,
      { type: 'reentrant', owner: 'ann:1', leaseTime: LEASE, sent, lateCopiesUntil: undefined, permits: undefined },
      fixed,
      { token: 1, reserved },
      0,
    );
  const inherits = (held: HeldLock, age = 0, terms: object = {}) =>
    mayInherit(held, { terms: { fixed: false, leaseTime: LEASE, ...terms } } as LockWaiter, clock, {
      monotonic: age,
      wall: sent.wall + age,
    });

  it('if it was confirmed less than half a lease ago', () => {
    expect(inherits(holding(), 4_999)).toBe(true);
    expect(inherits(holding(), 5_000)).toBe(false);
  });

  it('if a token was reserved for it', () => {
    expect(inherits(holding(false, 0))).toBe(false);
  });

  it('if neither lease is fixed, and both are equally long', () => {
    expect(inherits(holding(true))).toBe(false);
    expect(inherits(holding(), 0, { fixed: true })).toBe(false);
    expect(inherits(holding(), 0, { leaseTime: LEASE + 1 })).toBe(false);
  });

  it('if no command about its owner is unanswered', () => {
    const held = holding();
    held.commandSent();
    expect(inherits(held)).toBe(false);
    held.commandSettled();
    expect(inherits(held)).toBe(true);
  });
});
