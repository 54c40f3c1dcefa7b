import { Observable, Subject } from 'rxjs';
import { takeUntil } from 'rxjs/operators';
import { type LockScope, lockScopes } from '../../engine/scope/lock-scope.js';
import type { Lockable } from '../lock-service-property.js';
import type { LockedMethod } from './compile-locked-method.js';
import { wrongKind } from './distributed-lock.errors.js';
import { LockedCall } from './locked-call.js';
import { isObservableLike } from './return-kind.js';

/**
 * Acquires the lock for each subscription, and holds it until the method's Observable completes, fails or is
 * unsubscribed from. Unsubscribing before that also ends the wait for the lock.
 */
export function lockedObservable(
  method: LockedMethod,
  instance: Lockable,
  args: readonly unknown[],
): Observable<unknown> {
  return new Observable((subscriber) => {
    const wait = new AbortController();
    const unsubscribed = new Subject<void>();
    let scope: LockScope | undefined;

    const acquireAndRun = async () => {
      const call = new LockedCall(method, instance, args);
      const lease = await call.acquire(wait.signal);
      if ('answer' in lease) return forward(await lease.answer);
      return call.holdWhile(lease, () => run(call));
    };
    const run = async (call: LockedCall) => {
      if (subscriber.closed) return;
      scope = lockScopes.getStore();
      const source = await call.run();
      if (!isObservableLike(source)) throw wrongKind(method, source);
      await forward(source);
    };
    const forward = (source: unknown) =>
      new Promise<void>((complete, error) => {
        const next = (value: unknown) => subscriber.next(value);
        if (subscriber.closed) complete();
        else if (isObservableLike(source)) source.pipe(takeUntil(unsubscribed)).subscribe({ next, error, complete });
        else complete(next(source));
      });

    acquireAndRun().then(
      () => subscriber.complete(),
      (error) => subscriber.error(error),
    );
    return () => {
      wait.abort();
      lockScopes.run(scope, () => unsubscribed.next());
    };
  });
}
