import type { ExpectedHolders } from '../backends/lock-backend.js';
import { LockConfigurationError } from '../engine/errors.js';
import type { ForceReleaseOptions } from './lock-inspection.js';

const OPTION_NAMES: readonly string[] = ['owners', 'fencingToken'] satisfies (keyof ForceReleaseOptions)[];

/**
 * What a backend is given of the options of a forced release; undefined: it means whoever holds the lock.
 *
 * @throws LockConfigurationError for a bad option: a release that means somebody must not become one that means everybody
 */
export function expectedHolders(options: ForceReleaseOptions | undefined): ExpectedHolders | undefined {
  if (options === undefined) return undefined;
  if (typeof options !== 'object' || options === null) refuse('the options must be an object');
  const unknown = Object.keys(options).find((option) => !OPTION_NAMES.includes(option));
  if (unknown !== undefined) refuse(`there is no option '${unknown}'; there are ${OPTION_NAMES.join(' and ')}`);
  const { owners, fencingToken: token } = options;
  if (token !== undefined && !Number.isSafeInteger(token)) refuse('fencingToken must be a whole number');
  if (owners === undefined) {
    if (token !== undefined) refuse('fencingToken is compared together with owners: give both');
    return undefined;
  }
  if (!Array.isArray(owners) || !owners.every((owner) => typeof owner === 'string'))
    refuse('owners must be a list of strings, as inspect() shows them');
  return { owners, token };
}

function refuse(why: string): never {
  throw new LockConfigurationError(`forceRelease(): ${why}`);
}
