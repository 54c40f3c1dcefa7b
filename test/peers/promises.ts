/** The libraries, by the names of their packages. */
export const LIBRARIES = [
  'nestjs-redis-lock',
  'redlock',
  'redis-semaphore',
  'redlock-universal',
  'murlock',
  '@microfleet/ioredis-lock',
] as const;
export type Library = (typeof LIBRARIES)[number];

/** Those whose lease does not grow: murlock by design, ioredis-lock unless its user calls extend(). */
export const FIXED_LEASE: readonly Library[] = ['murlock', '@microfleet/ioredis-lock'];

/** Those that return from a release without an error only if they still held the lock. */
export const CONFIRMS_RELEASE: readonly Library[] = [
  'nestjs-redis-lock',
  'redlock',
  'murlock',
  '@microfleet/ioredis-lock',
];

export const FAULTS = [
  'holder killed',
  'holder stopped past its lease',
  'Redis restarted without its data',
  'replies lost',
  "the holder's link half-open past its lease",
  'SCRIPT FLUSH',
  'master killed under Sentinel',
  "Redis's clock set forward by 5 s",
  '150 waiters',
  'waiters that leave',
  'decorated method that returns an Observable',
  'body longer than the lease',
  'event loop blocked past its lease',
  'long garbage collection',
] as const;
export type Fault = (typeof FAULTS)[number];

const EVERYONE = new Map(LIBRARIES.map((library) => [library, '']));
const nobody = (why: string) => new Map(LIBRARIES.map((library) => [library, why]));

const TELLS_NOTHING = 'nothing tells a holder';
const FIXED = 'the lease is documented as fixed';
const UNDOCUMENTED = 'Observables are not mentioned';
const ON_FAILED_RENEWAL = 'a holder is documented to be told when a renewal has failed, not by when';

const WITHOUT_RENEWALS = new Map<Library, string>([
  ['nestjs-redis-lock', ''],
  ['redlock', ON_FAILED_RENEWAL],
  ['redis-semaphore', ON_FAILED_RENEWAL],
  ['redlock-universal', ON_FAILED_RENEWAL],
  ['murlock', TELLS_NOTHING],
  ['@microfleet/ioredis-lock', TELLS_NOTHING],
]);

/**
 * Where a library does not promise that only one caller holds the lock, and why, by its documentation. An empty text:
 * it promises that.
 */
export const NOT_PROMISED: Readonly<Record<Fault, ReadonlyMap<Library, string>>> = {
  'holder killed': EVERYONE,
  'holder stopped past its lease': WITHOUT_RENEWALS,
  'Redis restarted without its data': nobody('locks are lost with the data'),
  'replies lost': EVERYONE,
  "the holder's link half-open past its lease": new Map<Library, string>([
    ...EVERYONE,
    ['redlock', ON_FAILED_RENEWAL],
    ['redis-semaphore', ON_FAILED_RENEWAL],
    ['redlock-universal', ON_FAILED_RENEWAL],
  ]),
  'SCRIPT FLUSH': EVERYONE,
  'master killed under Sentinel': nobody('replication is asynchronous'),
  "Redis's clock set forward by 5 s": nobody('leases end by that clock'),
  '150 waiters': EVERYONE,
  'waiters that leave': EVERYONE,
  'decorated method that returns an Observable': new Map<Library, string>([
    ['nestjs-redis-lock', ''],
    ['redlock-universal', UNDOCUMENTED],
    ['murlock', UNDOCUMENTED],
  ]),
  'body longer than the lease': new Map<Library, string>([
    ...EVERYONE,
    ['murlock', FIXED],
    ['@microfleet/ioredis-lock', `${FIXED}, unless one extends it`],
  ]),
  'event loop blocked past its lease': WITHOUT_RENEWALS,
  'long garbage collection': WITHOUT_RENEWALS,
};

/** What a library does not have at all, and why. */
export function notOffered(library: Library, fault: Fault): string | undefined {
  if (fault === 'decorated method that returns an Observable' && !NOT_PROMISED[fault].has(library))
    return 'no decorator';
  if (fault === 'master killed under Sentinel' && library === 'murlock') return 'no Sentinel';
  return undefined;
}
