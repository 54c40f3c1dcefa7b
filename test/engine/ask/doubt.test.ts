import { Doubt } from '../../../lib/engine/ask/doubt.js';
import type { UnusedOwner } from '../../../lib/engine/ask/unused-owner.js';

const OWNER = { key: 'lock:order', type: 'fair', owner: 'ann:1' } as const;

describe('what several requests for one owner may have left', () => {
  const open = () => {
    const released: UnusedOwner[] = [];
    const doubt = new Doubt();
    const undo = (waits?: boolean) =>
      doubt.undo({ release: (owner) => void released.push(owner) }, OWNER, 3_000, waits);
    return { doubt, undo, released };
  };

  it('is nothing at first, and nothing after requests that have left nothing', () => {
    const { doubt, undo, released } = open();
    undo();
    doubt.note({ leavesTraces: false, lateCopiesUntil: 5_000 });
    expect([doubt.exists, doubt.until]).toEqual([false, undefined]);
    undo();
    expect(released).toEqual([]);
  });

  it('is released once', () => {
    const { doubt, undo, released } = open();
    doubt.note({ leavesTraces: true, lateCopiesUntil: undefined });
    expect(doubt.exists).toBe(true);
    undo();
    undo();
    expect(released).toEqual([{ ...OWNER, leaseTime: 3_000, validUntil: undefined, waits: false }]);
    expect(doubt.exists).toBe(false);
  });

  it('is released as a waiter as well, if it may be one', () => {
    const { doubt, undo, released } = open();
    doubt.note({ leavesTraces: true, lateCopiesUntil: undefined });
    undo(true);
    expect(released).toMatchObject([{ waits: true }]);
  });

  it.each([[[1_000, 2_000]], [[2_000, 1_000]], [[undefined, 2_000]], [[2_000, undefined]]])(
    'may still be executed until the last of the times: %j',
    (times) => {
      const { doubt, undo, released } = open();
      for (const lateCopiesUntil of times) doubt.note({ leavesTraces: true, lateCopiesUntil });
      undo();
      expect(released).toMatchObject([{ validUntil: 2_000 }]);
    },
  );

  it('begins anew after it was released', () => {
    const { doubt, undo, released } = open();
    doubt.note({ leavesTraces: true, lateCopiesUntil: 2_000 });
    undo();
    doubt.note({ leavesTraces: true, lateCopiesUntil: 1_000 });
    undo();
    expect(released.map(({ validUntil }) => validUntil)).toEqual([2_000, 1_000]);
  });

  it('may still be executed at a time before 1970 by the clock of the backend', () => {
    const { doubt } = open();
    doubt.note({ leavesTraces: true, lateCopiesUntil: -5 });
    expect(doubt.until).toBe(-5);
  });
});
