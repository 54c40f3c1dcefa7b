import { LockAbortedError, LockBusyError, LockConfigurationError, LockKeyError } from '../../engine/errors.js';
import type { Lease } from '../../engine/terms/lease.js';
import type { LockNames } from '../../engine/terms/lock-name.js';
import { type AcquisitionTerms, toPermits } from '../../engine/terms/lock-options.js';
import { describeValue } from '../../engine/terms/option-table.js';
import { IS_LOCK_SERVICE, type LockService } from '../../service/lock-service.js';
import type { Lockable } from '../lock-service-property.js';
import { adaptMock } from './adapt-mock.js';
import type { DecoratedMethod, LockedMethod } from './compile-locked-method.js';
import { noLockService } from './distributed-lock.errors.js';
import { warnOfUnreadStream } from './unread-stream.js';

/** The answer of `onBusy`, instead of a lease. */
export interface BusyResult {
  readonly answer: unknown;
}

/** One call of a decorated method, and its lock service. */
export class LockedCall {
  private readonly locks: LockService;

  /** @throws LockConfigurationError when the instance has no lock service: the method does not run without its lock */
  constructor(
    readonly method: LockedMethod,
    private readonly instance: Lockable,
    private readonly args: readonly unknown[],
  ) {
    const locks = serviceOf(method, instance);
    this.locks = locks[IS_LOCK_SERVICE] === true ? locks : adaptMock(locks, method.where);
  }

  /**
   * Acquires the lock for the arguments. If it stays busy, `onBusy` may provide the result instead.
   *
   * @param left aborts when nobody wants the result any more
   */
  acquire(left?: AbortSignal): Promise<Lease | BusyResult> {
    const { method, instance, args, locks } = this;
    const { onBusy, where } = method;
    let names: LockNames;
    try {
      names = method.namesOf({ instance, args, method: method.name });
    } catch (error) {
      return refuseUnnamed(error, locks, method);
    }
    const terms = termsOf(method, locks, instance, args);
    const signal = signalOf(method, instance, args, left);
    const lease = locks.acquireUnder(names, signal === undefined ? terms : { ...terms, signal }, where);
    if (onBusy === undefined) return lease;
    return lease.catch((error: unknown) => {
      const busy = asBusy(error);
      if (busy === undefined) throw error;
      return { answer: onBusy.call(instance, busy, ...args) };
    });
  }

  /** Runs `body` in the scope of `lease`, then releases the lease. */
  holdWhile<T>(lease: Lease, body: () => T | Promise<T>): Promise<T> {
    return this.locks.holdWhile(lease, body, this.method.holdOptions);
  }

  /** Warns, once for this method, if the result is a stream, which nobody has read when the lock is released. */
  check(result: unknown): void {
    warnOfUnreadStream(result, this.method.where, this.locks);
  }

  /** Runs the method itself. */
  run(): unknown {
    return this.method.body.apply(this.instance, this.args as unknown[]);
  }
}

/** What `onBusy` answers: that the lock is busy, or that the shutdown has ended the wait for it. */
function asBusy(error: unknown): LockBusyError | undefined {
  if (error instanceof LockBusyError) return error;
  if (!(error instanceof LockAbortedError) || !error.byShutdown) return undefined;
  return new LockBusyError(error.message, error.lockName, -1, undefined, false, undefined, { cause: error });
}

/**
 * The terms of a call.
 *
 * @throws LockConfigurationError when the option `permits` returned no valid number
 */
function termsOf(
  method: LockedMethod,
  locks: LockService,
  instance: Lockable,
  args: readonly unknown[],
): AcquisitionTerms {
  const { permitsOf, where } = method;
  const terms = method.termsIn(locks);
  if (permitsOf === undefined) return terms;
  return {
    ...terms,
    permits: toPermits(permitsOf.apply(instance, args as unknown[]), undefined, where),
  };
}

/**
 * Refuses a call for which no name could be made. A warning, once for each method, says so: the template may be wrong, and
 * the client of the application learns only that its request is.
 */
export function refuseUnnamed(
  error: unknown,
  locks: LockService,
  { termsIn, where }: Pick<LockedMethod, 'termsIn' | 'where'>,
): Promise<never> {
  if (!(error instanceof LockKeyError) || locks[IS_LOCK_SERVICE] !== true) return Promise.reject(error);
  locks.warnOnce(
    `the key of ${where}`,
    `${error.message}. The method did not run. Is the key right, and does every caller send this value? This is logged once for a method; the event 'failed' reports each call`,
  );
  return locks.refuse(error, termsIn(locks));
}

/**
 * The signal that ends the wait of a call: that of the option `signal`, or `left`.
 *
 * @throws LockConfigurationError when the option returned something else
 */
export function signalOf(
  { signal: option, where }: DecoratedMethod,
  instance: Lockable,
  args: readonly unknown[],
  left?: AbortSignal,
): AbortSignal | undefined {
  const signal: AbortSignal | null | undefined = option?.apply(instance, args as unknown[]);
  if (signal === undefined || signal === null) return left;
  if (typeof signal.addEventListener !== 'function')
    throw new LockConfigurationError(
      `${where}: signal returned ${describeValue(signal)}; it must return an AbortSignal, or undefined`,
    );
  return left === undefined ? signal : AbortSignal.any([signal, left]);
}

/** @throws LockConfigurationError when the instance has no lock service */
export function serviceOf(method: DecoratedMethod, instance: Lockable | undefined): LockService {
  const locks = instance?.[method.service];
  if (locks === undefined) throw noLockService(method, instance);
  return locks;
}

/** Locks a call of a method that returns a promise. */
export async function lockedPromise(
  method: LockedMethod,
  instance: Lockable,
  args: readonly unknown[],
): Promise<unknown> {
  const call = new LockedCall(method, instance, args);
  const lease = await call.acquire();
  if ('answer' in lease) return lease.answer;
  const result = await call.holdWhile(lease, () => call.run());
  call.check(result);
  return result;
}
