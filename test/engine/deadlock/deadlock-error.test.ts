import { deadlockError, ownerOf } from '../../../lib/engine/deadlock/deadlock-error.js';
import type { FoundWait } from '../../../lib/engine/deadlock/journal-record.js';
import type { HolderClient } from '../../../lib/engine/describe-holder.js';
import { LockDeadlockError } from '../../../lib/engine/errors.js';

const wait = (holder: string, lock: string, isBranch?: true): FoundWait => ({
  holder,
  id: `wait of ${holder}`,
  record: { lock, owner: `inner of ${holder}`, holders: [], began: 1, beat: 1, ...(isBranch && { isBranch }) },
});
const client = { application: 'shop', host: 'web-7', pid: 42, group: '', method: 'Orders.pay' } as HolderClient;

/** `ann` holds A and waits for B, `bob` holds B and waits for C, and the caller holds C and waits for A. */
const CYCLE = [wait('ann', 'B'), wait('bob', 'C'), wait('me', 'A')];

describe('the error about a deadlock', () => {
  it('has all members, beginning with the caller, each with what it holds and waits for', () => {
    const error = deadlockError(CYCLE);
    expect(error).toBeInstanceOf(LockDeadlockError);
    expect(error.lockName).toBe('A');
    expect(error.cycle).toEqual([
      { owner: 'me', holds: 'C', waitsFor: 'A' },
      { owner: 'ann', holds: 'A', waitsFor: 'B' },
      { owner: 'bob', holds: 'B', waitsFor: 'C' },
    ]);
    expect(error.message).toBe(
      "The lock 'A' was not acquired, because of a deadlock: me (this caller) holds 'C' and waits for 'A'; ann holds 'A' and waits for 'B'; bob holds 'B' and waits for 'C'. This wait began last and was ended, so that the others can continue. Acquire locks in the same order everywhere, or several at once: acquire([…])",
    );
  });

  it('names the processes that are known', () => {
    const error = deadlockError(CYCLE, [undefined, client, client]);
    expect(error.cycle.map((member) => [member.owner, 'client' in member, member.client])).toEqual([
      ['me', true, client],
      ['ann', false, undefined],
      ['bob', true, client],
    ]);
    expect(error.message).toContain("shop on web-7, pid 42, in Orders.pay (me) (this caller) holds 'C'");
    expect(error.message).toContain("; ann holds 'A'");
    expect(error.message).toContain("; shop on web-7, pid 42, in Orders.pay (bob) holds 'B'");
  });

  it('has a caller that waits for itself', () => {
    expect(deadlockError([wait('me', 'A')]).cycle).toEqual([{ owner: 'me', holds: 'A', waitsFor: 'A' }]);
  });

  it('says if the caller seems to be a branch that nobody awaits', () => {
    const why = 'This wait was ended because the code that started it has gone on and may not await it';
    expect(deadlockError([wait('ann', 'B'), wait('me', 'A', true)]).message).toContain(why);
    expect(deadlockError([wait('ann', 'B', true), wait('me', 'A')]).message).not.toContain(why);
  });

  it('has the innermost owner of a member that others wait for at the gate of a share', () => {
    expect(ownerOf(wait('client/gate/7', 'B'))).toBe('inner of client/gate/7');
    expect(ownerOf(wait('client:7', 'B'))).toBe('client:7');
    expect(deadlockError([wait('ann', 'B'), wait('client/gate/7', 'A')]).cycle[0].owner).toBe('inner of client/gate/7');
  });
});
