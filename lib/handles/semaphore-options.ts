import { LockConfigurationError } from '../engine/errors.js';
import { toCount } from './to-count.js';

/** Options of a semaphore. @publicApi */
export interface SemaphoreOptions {
  /**
   * Creates a missing semaphore with this many permits, on the first call of any process, so that nobody has to call
   * `trySetPermits`. An existing semaphore keeps its permits. Default: it is not created, and callers find no permits.
   */
  readonly permits?: number;
}

/**
 * @param method the name of the call in errors: `getSemaphore()`
 * @throws LockConfigurationError naming the invalid option
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
