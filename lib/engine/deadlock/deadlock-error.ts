import { type DeadlockMember, LockDeadlockError } from '../errors.js';
import { isGateId } from './nested-wait.js';
import type { FoundWait } from './wait-record.js';

/**
 * The error for the caller whose wait is refused.
 *
 * @param cycle the waits that it stands behind, one behind the other, with its own as the last
 */
export function deadlockError(cycle: readonly FoundWait[]): LockDeadlockError {
  const members = cycle.map(({ holder, record }, i): DeadlockMember => {
    const before = cycle[(i + cycle.length - 1) % cycle.length];
    return {
      owner: isGateId(holder) ? record.owner : holder,
      holds: before.record.lock,
      waitsFor: record.lock,
    };
  });
  const ownFirst = [members[members.length - 1], ...members.slice(0, -1)];
  const [{ waitsFor }] = ownFirst;
  const steps = ownFirst.map(
    (member, i) => `${nameOf(member, i === 0)} holds '${member.holds}' and waits for '${member.waitsFor}'`,
  );
  return new LockDeadlockError(
    `The lock '${waitsFor}' was not acquired, because of a deadlock: ${steps.join('; ')}. This wait began last and was ended, so that the others can go on. Acquire locks in the same order everywhere, or several at once: acquire([…])`,
    waitsFor,
    ownFirst,
  );
}

/** How a member of the cycle is named: what is known about a holder's process belongs here. */
function nameOf({ owner }: DeadlockMember, isCaller: boolean): string {
  return isCaller ? `${owner} (this caller)` : owner;
}
