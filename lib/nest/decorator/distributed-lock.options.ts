import type { LockType } from '../../backends/lock-backend.js';
import type { LockBusyError } from '../../engine/errors.js';
import type { Duration } from '../../engine/terms/duration.js';
import type { ReleaseMode } from '../../engine/terms/lock-options.js';

// The one place where a type has to accept any method of the user.
// biome-ignore lint/suspicious/noExplicitAny: see above
export type Anything = any;

export type Method = (...args: Anything[]) => Anything;

/**
 * How the lock's name is built:
 *
 * - a template: literal text and `#<path>`. A path begins with `args`, `this`, `class` (the name of the instance's
 *   class) or `method`: `'order:#<args[0].id>'`. `[*]` makes a name for each element: `'sku:#<args[0].items[*].sku>'`.
 *   In values that are filled in, `%`, `:`, `{`, `}` and control characters are percent-encoded. A placeholder of
 *   another notation (`#{…}`, `${…}`, `{{…}}`, `#orderId`, `$id`, `/:id`, `{0}`, `%s`) is an error when the class is
 *   defined, because all calls would share one lock. A key function can return such text. `#<class>` changes when a
 *   minifier renames classes, so replicas of different builds would use different locks. In a class from `mixin()` of
 *   NestJS, whose name is random, it is the name in the source, or that of the class that it extends;
 * - a function of the method's arguments that returns one name, or several;
 * - a list of templates.
 *
 * If there are several names, either all of them are locked or none.
 *
 * @publicApi
 */
export type LockKey<Args extends readonly unknown[] = Anything[], Template extends string = string> =
  | Template
  | readonly Template[]
  | KeyFunction<Args>;

/** Returns the lock's name, or several names, for the arguments of the method. `this` is the instance. @publicApi */
export type KeyFunction<Args extends readonly unknown[] = Anything[]> = (...args: Args) => string | readonly string[];

/**
 * Provides the result instead of the method. It gets the error and the method's arguments; `this` is the instance.
 * @publicApi
 */
export type BusyAnswer<Args extends readonly unknown[] = Anything[]> = (busy: LockBusyError, ...args: Args) => unknown;

/** Returns the signal that ends the wait of this call, or `undefined` for none. `this` is the instance. @publicApi */
export type SignalFunction<Args extends readonly unknown[] = Anything[]> = (...args: Args) => AbortSignal | undefined;

/** Returns how many may hold the lock that this call wants. `this` is the instance. @publicApi */
export type PermitsFunction<Args extends readonly unknown[] = Anything[]> = (...args: Args) => number;

/** What a decorated method returns. @publicApi */
export type ReturnKind = 'promise' | 'observable' | 'iterable';

