import type { LockWaiter } from '../../../lib/engine/hold/held-lock.js';
import { type EnteredGate, type ShareGate, ShareGates, type ShareMode } from '../../../lib/engine/scope/share-gate.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import type { AcquisitionTerms } from '../../../lib/engine/terms/lock-options.js';
import { Waiter } from '../../../lib/engine/wait/waiter.js';
import { ms } from '../../support/lock-world.js';
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
    const wait = (who: string, mode: ShareMode, waitTime = FOREVER) => {
      const terms = { waitTime, outageTimeout: FOREVER, signal: undefined } as AcquisitionTerms;
      const refuse = ({ message }: Error) =>
        void entered.push(`${who} was refused${message === 'busy' ? ': busy' : ''}`);
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
    return { gate, entered, wait, runtime };
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

  it('admits one that waits for it although it is open', () => {
    const { gate, entered, wait } = open();
    wait('ann', 'exclusive');
    expect(entered).toEqual(['ann']);
    expect(isOpen(gate)).toEqual([false, false]);
  });

  it('is passed by one that has left before it could enter, and admits the next', () => {
    const { gate, entered, wait } = open();
    gate.enter('exclusive');
    const first = wait('ann', 'exclusive');
    wait('bob', 'exclusive');
    first.refuse(new Error('shutdown'));
    gate.leave();
    expect(entered).toEqual(['ann was refused', 'bob']);
    gate.leave();
    expect(isOpen(gate)).toEqual([true, true]);
  });

  it('is not entered by one that has left before it came', () => {
    const { gate, entered } = open();
    const runtime = new VirtualRuntime();
    const terms = { waitTime: FOREVER, outageTimeout: FOREVER, signal: undefined } as AcquisitionTerms;
    const waiter: LockWaiter = new Waiter(
      'ann',
      () => 'ann',
      terms,
      runtime,
      () => {},
      () => {},
    );
    waiter.refuse(new Error('aborted'));
    gate.wait(
      waiter,
      'exclusive',
      () => entered.push('ann'),
      () => new Error('busy'),
    );
    expect([entered, ...isOpen(gate)]).toEqual([[], true, true]);
  });

  it('refuses one whose time is over with the reason, and admits those that waited behind it', async () => {
    const { gate, entered, wait, runtime } = open();
    gate.enter('shared');
    wait('ann', 'exclusive', ms(100));
    wait('bob', 'shared');
    await runtime.advance(99);
    expect(entered).toEqual([]);
    await runtime.advance(1);
    expect(entered).toEqual(['bob', 'ann was refused: busy']);
    expect(runtime.timers).toBe(0);
  });

  it('stays closed until the last of those has left that had it closed for the only reader inside', () => {
    const { gate, entered, wait } = open();
    gate.enter('shared');
    const writing = [gate.closeToReaders(), gate.closeToReaders()];
    expect(writing.map((closed) => [closed?.key, closed?.share === gate.share])).toEqual([
      ['page', true],
      ['page', true],
    ]);
    wait('ann', 'shared');
    writing[0]?.leave();
    expect(entered).toEqual([]);
    writing[1]?.leave();
    expect(entered).toEqual(['ann']);
  });

  it('says whether those inside read', () => {
    const { gate } = open();
    expect(gate.isShared).toBe(true);
    gate.enter('exclusive');
    expect(gate.isShared).toBe(false);
    gate.leave();
    gate.enter('shared');
    expect(gate.isShared).toBe(true);
  });
});

describe('the gates of a share of several locks', () => {
  it('are left lock by lock, each when the last share below it has ended', () => {
    const outer = new ShareGates([]);
    const [page, cover] = [outer.gate('page'), outer.gate('cover')];
    for (const gate of [page, cover]) gate.enter('exclusive');
    const share = new ShareGates([page, cover]);
    const below = share.gate('page');
    below.enter('exclusive');
    expect([share.left, share.above('page'), share.above('cover'), share.above('index')]).toEqual([
      false,
      page,
      cover,
      undefined,
    ]);
    share.leave();
    expect([share.left, page.open('exclusive'), cover.open('exclusive')]).toEqual([true, false, true]);
    cover.enter('shared'); // the next child
    below.leave();
    expect([page.open('exclusive'), cover.open('exclusive'), cover.open('shared')]).toEqual([true, false, true]);
  });

  it('exist while a child is inside or waits, so that the next child finds the same one', () => {
    const share = new ShareGates([]);
    const gate = share.gate('page');
    expect(share.gate('page')).toBe(gate);
    expect(share.gate('cover')).not.toBe(gate);
    gate.enter('exclusive');
    gate.leave();
    expect(share.gate('page')).not.toBe(gate);
  });

  it('that a child has left twice are not left by the share of another child', () => {
    const outer = new ShareGates([]);
    const gate = outer.gate('page');
    gate.enter('exclusive');
    const share = new ShareGates([gate]);
    const former = share.gate('page');
    former.enter('exclusive');
    former.leave();
    const present = share.gate('page');
    present.enter('exclusive');
    share.leave();
    share.emptied(former);
    expect(gate.open('exclusive')).toBe(false);
    present.leave();
    expect(gate.open('exclusive')).toBe(true);
  });
});
