import type { HeldType } from '../backends/lock-backend.js';

const REFUSALS: Partial<Record<HeldType, string>> = {
  read: 'a database keeps writers waiting for as long as readers overlap; use lockRows() with mode: "share" inside a transaction, or Redis',
  fair: 'each process waits with one statement, in the order in which the database serves them; use type: "reentrant", or Redis',
  fenced: 'Redisson keeps their tokens in Redis; every row lock has a fencing token: use type: "reentrant"',
};

/** Why a row cannot be a lock of this type. */
export function refusalOf(type: HeldType): string | undefined {
  return REFUSALS[type];
}