/** Options of `@DistributedLock`. Durations are milliseconds, or strings such as `'30s'`. @publicApi */
export interface DistributedLockOptions<Args extends readonly unknown[] = Anything[]> {
  /**
   * How the lock's name is built: a template such as `'order:#<args[0].id>'`, a list of templates, or a function of the
   * method's arguments that returns one name or several. If a value is missing, the call fails with LockKeyError, and
   * nothing is locked.
   */
  readonly key: LockKey<Args>;
  /**
   * How long to wait while somebody else holds the lock, at most 2³¹ − 1 ms (24 days), or `Infinity` to wait forever.
   * Default: the module's `waitTime`, or 0 if `onBusy` is neither `'throw'` nor `'newest'`.
   */
  readonly waitTime?: Duration;
  /**
   * A function of the method's arguments that returns an AbortSignal. When it aborts, the call stops waiting for the
   * lock and fails with LockAbortedError, and the method does not run: for a client that has gone, see
   * docs/integrations.md. It does not affect a method that has begun. Default: none.
   */
  readonly signal?: SignalFunction<Args>;
  /**
   * How long to wait while Redis does not answer, or `Infinity`. Then the call fails with LockUnavailableError.
   * Default: the module's `outageTimeout`.
   */
  readonly outageTimeout?: Duration;
  /**
   * A fixed lease, from 100 ms to 10 years, which is not renewed. Default: the lock is held for as long as the method
   * runs.
   */
  readonly leaseTime?: Duration;
  /** `'reentrant'` (default), `'fair'`, `'read'`, `'write'` or `'fenced'`: see {@link LockType}. */
  readonly type?: LockType;
  /**
   * How many calls with the same key may run at a time, in all processes: a whole number from 1 to 1,000, or a function of
   * the method's arguments that returns it. The number is not stored: each call compares its own with those that run. It
   * cannot be combined with `type` or with several names. See `LockOptions.permits`. Default: one call at a time.
   *
   * ```ts
   * @DistributedLock({ key: 'export:#<args[0].id>', permits: (tenant: Tenant) => (tenant.plan === 'pro' ? 10 : 3) })
   * ```
   */
  readonly permits?: number | PermitsFunction<Args>;
  /** Name of the RedisLockModule to use. Default: the one without a name. */
  readonly service?: string;
  /**
   * What happens when the lock stays busy for `waitTime`. `'throw'` (default): LockBusyError. `'skip'`: the method does
   * not run, and the call returns `undefined` (an Observable emits it, an iteration is empty). A function, or the name
   * of another method of the class: it provides the result instead. It also answers a call that a shutdown refuses; the
   * `cause` of its error is then LockAbortedError. It does not apply to a LockBusyError that the method itself throws.
   *
   * `'newest'`: the call waits, but only until a later call comes, from any process. That one takes its place, and this
   * call returns `undefined`, as with `'skip'`. So one call runs, one waits, and the last one runs, unless its process
   * dies, or is shut down and its `shutdownTimeout` ends. `currentLease().superseded` is how many calls it stands for. If
   * `waitTime` ends first, the call fails with LockBusyError. See `LockOptions.newest`.
   */
  readonly onBusy?: 'throw' | 'skip' | 'newest' | BusyAnswer<Args>;
  /**
   * Keeps the lock for at least this long, even if the method ends earlier. Use it for cron jobs, because hosts whose
   * clocks differ do not start the same job at the same moment. With re-entry, the outer lease keeps the lock for at
   * least that long. At most 10 years. Default: 0.
   */
  readonly holdAtLeast?: Duration;
  /**
   * How long the method may hold the lock, at most 24 days. After that time, the `signal` of `currentLease()` aborts
   * with LockAbortedError, and the lock is no longer renewed: it ends with its lease, or when the method ends. See
   * `LockOptions.holdAtMost`. Default: no limit.
   */
  readonly holdAtMost?: Duration;
  /**
   * What happens if the lock was lost while the method ran. `'throw'`: the call fails with LockLostError. `'warn'`: a
   * warning is logged, and the call returns the result. Default: the module's.
   */
  readonly onLost?: 'throw' | 'warn';
  /**
   * When the call settles. `'confirmed'` waits until Redis has answered the release. `'background'` settles when the
   * method has ended, a round trip earlier, and cannot be combined with an explicit `onLost: 'throw'`. Default: the
   * module's. See `LockOptions.release`.
   */
  readonly release?: ReleaseMode;
  /**
   * Whether a call from inside the same lock enters it again. With `false`, such a call waits like any other. Use it
   * for methods that queues and events start: see `LockOptions.reentry`. Default: the module's.
   */
  readonly reentry?: boolean;
  /**
   * Whether the method returns a promise, an Observable or an AsyncIterable. It is detected for `async` and `async *`
   * methods, and for the declared return type `Observable` (with `emitDecoratorMetadata`, unless it is imported with
   * `import type`). Otherwise a promise is assumed. esbuild (tsx, Vite, Vitest) emits no such metadata: set
   * `returns: 'observable'` there.
   */
  readonly returns?: ReturnKind;
}
