import { toLockNames } from './lock-name.js';

/** One name, or several names that are acquired together: all or none. @publicApi */
export type LockNames = string | readonly string[];

/** Checks the names of a list. A single name is checked when its queue is created. */
export function toWanted(names: LockNames, what: string): LockNames {
  return typeof names === 'string' ? names : toLockNames(Array.isArray(names) ? names : [names], what);
}

/** The names as shown in errors. */
export function quoted(names: LockNames): string {
  return `'${[names].flat().join("', '").slice(0, 80)}'`;
}
