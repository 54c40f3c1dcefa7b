import type { Lockable } from '../lock-service-property.js';
import { wrongKind } from './distributed-lock.errors.js';
import type { Method } from './distributed-lock.options.js';
import { LockedCall } from './locked-call.js';
import { lockedIterable } from './locked-iterable.js';
import type { LockedMethod } from './locked-method.js';
import { lockedObservable } from './locked-observable.js';
import { isAsyncIterator, isObservableLike } from './return-kind.js';

const INTERCEPTORS = { promise: lockedPromise, observable: lockedObservable, iterable: lockedIterable };

/**
 * Wraps a method: each call finds the lock service of its instance, makes the lock names from its arguments, acquires, runs the
 * method in the scope of the lease, and releases.
 */
export function lockMethod(method: LockedMethod): Method {
  const intercept = INTERCEPTORS[method.kind];
  return {
    locked(this: Lockable, ...args: unknown[]) {
      return intercept(method, this, args);
    },
  }.locked;
}

async function lockedPromise(method: LockedMethod, instance: Lockable, args: readonly unknown[]): Promise<unknown> {
  const call = new LockedCall(method, instance, args);
  const lease = await call.acquire();
  if ('answer' in lease) return lease.answer;
  const result = await call.holdWhile(lease, () => call.run());
  if (isObservableLike(result) || isAsyncIterator(result)) throw wrongKind(method, result);
  return result;
}
