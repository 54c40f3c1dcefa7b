import type { HeldType } from '../backend.js';

const REFUSALS: Partial<Record<HeldType, string>> = {
  read: 'a database keeps writers waiting for as long as readers overlap; use lockRows() with mode: "share" inside a transaction, or Redis',
  fair: 'the processes wait in the database, which decides in which order it serves them; use type: "reentrant", or Redis',
  fenced:
    'Redisson keeps the tokens of fenced locks in Redis; every lock of a database has a fencing token, so use type: "reentrant"',
};

/** Why a row cannot be a lock of this type. */
export function refusalOf(type: HeldType): string | undefined {
  return REFUSALS[type];
}
