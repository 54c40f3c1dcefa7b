import { type LockBusyError, LockConfigurationError, LockSupersededError } from '../../engine/errors.js';
import { describeValue } from './check-decorator-options.js';
import type { BusyAnswer, DistributedLockOptions } from './distributed-lock.options.js';

/**
 * The option `onBusy` as a function; `undefined`: the call fails with LockBusyError.
 *
 * @param where how errors name the method: `OrdersService.ship`
 * @throws LockConfigurationError when it is neither 'throw', 'skip', 'newest', a function nor the name of a method
 */
export function toBusyAnswer(
  onBusy: DistributedLockOptions['onBusy'],
  prototype: object,
  where: string,
): BusyAnswer | undefined {
  if (onBusy === undefined || onBusy === 'throw') return undefined;
  if (onBusy === 'skip') return () => undefined;
  if (onBusy === 'newest') return unlessSuperseded;
  if (typeof onBusy === 'function') return onBusy;
  if (typeof onBusy === 'string' && hasMethod(prototype, onBusy)) {
    return function (this: Record<string, BusyAnswer>, busy, ...args) {
      return this[onBusy](busy, ...args);
    };
  }
  throw new LockConfigurationError(
    `${where}: onBusy is ${describeValue(onBusy)}; it must be 'throw', 'skip', 'newest', a function, or the name of a method of the class`,
  );
}

/** With `onBusy: 'newest'`, a call whose waitTime ends is busy, as without it. */
function unlessSuperseded(busy: LockBusyError): undefined {
  if (!(busy instanceof LockSupersededError)) throw busy;
}

function hasMethod(prototype: object, name: string): boolean {
  for (let type = prototype; type !== null && type !== Object.prototype; type = Object.getPrototypeOf(type)) {
    const descriptor = Object.getOwnPropertyDescriptor(type, name);
    if (descriptor !== undefined) return typeof descriptor.value === 'function' && name !== 'constructor';
  }
  return false;
}
