import { isGateId, NestedWait, type WaitingPlace } from '../../../lib/engine/deadlock/nested-wait.js';
import type { LockWaiter } from '../../../lib/engine/hold/held-lock.js';
import { LockScope, lockScopes, noteCall, type ScopedLease } from '../../../lib/engine/scope/lock-scope.js';
import { ShareGates } from '../../../lib/engine/scope/share-gate.js';

const QUEUE: WaitingPlace = { key: 'lock:busy', dismiss: () => {} };

/** A scope in which a lease is held, by these owners. */
function scope(owners: readonly string[], gates = new ShareGates([]), around?: LockScope): LockScope {
  const locks = owners.map((owner) => ({ owner }));
  return new LockScope({ live: true, released: false, locks, gates } as unknown as ScopedLease, around);
}

function waitIn(around: LockScope, place = QUEUE): NestedWait {
  const waiter = { settled: false, name: 'busy', terms: { waitTime: 5_000 } } as LockWaiter;
  const wait = new NestedWait('wait', waiter, place, 0, around);
  wait.began = 1_000;
  return wait;
}

describe('a wait of a caller that holds locks', () => {
  it('stands for the owners of all its locks, and is written down with the innermost one', () => {
    const wait = waitIn(scope(['inner'], undefined, scope(['outer', 'other'])));
    expect(wait.holds).toEqual(new Set(['inner', 'outer', 'other']));
    expect(wait.record).toMatchObject({ lock: 'busy', owner: 'inner', began: 1_000, ends: 6_000 });
  });

  it('is written down without an end if it has none', () => {
    const wait = waitIn(scope(['outer']));
    expect(wait.record.ends).toBe(6_000);
    Object.assign(wait.waiter.terms, { waitTime: Number.POSITIVE_INFINITY });
    expect(wait.record).toEqual({ lock: 'busy', owner: 'outer', holders: [], began: 1_000, beat: 0 });
  });

  it('stands for the locks that are held now', () => {
    const outer = scope(['outer']);
    const inner = scope(['inner'], undefined, outer);
    const wait = waitIn(inner);
    inner.end();
    expect(wait.holds).toEqual(new Set(['outer']));
    expect(wait.record.owner).toBe('outer');
  });

  it('has another id for each gate, which no other process has', () => {
    const gates = [0, 1].map(() => waitIn(scope(['behind']), new ShareGates([]).gate('lock:A')).gateId('client'));
    expect(gates[0]).not.toBe(gates[1]);
    for (const gate of gates) expect(gate).toMatch(/^client\/gate\/\d+$/);
    expect([isGateId(gates[0] as string), isGateId('client:7')]).toEqual([true, false]);
  });

  it('stands for the gates that the caller has passed, if somebody waits there', () => {
    const passed = new ShareGates([]).gate('lock:A');
    const inside = waitIn(scope(['inside'], new ShareGates([passed])));
    expect(inside.holds).toEqual(new Set(['inside']));
    const behind = waitIn(scope(['behind']), passed);
    const gate = behind.gateId('client') as string;
    expect(isGateId(gate)).toBe(true);
    expect(behind.gateId('client')).toBe(gate);
    expect(inside.holds).toEqual(new Set(['inside', gate]));
    expect(behind.holds).toEqual(new Set(['behind']));
  });

  it('stands for the gates around those gates, too', () => {
    const outer = new ShareGates([]).gate('lock:A');
    const share = new ShareGates([outer]);
    const inside = waitIn(scope(['inside'], new ShareGates([share.gate('lock:A')])));
    const gate = waitIn(scope(['behind']), outer).gateId('client') as string;
    expect(inside.holds).toEqual(new Set(['inside', gate]));
  });

  describe('is a branch', () => {
    const [outer, other] = [scope(['outer']), scope(['other'])];
    const inner = scope(['inner'], undefined, outer);
    const call = (from: LockScope) => lockScopes.run(from, noteCall);

    it.each<[string, boolean, () => void]>([
      ['if code directly in its scope has begun another acquisition', true, () => call(inner)],
      ['if code in a scope around that has', true, () => call(outer)],
      ['not if code in another scope has', false, () => call(other)],
      ['not if code in a scope inside its own has', false, () => call(scope(['below'], undefined, inner))],
      ['not if nothing has happened', false, () => {}],
      ['if its innermost scope has ended', true, () => inner.end()],
    ])('%s', (_, isBranch, meanwhile) => {
      call(inner); // the wait itself
      const wait = waitIn(inner);
      meanwhile();
      wait.date(1_000);
      expect(wait.isBranch).toBe(isBranch);
      expect(wait.record.isBranch).toBe(isBranch || undefined);
    });

    it('forever or never, from when it is first written down', () => {
      const around = scope(['outer']);
      const wait = waitIn(around);
      wait.date(1_000);
      call(around);
      expect(wait.record.isBranch).toBeUndefined();
    });
  });

  describe('is written down', () => {
    const written = (permits: number | undefined, holders: readonly string[]) => {
      const wait = waitIn(scope(['outer']));
      Object.assign(wait.waiter.terms, { permits });
      wait.noteHolders(holders);
      const { record } = wait;
      return { holders: record.holders, shared: record.shared };
    };
    const three = ['a', 'b', 'c'];
    const nobody = { holders: [], shared: undefined };

    it('with all holders if it lasts until none of them holds the lock', () => {
      for (const permits of [undefined, 1]) {
        expect(written(permits, three)).toEqual({ holders: three, shared: undefined });
        expect(written(permits, [])).toEqual(nobody);
      }
    });

    it('with the only holder, which processes of older versions follow as well', () => {
      expect(written(2, ['a'])).toEqual({ holders: ['a'], shared: undefined });
    });

    it('for older versions without holders if some of several have to make room', () => {
      for (const permits of [2, 3])
        expect(written(permits, three)).toEqual({ holders: [], shared: { holders: three, permits } });
    });

    it('without holders if there is room beside them', () => {
      expect(written(4, three)).toEqual(nobody);
    });
  });

  it('waits at no gate when it waits in the queue of a lock', () => {
    expect(waitIn(scope(['outer'])).gateId('client')).toBeUndefined();
  });

  it('continues until its caller is served or no longer holds a lock', () => {
    const around = scope(['outer']);
    const wait = waitIn(around);
    expect(wait.continues).toBe(true);
    around.end();
    expect(wait.continues).toBe(false);
    const served = waitIn(scope(['outer']));
    served.waiter.settled = true;
    expect(served.continues).toBe(false);
  });
});
