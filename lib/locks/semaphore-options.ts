import { LockConfigurationError } from '../engine/errors.js';
import { toCount } from './to-count.js';

/** Options of a semaphore. @publicApi */
export interface SemaphoreOptions {
  /**
   * With how many permits the semaphore is created where it does not exist: by the first call of any process, so that
   * nobody needs to call `trySetPermits`. One that exists keeps its permits. Default: it is not created, and callers
   * find no permits.
   */
  readonly permits?: number;
}

/**
 * @param method what errors call the call: `getSemaphore()`
 * @throws LockConfigurationError naming the option that is wrong
 */
export function initialPermits(options: SemaphoreOptions | undefined, method: string): number | undefined {
  if (options === undefined) return undefined;
  if (typeof options !== 'object' || options === null)
    throw new LockConfigurationError(`${method}: the options must be an object`);
  const unknown = Object.keys(options).find((option) => option !== 'permits');
  if (unknown !== undefined)
    throw new LockConfigurationError(`${method}: there is no option '${unknown}'; there is permits`);
  return options.permits === undefined ? undefined : toCount(options.permits, `${method}: permits`);
}
