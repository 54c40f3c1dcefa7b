import type { LockType } from '../../backends/lock-backend.js';
import type { Duration } from '../../engine/duration.js';
import type { LockBusyError } from '../../engine/errors.js';

// The one place where a type has to say "whatever the user's method looks like".
// biome-ignore lint/suspicious/noExplicitAny: see above
export type Anything = any;

export type Method = (...args: Anything[]) => Anything;

/**
 * What the lock's name is made of:
 *
 * - a template: literal text and `#<path>`, a path from `args`, `this`, `class` (the name of the instance's class) or `method`:
 *   `'order:#<args[0].id>'`. `[*]` gives a name for each element: `'sku:#<args[0].items[*].sku>'`. What is filled in is
 *   percent-encoded in `%`, `:`, `{`, `}` and control characters. Placeholders of other notations (`#{…}`, `${…}`, `{{…}}`, `#orderId`,
 *   `$id`, `/:id`, `{0}`, `%s`) stop the start, because they would be one lock for all calls; a key function can return such text.
 *   `#<class>` changes when a minifier renames classes: replicas of different builds would then have different locks;
 * - a function of the method's arguments (its `this` is the instance) that returns one name, or several;
 * - a list of templates.
 *
 * Of several names, all are locked or none.
 *
 * @publicApi
 */
export type LockKey<Args extends readonly unknown[] = Anything[]> = string | readonly string[] | KeyFunction<Args>;

/** @publicApi */
export type KeyFunction<Args extends readonly unknown[] = Anything[]> = (...args: Args) => string | readonly string[];

/** Answers in place of the method; gets the error and the method's arguments. `this` is the instance. @publicApi */
export type BusyAnswer<Args extends readonly unknown[] = Anything[]> = (busy: LockBusyError, ...args: Args) => unknown;

/** What a decorated method gives back. @publicApi */
export type ReturnKind = 'promise' | 'observable' | 'iterable';

/** Options of `@DistributedLock`. Durations are milliseconds, or strings such as `'30s'`. @publicApi */
export interface DistributedLockOptions<Args extends readonly unknown[] = Anything[]> {
  readonly key: LockKey<Args>;
  /**
   * How long to wait while somebody else holds the lock, at most 2³¹ − 1 ms (24 days), or `Infinity`: for ever. Default: the module's;
   * 0 where `onBusy` is `'skip'` or an answer.
   */
  readonly waitTime?: Duration;
  /** A fixed lease, from 100 ms to 10 years, which is not renewed. Default: the lock is kept, and renewed, for as long as the method runs. */
  readonly leaseTime?: Duration;
  /** Default `'reentrant'`. */
  readonly type?: LockType;
  /** Name of the RedisLockModule to use. Default: the one without a name. */
  readonly service?: string;
  /**
   * What happens when the lock stays busy for `waitTime`: `'throw'` LockBusyError (default); `'skip'`: the method does not run, and
   * the call gives `undefined` (an Observable emits it, an iteration is empty); a function, or the name of another method of
   * the class, that answers instead. A LockBusyError that the method itself throws is not meant by it.
   */
  readonly onBusy?: 'throw' | 'skip' | (string & {}) | BusyAnswer<Args>;
  /**
   * Keeps the lock for at least so long, although the method ended earlier: hosts whose clocks differ start the same cron job
   * a little apart. At most 10 years. Default: not.
   */
  readonly holdAtLeast?: Duration;
  /** What a lease lost while the method ran does to its result: `'throw'` LockLostError, or `'warn'`. Default: the module's. */
  readonly onLost?: 'throw' | 'warn';
  /**
   * Whether the method gives a promise, an Observable or an AsyncIterable. Known by itself for `async` and `async *` methods, and
   * for a declared return type `Observable` (with `emitDecoratorMetadata`, and where it is not imported by `import type`);
   * elsewhere a promise is assumed. esbuild (tsx, Vite, vitest) emits no such metadata: give `returns: 'observable'` there.
   */
  readonly returns?: ReturnKind;
}
