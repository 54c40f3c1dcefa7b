import { isAsyncIterable } from '../../engine/scope/body-result.js';
import { type LockScope, lockScopes } from '../../engine/scope/lock-scope.js';
import type { Lease } from '../../engine/terms/lease.js';
import type { Lockable } from '../lock-service-property.js';
import type { LockedMethod } from './compile-locked-method.js';
import { hiddenIteration, noIteration, wrongKind } from './distributed-lock.errors.js';
import { LockedCall, lockedPromise } from './locked-call.js';

/**
 * Acquires the lock at the first `next()`, and holds it until the method's iteration is exhausted or closed. An
 * iteration that is closed before its first `next()` acquires nothing. One that is closed while it waits for the lock
 * stops waiting, and its method never runs.
 */
export function lockedIterable(
  method: LockedMethod,
  instance: Lockable,
  args: readonly unknown[],
): AsyncGenerator<unknown, unknown, unknown> {
  const wait = new AbortController();
  const iteration = lockedSteps(method, instance, args, wait.signal);
  // A generator starts on `return()` and `throw()` only when it has answered `next()`, which waits for the lock.
  const leave = (name: 'return' | 'throw') => {
    const end = iteration[name];
    iteration[name] = (value?: unknown) => {
      wait.abort();
      return end.call(iteration, value);
    };
  };
  leave('return');
  leave('throw');
  return iteration;
}

/**
 * Locks a call of a method that is taken for one that returns a promise, because nothing says what it returns. If it is
 * an async generator, its callers do not await the promise. `for await` over it throws the remedy, and the rejection,
 * which nobody else handles, does not end the process.
 */
export function promiseOrRemedy(method: LockedMethod, instance: Lockable, args: readonly unknown[]): Promise<unknown> {
  const promise = lockedPromise(method, instance, args);
  const value = () => {
    promise.catch(() => {});
    throw hiddenIteration(method);
  };
  return Object.defineProperty(promise, Symbol.asyncIterator, { value });
}

/** @param left aborts when the consumer has left the iteration */
async function* lockedSteps(
  method: LockedMethod,
  instance: Lockable,
  args: readonly unknown[],
  left: AbortSignal,
): AsyncGenerator<unknown, unknown, unknown> {
  const call = new LockedCall(method, instance, args);
  const lease = await call.acquire(left).catch((error: unknown) => {
    if (!left.aborted) throw error;
  });
  if (lease === undefined) return undefined;
  if ('answer' in lease) return yield* answeredItems(await lease.answer, method);
  if (left.aborted) return call.holdWhile(lease, () => undefined); // granted at the moment when the consumer left

  const { scope, end, released } = await openScope(call, lease);
  try {
    const source = await lockScopes.run(scope, () => call.run());
    if (!isAsyncIterable(source)) throw wrongKind(method, source);
    return yield* stepsInScope(source, scope);
  } catch (error) {
    end(Promise.reject(error));
    throw error;
  } finally {
    end();
    await released;
  }
}

/**
 * Opens a scope of the lease that lasts until `end` is called. `released` settles like the call of any locked method.
 */
async function openScope(call: LockedCall, lease: Lease) {
  let end!: (outcome?: Promise<never>) => void;
  let scope: LockScope | undefined;
  let released!: Promise<void>;
  await new Promise<void>((opened, failed) => {
    const body = () => {
      scope = lockScopes.getStore();
      opened();
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    };
    released = call.holdWhile(lease, body);
    released.catch(failed); // once the scope is open, a failure is reported where the iteration ends
  });
  return { scope, end, released };
}

/** Runs every step of an iteration in the scope of the lease, whatever code requests the step. */
function stepsInScope(
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

/** The items that `onBusy` returned instead of the iteration. */
async function* answeredItems(answer: unknown, method: LockedMethod): AsyncGenerator<unknown, unknown, unknown> {
  if (answer === undefined) return undefined;
  const iterable =
    typeof answer === 'object' && answer !== null && (Symbol.iterator in answer || Symbol.asyncIterator in answer);
  if (!iterable) throw noIteration(method);
  return yield* answer as AsyncIterable<unknown>;
}
