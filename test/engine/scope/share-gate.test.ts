import { ShareGates } from '../../../lib/engine/scope/share-gate.js';

describe('the gates of a share', () => {
  /** A child that is inside a gate of the share with the lock. */
  const enter = () => {
    const gate = new ShareGates([]).gate('page');
    gate.enter('exclusive');
    return { gate, child: new ShareGates([gate]) };
  };

  it('stay closed to siblings after the children of the one that is inside have left', () => {
    const { gate, child } = enter();
    for (let n = 0; n < 2; n++) {
      const below = child.gate('page');
      below.enter('exclusive');
      below.leave();
      expect(gate.open('exclusive')).toBe(false);
    }
    child.leave();
    expect(gate.open('exclusive')).toBe(true);
  });

  it('open when the last child below has left, if the share itself left before', () => {
    const { gate, child } = enter();
    const below = child.gate('page');
    below.enter('exclusive');
    child.leave();
    expect(gate.open('exclusive')).toBe(false);
    below.leave();
    expect(gate.open('exclusive')).toBe(true);
  });

  it('know which shares are below others, in the same lock only', () => {
    const outer = new ShareGates([]);
    const middle = new ShareGates([outer.gate('page')]);
    const inner = new ShareGates([middle.gate('page')]);
    const other = new ShareGates([]);
    expect([inner, middle].map((share) => share.isBelow(outer, 'page'))).toEqual([true, true]);
    expect(inner.isBelow(middle, 'page')).toBe(true);
    expect([outer, middle].map((share) => share.isBelow(inner, 'page'))).toEqual([false, false]);
    expect(inner.isBelow(other, 'page')).toBe(false);
    expect(inner.isBelow(outer, 'cover')).toBe(false);
  });
});
