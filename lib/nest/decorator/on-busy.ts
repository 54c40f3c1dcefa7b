import { type LockBusyError, LockConfigurationError, LockSupersededError } from '../../engine/errors.js';
import { checkNewest, type LockOptions } from '../../engine/terms/lock-options.js';
import type { BusyAnswer, DistributedLockOptions } from './distributed-lock.options.js';

/** The option `onBusy` as a function; `undefined`: the call fails with LockBusyError. */
export function toBusyAnswer(onBusy: DistributedLockOptions['onBusy']): BusyAnswer | undefined {
  if (onBusy === undefined || onBusy === 'throw') return undefined;
  if (onBusy === 'skip') return () => undefined;
  return onBusy === 'newest' ? unlessSuperseded : onBusy;
}

/**
 * What `onBusy` says about the wait. A method that is answered when the lock is busy does not wait for it, unless its
 * `waitTime` says so.
 *
 * @throws LockConfigurationError when another option cannot be combined with it
 */
export function waitOf(options: DistributedLockOptions, where: string): Pick<LockOptions, 'waitTime' | 'newest'> {
  const { onBusy } = options;
  if (onBusy === undefined || onBusy === 'throw') return {};
  if (onBusy !== 'newest') return { waitTime: 0 };
  checkNewestMethod(options, where);
  return { newest: true };
}

/** @throws LockConfigurationError when another option cannot be combined with `onBusy: 'newest'` */
function checkNewestMethod({ key, type, permits, waitTime }: DistributedLockOptions, where: string): void {
  const option = "onBusy: 'newest'";
  if (Array.isArray(key) && key.length > 1)
    throw new LockConfigurationError(
      `${where}: ${option} is for one name, and key is a list. Use one key, or another onBusy`,
    );
  checkNewest({ type, permits: permits as number | undefined, waitTime }, where, option);
}

/** With `onBusy: 'newest'`, a call that nobody makes in its place fails as without it. */
function unlessSuperseded(busy: LockBusyError): undefined {
  if (!(busy instanceof LockSupersededError)) throw busy.cause ?? busy;
}
