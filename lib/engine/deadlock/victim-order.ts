import type { LockScope } from '../scope/lock-scope.js';
import type { FoundWait } from './journal-record.js';

// Which wait of a cycle is refused: the last one in the order of `isBefore`.

/**
 * The order of waits, which is the same in all processes. Of the waits in a cycle, the last one is refused. A branch
 * that nobody seems to await comes after all others, because its holder may release its lock in spite of the cycle.
 * Otherwise, the wait that began earlier comes first; of two that began together, the one with the smaller owner.
 */
export function isBefore(one: Pick<FoundWait, 'id' | 'record'>, other: Pick<FoundWait, 'id' | 'record'>): boolean {
  const [a, b] = [one.record, other.record];
  if (Boolean(a.isBranch) !== Boolean(b.isBranch)) return !a.isBranch;
  if (a.began !== b.began) return a.began < b.began;
  return a.owner === b.owner ? one.id < other.id : a.owner < b.owner;
}

/**
 * Whether a wait probably belongs to a branch that nobody awaits: its scope is over, or code in a scope around the
 * caller has begun other acquisitions since, instead of waiting for this one.
 *
 * @param callsBefore the number of the latest acquisition when the wait began
 */
export function seemsUnawaited(waiting: LockScope, callsBefore: number): boolean {
  if (waiting.over) return true;
  for (let scope: LockScope | undefined = waiting; scope !== undefined; scope = scope.parent)
    if (scope.lastCall > callsBefore) return true;
  return false;
}
