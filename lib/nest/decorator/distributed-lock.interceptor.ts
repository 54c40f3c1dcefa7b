import { Observable, Subject } from 'rxjs';
import { takeUntil } from 'rxjs/operators';
import { LockBusyError } from '../../engine/errors.js';
import type { LockLease } from '../../engine/lease/lock-lease.js';
import { type LockScope, lockScopes } from '../../engine/scope/lock-scope.js';
import type { LockService } from '../../service/lock-service.js';
import type { Lockable } from '../lock-service-property.js';
import { noIteration, noLockService, wrongKind } from './distributed-lock.errors.js';
import type { Method } from './distributed-lock.options.js';
import type { LockedMethod } from './locked-method.js';
import { isAsyncIterable, isAsyncIterator, isObservableLike } from './return-kind.js';

/** What `onBusy` said, in place of a lease. */
interface Answered {
  readonly answer: unknown;
}

/**
 * The advice around a decorated method: find the lock service of the instance, make the names from the arguments, acquire, run the
 * method in the scope of the lease, release. Without a lock service nothing runs.
 */
export function lockMethod(method: LockedMethod): Method {
  const around = { promise: aroundPromise, observable: aroundObservable, iterable: aroundIterable }[method.kind];
  return {
    locked(this: Lockable, ...args: unknown[]) {
      return around(method, this, args);
    },
  }.locked;
}

async function aroundPromise(method: LockedMethod, instance: Lockable, args: unknown[]): Promise<unknown> {
  const locks = lockServiceOf(method, instance);
  const lease = await acquire(method, instance, args, locks);
  if ('answer' in lease) return lease.answer;
  const result: unknown = await locks.holdWhile(lease, () => method.body.apply(instance, args), method.hold);
  if (isObservableLike(result) || isAsyncIterator(result)) throw wrongKind(method, result);
  return result;
}

/** Acquires once for every subscription. Unsubscribing ends the wait, or the body. */
function aroundObservable(method: LockedMethod, instance: Lockable, args: unknown[]): Observable<unknown> {
  return new Observable((subscriber) => {
    const wait = new AbortController();
    const stop = new Subject<void>();
    let scope: LockScope | undefined;

    const run = async () => {
      const locks = lockServiceOf(method, instance);
      const lease = await acquire(method, instance, args, locks, wait.signal);
      if ('answer' in lease) return forward(await lease.answer);
      return locks.holdWhile(lease, body, method.hold);
    };
    const body = async () => {
      if (subscriber.closed) return;
      scope = lockScopes.getStore();
      const source: unknown = await method.body.apply(instance, args);
      if (!isObservableLike(source)) throw wrongKind(method, source);
      await forward(source);
    };
    const forward = (source: unknown) =>
      new Promise<void>((complete, error) => {
        const next = (value: unknown) => subscriber.next(value);
        if (subscriber.closed) complete();
        else if (isObservableLike(source)) source.pipe(takeUntil(stop)).subscribe({ next, error, complete });
        else complete(next(source));
      });

    run().then(
      () => subscriber.complete(),
      (error) => subscriber.error(error),
    );
    return () => {
      wait.abort();
      lockScopes.run(scope, () => stop.next());
    };
  });
}

/** Acquires at the first `next()`; an iteration that is closed before has acquired nothing. */
async function* aroundIterable(
  method: LockedMethod,
  instance: Lockable,
  args: unknown[],
): AsyncGenerator<unknown, unknown, unknown> {
  const locks = lockServiceOf(method, instance);
  const lease = await acquire(method, instance, args, locks);
  if ('answer' in lease) return yield* itemsOf(await lease.answer, method);

  const { scope, end, held } = await enter(locks, lease, method);
  try {
    const source: unknown = await lockScopes.run(scope, () => method.body.apply(instance, args));
    if (!isAsyncIterable(source)) throw wrongKind(method, source);
    return yield* runInScope(source, scope);
  } catch (error) {
    end(Promise.reject(error));
    throw error;
  } finally {
    end();
    await held;
  }
}

/** Answers in place of a lease when the lock is busy and `onBusy` has something to say. */
function acquire(
  method: LockedMethod,
  instance: Lockable,
  args: unknown[],
  locks: LockService,
  signal?: AbortSignal,
): Promise<LockLease | Answered> {
  const { onBusy, acquisition, name, where } = method;
  const names = method.namesOf({ instance, args, method: name });
  const lease = locks.engine.acquire(names, signal === undefined ? acquisition : { ...acquisition, signal }, where);
  if (onBusy === undefined) return lease;
  return lease.catch((error: unknown) => {
    if (!(error instanceof LockBusyError)) throw error;
    return { answer: onBusy.call(instance, error, ...args) };
  });
}

/** Starts a body that lasts until `end` is called. `held` settles with the release, by the rules for any body. */
async function enter(locks: LockService, lease: LockLease, method: LockedMethod) {
  let end!: (outcome?: Promise<never>) => void;
  let scope: LockScope | undefined;
  let held!: Promise<void>;
  await new Promise<void>((entered, failed) => {
    const body = () => {
      scope = lockScopes.getStore();
      entered();
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    };
    held = locks.holdWhile(lease, body, method.hold);
    held.catch(failed); // after `entered` it is heard of where the iteration ends
  });
  return { scope, end, held };
}

/** An iterator whose every step runs in the scope of the lease, whoever asks for it. */
function runInScope(
  source: AsyncIterable<unknown>,
  scope: LockScope | undefined,
): AsyncIterableIterator<unknown, unknown, unknown> {
  const iterator = lockScopes.run(scope, () => source[Symbol.asyncIterator]());
  const step = (name: 'next' | 'return' | 'throw') =>
    iterator[name] && ((value?: unknown) => lockScopes.run(scope, () => iterator[name]!(value)));
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: step('next')!,
    return: step('return'),
    throw: step('throw'),
  };
}

/** What `onBusy` answered in place of an iteration. */
async function* itemsOf(answer: unknown, method: LockedMethod): AsyncGenerator<unknown, unknown, unknown> {
  if (answer === undefined) return undefined;
  const iterable =
    typeof answer === 'object' && answer !== null && (Symbol.iterator in answer || Symbol.asyncIterator in answer);
  if (!iterable) throw noIteration(method);
  return yield* answer as AsyncIterable<unknown>;
}

function lockServiceOf(method: LockedMethod, instance: Lockable | undefined): LockService {
  const locks = instance?.[method.service];
  if (locks === undefined) throw noLockService(method, instance);
  return locks;
}
