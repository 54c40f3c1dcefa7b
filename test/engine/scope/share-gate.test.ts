import type { LockWaiter } from '../../../lib/engine/hold/held-lock.js';
import { type EnteredGate, type ShareGate, ShareGates, type ShareMode } from '../../../lib/engine/scope/share-gate.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import type { AcquisitionTerms } from '../../../lib/engine/terms/lock-options.js';
import { Waiter } from '../../../lib/engine/wait/waiter.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';

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

describe('a gate', () => {
  const open = () => {
    const gate = new ShareGates([]).gate('page');
    const entered: string[] = [];
    const runtime = new VirtualRuntime();
    const terms = { waitTime: FOREVER, outageTimeout: FOREVER, signal: undefined } as AcquisitionTerms;
    const wait = (who: string, mode: ShareMode) => {
      const refuse = () => void entered.push(`${who} was refused`);
      const waiter: LockWaiter = new Waiter(
        who,
        () => who,
        terms,
        runtime,
        () => {},
        refuse,
      );
      gate.wait(
        waiter,
        mode,
        () => entered.push(who),
        () => new Error('busy'),
      );
      return waiter;
    };
    return { gate, entered, wait };
  };
  const isOpen = (gate: ShareGate) => [gate.open('shared'), gate.open('exclusive')];

  it('admits readers side by side, but neither them nor another writer beside a writer', () => {
    const { gate } = open();
    expect(isOpen(gate)).toEqual([true, true]);
    gate.enter('shared');
    expect(isOpen(gate)).toEqual([true, false]);
    gate.leave();
    gate.enter('exclusive');
    expect(isOpen(gate)).toEqual([false, false]);
    gate.leave();
    gate.enter('shared');
    expect(isOpen(gate)).toEqual([true, false]);
  });

  it('admits those that wait in the order in which they came, and readers together', () => {
    const { gate, entered, wait } = open();
    gate.enter('exclusive');
    wait('ann', 'shared');
    wait('bob', 'shared');
    wait('eve', 'exclusive');
    wait('joe', 'shared');
    expect(entered).toEqual([]);
    gate.leave();
    expect(entered).toEqual(['ann', 'bob']);
    gate.leave();
    expect(entered).toEqual(['ann', 'bob']);
    gate.leave();
    expect(entered).toEqual(['ann', 'bob', 'eve']);
    gate.leave();
    expect(entered).toEqual(['ann', 'bob', 'eve', 'joe']);
  });

  it('admits readers to the reader inside when the writer that waited before them leaves', () => {
    const { gate, entered, wait } = open();
    gate.enter('shared');
    const writer = wait('ann', 'exclusive');
    wait('bob', 'shared');
    wait('eve', 'shared');
    expect(entered).toEqual([]);
    gate.dismiss(writer, new Error('a deadlock'));
    expect(entered).toEqual(['bob', 'eve', 'ann was refused']);
  });

  it('can be closed for the only reader inside, and admits others once that one has written', () => {
    const { gate, entered, wait } = open();
    gate.enter('shared');
    const writing = gate.closeToReaders();
    wait('ann', 'shared');
    expect(entered).toEqual([]);
    writing?.leave();
    expect(entered).toEqual(['ann']);
    expect(gate.closeToReaders()).toBeUndefined();
  });

  it('admits a writer alone after a reader that had it closed, and left before its child that writes', () => {
    const { gate, entered, wait } = open();
    gate.enter('shared');
    const reader = new ShareGates([gate]);
    const below = reader.gate('page');
    below.enter('exclusive');
    const writing = new ShareGates([below, gate.closeToReaders() as EnteredGate]);
    wait('ann', 'exclusive');
    wait('bob', 'shared');
    reader.leave();
    expect(entered).toEqual([]);
    writing.leave();
    expect(entered).toEqual(['ann']);
    gate.leave();
    expect(entered).toEqual(['ann', 'bob']);
  });
});
