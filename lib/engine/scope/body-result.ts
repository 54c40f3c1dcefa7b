import { LockConfigurationError } from '../errors.js';
import { callSite } from '../events/call-site.js';
import type { EventHub } from '../events/event-hub.js';

/** A body that has returned, as messages name it. */
export interface EndedBody {
  /** `withLock() of 'order:42'`, or `OrdersService.ship` */
  readonly what: string;
  /** Whether it is a method with `@DistributedLock`, which can also hold the lock until its result has ended. */
  readonly isMethod?: boolean;
  readonly body: unknown;
}

/**
 * Every body that runs in a lock is held to this rule. What it returns may be work that has yet to run, and that would
 * run without the lock.
 *
 * - An Observable and a generator are refused, because nothing of them has run.
 * - Another object with an async iterator and `next`, such as a cursor, is warned of, once for each call site.
 * - Everything else is allowed: Subjects, streams, whatever merely has `subscribe`, and anything inside of another
 *   object.
 *
 * @throws LockConfigurationError with the remedy
 */
export function checkResult(result: unknown, ended: EndedBody, events: Pick<EventHub, 'warnOnce'>): void {
  if (typeof result !== 'object' || result === null) return;
  if (isObservable(result) && !('next' in result)) throw notRun(ended, 'an Observable', 'observable');
  const tag = Object.prototype.toString.call(result);
  if (tag === '[object AsyncGenerator]') throw notRun(ended, 'an async generator', 'iterable');
  if (tag === '[object Generator]') throw notRun(ended, 'a generator');
  if (isAsyncIterable(result) && typeof (result as { next?: unknown }).next === 'function') warnOfCursor(ended, events);
}

/** Whether it is an Observable, of any copy of RxJS. */
export function isObservable(value: unknown): boolean {
  const { subscribe, lift } = (value ?? {}) as { subscribe?: unknown; lift?: unknown };
  return typeof subscribe === 'function' && typeof lift === 'function';
}

export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof (value as AsyncIterable<unknown> | null | undefined)?.[Symbol.asyncIterator] === 'function';
}

/** @param returns the option of `@DistributedLock` that holds the lock until such a result has ended */
function notRun({ what, isMethod }: EndedBody, result: string, returns?: string): LockConfigurationError {
  const inside = returns === 'observable' ? 'await it inside, with lastValueFrom() of rxjs' : 'read it inside';
  const method = ', or return it from a method with @DistributedLock, which is locked until it ends';
  const remedy = returns !== undefined && isMethod ? `set returns: '${returns}'` : inside + (returns ? method : '');
  return new LockConfigurationError(
    `${what} returned ${result}, of which nothing has run yet, so it would run without the lock: ${remedy}`,
  );
}

function warnOfCursor({ what, isMethod, body }: EndedBody, events: Pick<EventHub, 'warnOnce'>): void {
  const site = isMethod ? undefined : callSite();
  const where = site === undefined ? '' : `, called at ${site},`;
  const instead = isMethod ? ", or set returns: 'iterable'" : '';
  events.warnOnce(
    `an iterator of ${isMethod ? what : (site ?? String(body))}`,
    `${what}${where} returned an iterator, such as a cursor, which is read without the lock. Read it inside${instead}. This is logged once for each place`,
  );
}
