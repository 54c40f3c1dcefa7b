import { describeHolder, type HolderClient } from '../describe-holder.js';
import { type DeadlockMember, LockDeadlockError } from '../errors.js';
import type { FoundWait } from './journal-record.js';
import { isGateId } from './nested-wait.js';

/**
 * The error for the caller whose wait is refused.
 *
 * @param cycle the waits of the cycle. Each one waits for the owner of the next; the caller's own wait is the last.
 * @param clients the clients of their owners, as far as known
 */
export function deadlockError(
  cycle: readonly FoundWait[],
  clients: readonly (HolderClient | undefined)[] = [],
): LockDeadlockError {
  const members = cycle.map((wait, i): DeadlockMember => {
    const before = cycle[(i + cycle.length - 1) % cycle.length];
    const client = clients[i];
    const member = { owner: ownerOf(wait), holds: before.record.lock, waitsFor: wait.record.lock };
    return client === undefined ? member : { ...member, client };
  });
  const ownFirst = [members[members.length - 1], ...members.slice(0, -1)];
  const [{ waitsFor }] = ownFirst;
  const steps = ownFirst.map(
    (member, i) => `${nameOf(member, i === 0)} holds '${member.holds}' and waits for '${member.waitsFor}'`,
  );
  const { isBranch } = cycle[cycle.length - 1].record;
  const why = isBranch
    ? 'This wait was ended because the code that started it has gone on and may not await it. If so, use outsideLocks() or reentry: false'
    : 'This wait began last and was ended, so that the others can continue';
  return new LockDeadlockError(
    `The lock '${waitsFor}' was not acquired, because of a deadlock: ${steps.join('; ')}. ${why}. Acquire locks in the same order everywhere, or several at once: acquire([…])`,
    waitsFor,
    ownFirst,
  );
}

/** The owner id under which a member of the cycle holds its lock. */
export function ownerOf({ holder, record }: FoundWait): string {
  return isGateId(holder) ? record.owner : holder;
}

/** The name of a member of the cycle in the message. */
function nameOf({ owner, client }: DeadlockMember, isCaller: boolean): string {
  const name = describeHolder(owner, client);
  return isCaller ? `${name} (this caller)` : name;
}
