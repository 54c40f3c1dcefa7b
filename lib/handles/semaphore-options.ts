import { CHECKED_LATER, checkOptions, type OptionTable } from '../engine/terms/option-table.js';
import { toCount } from './to-count.js';

/** Options of a semaphore. @publicApi */
export interface SemaphoreOptions {
  /**
   * Creates a missing semaphore with this many permits, on the first call of any process, so that nobody has to call
   * `trySetPermits`. An existing semaphore keeps its permits. Default: it is not created, and callers find no permits.
   */
  readonly permits?: number;
}

const OPTIONS: OptionTable<SemaphoreOptions> = { permits: CHECKED_LATER };

/**
 * @param method the name of the call in errors: `getSemaphore()`
 * @throws LockConfigurationError naming the invalid option
 */
export function initialPermits(options: SemaphoreOptions | undefined, method: string): number | undefined {
  if (options === undefined) return undefined;
  checkOptions(options, OPTIONS, method);
  return options.permits === undefined ? undefined : toCount(options.permits, `${method}: permits`);
}
