import { BadRequestException } from '@nestjs/common';
import type { BoardLock } from './board-snapshot.js';

/** Selects the locks that a viewer wants to see. */
export interface BoardQuery {
  /** A part of a name or an owner, or of an application, host or method that holds or waits. `''`: all locks. */
  readonly search: string;
  readonly sort: SortKey;
  readonly descending: boolean;
  /** From 1. */
  readonly page: number;
  /** The name of the lock that the viewer has opened. `''`: none. */
  readonly lock: string;
}

/**
 * The column by which locks are sorted. Times are shown as durations. Unknown values come last in both
 * orders.
 */
const SORT_VALUES = {
  name: ({ name }: BoardLock) => name,
  type: ({ type }: BoardLock) => type,
  holder: ({ owners: [first] }: BoardLock) =>
    first?.application ? `${first.application} ${first.host} ${first.pid}` : null,
  method: ({ owners: [first] }: BoardLock) => first?.method || null,
  since: ({ owners }: BoardLock) => (owners.length === 0 ? null : -Math.min(...owners.map(({ since }) => since))),
  lease: ({ leaseEnds }: BoardLock) => leaseEnds,
  token: ({ token }: BoardLock) => token,
  waiting: ({ waiting }: BoardLock) => waiting,
  // A wait of unknown length counts as a long one.
  wait: ({ waitsSince, waiting }: BoardLock) => (waitsSince === null ? (waiting > 0 ? -Infinity : null) : -waitsSince),
} satisfies Record<string, (lock: BoardLock) => string | number | null>;

type SortKey = keyof typeof SORT_VALUES;

const LONGEST_SEARCH = 200;

/** @throws BadRequestException that names the parameter */
export function parseBoardQuery(parameters: Readonly<Record<string, unknown>> = {}): BoardQuery {
  const { search = '', sort = 'wait', order = 'descending', page = '1', lock = '' } = parameters;
  if (typeof search !== 'string' || search.length > LONGEST_SEARCH)
    throw new BadRequestException(`search must be a text of at most ${LONGEST_SEARCH} characters`);
  if (typeof sort !== 'string' || !Object.hasOwn(SORT_VALUES, sort))
    throw new BadRequestException(`sort must be one of ${Object.keys(SORT_VALUES).join(', ')}`);
  if (order !== 'ascending' && order !== 'descending')
    throw new BadRequestException('order must be ascending or descending');
  if (typeof page !== 'string' || !/^[1-9]\d{0,5}$/.test(page))
    throw new BadRequestException('page must be a number from 1');
  if (typeof lock !== 'string') throw new BadRequestException('lock must be the name of one lock');
  return {
    search: search.trim().toLowerCase(),
    sort: sort as SortKey,
    descending: order === 'descending',
    page: Number(page),
    lock,
  };
}

/** These locks in the order of a query. */
export function sortLocks(locks: readonly BoardLock[], sort: SortKey, descending: boolean): readonly BoardLock[] {
  const value = SORT_VALUES[sort];
  const sign = descending ? -1 : 1;
  const keyed = locks.map((lock) => ({ lock, value: value(lock), since: SORT_VALUES.since(lock) ?? 0 }));
  keyed.sort(
    (one, other) =>
      compare(one.value, other.value, sign) || other.since - one.since || compare(one.lock.name, other.lock.name, 1),
  );
  return keyed.map(({ lock }) => lock);
}

/** The text that a search covers. */
export function textOf({ name, type, owners, waiters }: BoardLock): string {
  const places = [...owners, ...waiters].map(
    ({ application, host, pid, method }) => `${application} ${host} ${pid} ${method}`,
  );
  return [name, type, ...owners.map(({ owner }) => owner), ...places].join('\n').toLowerCase();
}

function compare(one: string | number | null, other: string | number | null, sign: number): number {
  if (one === other) return 0;
  if (one === null || other === null) return one === null ? 1 : -1;
  return one < other ? -sign : sign;
}
