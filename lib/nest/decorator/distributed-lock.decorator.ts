import type { Observable } from 'rxjs';
import type { Lockable } from '../lock-service-property.js';
import { compileLockedMethod, type LockedMethod } from './compile-locked-method.js';
import { decorateMethod } from './decorate-method.js';
import type { Anything, BusyAnswer, DistributedLockOptions, LockKey, Method } from './distributed-lock.options.js';
import { lockedPromise } from './locked-call.js';
import { lockedIterable, promiseOrRemedy } from './locked-iterable.js';
import { lockedObservable } from './locked-observable.js';

/**
 * Runs the method under a lock. At most one call with the same key runs at a time, in all processes that share the
 * Redis.
 *
 * ```ts
 * @DistributedLock('order:#<args[0]>')
 * async ship(orderId: string) { … }
 *
 * @DistributedLock({ key: 'report', onBusy: 'skip', holdAtLeast: '10s' })
 * @Cron('0 3 * * *')
 * async nightlyReport() { … }
 *
 * @DistributedLock((order: Order) => order.items.map((item) => `sku:${item.sku}`))
 * async reserve(order: Order) { … }
 * ```
 *
 * The method returns a promise, an Observable (locked from its subscription until it ends) or an AsyncIterable (locked
 * from the first `next()` until it is exhausted or closed). The decorator may be used on any method of a provider or
 * controller, above or below other decorators; on a handler it runs inside guards, interceptors and pipes. A call from
 * inside the method with the same key is re-entry. In the method, `currentLease()` has the fencing token, and a signal
 * that aborts when the lock is lost.
 *
 * A call fails with LockBusyError when the lock stays busy for `waitTime` (see `onBusy`), with LockLostError when the
 * lock was lost before the method ended (see `onLost`), with LockKeyError when no lock name can be made from the
 * arguments, and with LockUnavailableError when Redis does not answer. Errors of the method itself are passed on.
 *
 * `applyDecorators(DistributedLock(…), …)` works too, but does not check the type of the method.
 *
 * @throws LockConfigurationError when the class is defined, naming class, method and what is wrong
 * @publicApi
 */
// The compiler's first error about a mistyped option is about the first signature, and its return type is used then.
export function DistributedLock<
  Args extends readonly unknown[] = Anything[],
  OnBusy extends string = never,
  Key extends string = never,
>(
  keyOrOptions:
    | LockKey<Args, Key>
    | (DistributedLockOptions<Args> & {
        readonly key: LockKey<Args, Key>;
        readonly onBusy?: OnBusy | BusyAnswer<Args>;
      }),
): LockDecorator<Args, OnBusy extends 'skip' | 'newest' ? undefined : never, Key>;
export function DistributedLock<Args extends readonly unknown[]>(
  options: DistributedLockOptions<Args> & { readonly onBusy: 'skip' | 'newest' },
): LockDecorator<Args, undefined>;
export function DistributedLock<Args extends readonly unknown[]>(
  keyOrOptions: LockKey<Args> | DistributedLockOptions<Args>,
): LockDecorator<Args>;
export function DistributedLock<Args extends readonly unknown[] = Anything[]>(
  keyOrOptions: LockKey<Args> | DistributedLockOptions<Args>,
): LockDecorator<Args> {
  return decorateMethod('@DistributedLock', (target, propertyKey, original, where) => {
    const options = keyOrOptions as LockKey | DistributedLockOptions;
    const method = compileLockedMethod(target, propertyKey, original, options, where);
    return { serviceName: method.serviceName, wrapper: lockMethod(method) };
  }) as LockDecorator<Args>;
}

/**
 * A method decorator that accepts only methods that can be locked, and that can return `Answer` in place of their own
 * result.
 *
 * @publicApi
 */
export interface LockDecorator<Args extends readonly unknown[], Answer = never, Key extends string = never> {
  <M extends Method>(
    target: object,
    propertyKey: string | symbol,
    descriptor: TypedPropertyDescriptor<M> & CanBeLocked<M, Args, Answer> & HasParameters<M, Key>,
  ): void;

  // This type has two signatures. For such a type, the compiler replaces type parameters by `any`, so `applyDecorators`
  // accepts it as a MethodDecorator.
  /** @hidden */
  (): never;
}

/**
 * A locked call has to wait, so the method must return something asynchronous; a key function must take the method's
 * arguments; and with `onBusy: 'skip'` or `'newest'` the return type must include `undefined`.
 */
type CanBeLocked<M extends Method, Args extends readonly unknown[], Answer> =
  IsAny<M> extends true
    ? unknown
    : WaitingResult<ReturnType<M>> extends true
      ? ((...args: Args) => void) extends (...args: Parameters<M>) => void
        ? CanAnswer<ReturnType<M>, Answer> extends true
          ? unknown
          : { readonly "with onBusy: 'skip' or 'newest' a call can return undefined: say so in the return type": never }
        : { readonly 'a function among the options does not take the parameters of this method': never }
      : { readonly 'a method with @DistributedLock returns a Promise, an Observable or an AsyncIterable': never };

/** An iteration that is skipped is empty, whatever its type. */
type CanAnswer<R, Answer> =
  Promise<Awaited<R>> extends R
    ? [Answer] extends [Awaited<R>]
      ? true
      : false
    : R extends Observable<infer Item>
      ? [Answer] extends [Item]
        ? true
        : false
      : true;

/** The indexes of `args` in a template, as far as its text is known. */
type ArgumentsIn<Key extends string> = Key extends `${string}#<args[${infer Index}]${infer Rest}`
  ? Index | ArgumentsIn<Rest>
  : never;

/** A template may use only parameters that the method has. */
export type HasParameters<M extends Method, Key extends string> =
  IsAny<M> extends true
    ? unknown
    : number extends Parameters<M>['length']
      ? unknown
      : {
          readonly [Index in Exclude<
            ArgumentsIn<Key>,
            '*' | keyof Parameters<M>
          > as `the method has no parameter for #<args[${Index}]> of the key`]: never;
        };

export type IsAny<T> = 0 extends 1 & T ? true : false;

type WaitingResult<R> =
  Promise<Awaited<R>> extends R
    ? true
    : Observable<Anything> extends R
      ? true
      : AsyncGenerator<Anything, Anything, Anything> extends R
        ? true
        : false;

/** How the calls of a method are locked, by what it returns. */
const LOCKED = {
  promise: lockedPromise,
  observable: lockedObservable,
  iterable: lockedIterable,
  unknown: promiseOrRemedy,
};

/**
 * Wraps a method: each call finds the lock service of its instance, makes the lock names from its arguments, acquires,
 * runs the method in the scope of the lease, and releases.
 */
function lockMethod(method: LockedMethod): Method {
  const lockedCall = LOCKED[method.kind];
  return {
    locked(this: Lockable, ...args: unknown[]) {
      return lockedCall(method, this, args);
    },
  }.locked;
}
