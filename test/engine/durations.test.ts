import { LockConfigurationError } from '../../lib/engine/errors.js';
import { DistributedLock } from '../../lib/nest/decorator/distributed-lock.decorator.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import type { LockService } from '../../lib/service/lock-service.js';
import type { RedisLockOptions } from '../../lib/service/redis-lock-options.js';
import { ms, NOTHING, nothingIsLeft, openWorld } from '../support/lock-world.js';
import { errorOf } from '../support/section.js';

const LONGEST_WAIT = 2 ** 31 - 1;
/** Ten years in milliseconds, as `'10y'` is parsed. */
const LONGEST_LEASE = 10 * 365.25 * 24 * 60 * 60 * 1_000;

type Take = (locks: LockService, bad: never) => unknown;

const decorate = (options: object) => {
  DistributedLock({ key: 'order', ...options } as never)({}, 'ship', { value: async () => {} } as never);
};
const configure = (options: Partial<RedisLockOptions>) => {
  const connection = () => {
    throw new Error('Redis was asked');
  };
  createLockService({ connection, ...options });
};
const ID = '0'.repeat(32);

const WAITS: [string, Take][] = [
  ['waitTime of acquire()', (locks, waitTime) => locks.acquire('a', { waitTime })],
  ['waitTime of acquire() of several', (locks, waitTime) => locks.acquire(['a', 'b'], { waitTime })],
  ['waitTime of tryAcquire()', (locks, waitTime) => locks.tryAcquire('a', { waitTime })],
  ['waitTime of withLock()', (locks, waitTime) => locks.withLock('a', { waitTime }, async () => {})],
  ['waitTime of a fair lock', (locks, waitTime) => locks.acquire('a', { waitTime, type: 'fair' })],
  ['tryLock()', (locks, bad) => locks.getLock('a').tryLock(bad)],
  ['tryLock() of a fenced lock', (locks, bad) => locks.getFencedLock('a').tryLock(bad)],
  ['tryLock() of a write lock', (locks, bad) => locks.getReadWriteLock('a').writeLock().tryLock(bad)],
  [
    'tryLock() of a multi-lock',
    (locks, bad) => locks.getMultiLock(locks.getLock('a'), locks.getFairLock('b')).tryLock(bad),
  ],
  ['tryLock() of a red lock', (locks, bad) => locks.getRedLock(locks.getLock('a'), locks.getLock('b')).tryLock(bad)],
  ['tryAcquire() of a semaphore', (locks, bad) => locks.getSemaphore('s').tryAcquire(1, bad)],
  ['tryAcquire() of permits with ids', (locks, bad) => locks.getPermitExpirableSemaphore('s').tryAcquire(bad)],
  ['tryAcquireMany()', (locks, bad) => locks.getPermitExpirableSemaphore('s').tryAcquireMany(2, bad)],
  ['await() of a latch', (locks, bad) => locks.getCountDownLatch('l').await(bad)],
  ['waitTime of the decorator', (_, waitTime) => decorate({ waitTime })],
  ['waitTime of the module', (_, waitTime) => configure({ waitTime })],
];

const LEASES: [string, Take][] = [
  ['leaseTime of acquire()', (locks, leaseTime) => locks.acquire('a', { leaseTime })],
  ['leaseTime of acquire() of several', (locks, leaseTime) => locks.acquire(['a', 'b'], { leaseTime })],
  ['leaseTime of tryAcquire()', (locks, leaseTime) => locks.tryAcquire('a', { leaseTime })],
  ['leaseTime of withLock()', (locks, leaseTime) => locks.withLock('a', { leaseTime }, async () => {})],
  ['lock()', (locks, bad) => locks.getLock('a').lock(bad)],
  ['tryLock()', (locks, bad) => locks.getLock('a').tryLock(0, bad)],
  ['lock() of a fenced lock', (locks, bad) => locks.getFencedLock('a').lock(bad)],
  ['lock() of a read lock', (locks, bad) => locks.getReadWriteLock('a').readLock().lock(bad)],
  ['lock() of a multi-lock', (locks, bad) => locks.getMultiLock(locks.getLock('a'), locks.getFairLock('b')).lock(bad)],
  ['lock() of a red lock', (locks, bad) => locks.getRedLock(locks.getLock('a'), locks.getLock('b')).lock(bad)],
  ['acquire() of permits with ids', (locks, bad) => locks.getPermitExpirableSemaphore('s').acquire(bad)],
  ['acquireMany()', (locks, bad) => locks.getPermitExpirableSemaphore('s').acquireMany(2, bad)],
  ['tryAcquire() of permits with ids', (locks, bad) => locks.getPermitExpirableSemaphore('s').tryAcquire(0, bad)],
  ['updateLeaseTime()', (locks, bad) => locks.getPermitExpirableSemaphore('s').updateLeaseTime(ID, bad)],
  ['leaseTime of the decorator', (_, leaseTime) => decorate({ leaseTime })],
  ['holdAtLeast of the decorator', (_, holdAtLeast) => decorate({ holdAtLeast })],
  ['watchdogTimeout of the module', (_, watchdogTimeout) => configure({ watchdogTimeout })],
];

const TIMEOUTS: [string, Take][] = [
  ['waiterTimeout', (_, waiterTimeout) => configure({ waiterTimeout })],
  ['shutdownTimeout', (_, shutdownTimeout) => configure({ shutdownTimeout })],
  ['commandTimeout', (_, commandTimeout) => configure({ commandTimeout })],
];

const beyond = (most: number) => [most + 1, 1e19, Number.MAX_VALUE, '1000000000y', `${most + 1}`];
const NO_DURATIONS = [-1, Number.NaN, 'soon', '', null, {}, 1n];
/** There, null stands for the default, as in NestJS's own modules. */
const isDefault = (place: string, bad: unknown) => bad === null && place.endsWith(' of the module');

describe('durations', () => {
  const world = openWorld('memory');

  const refuses = async (take: Take, bad: unknown) => {
    const process = await world.process();
    const watched = process.backend.synchronizerRequests;
    const error = await errorOf((async () => take(process.locks, bad as never))());
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect([process.backend.count(), watched.commands]).toEqual([0, []]);
    expect(process.runtime.timers).toBe(NOTHING.timers);
    return error.message;
  };

  it.each(WAITS)('%s: one longer than a timer can be is refused, before the backend is asked', async (_, take) => {
    for (const bad of beyond(LONGEST_WAIT))
      expect(await refuses(take, bad)).toContain('it must be at most 2147483647 ms (24 days)');
  });

  it.each(LEASES)('%s: one longer than 10 years is refused, before the backend is asked', async (_, take) => {
    for (const bad of beyond(LONGEST_LEASE))
      expect(await refuses(take, bad)).toContain('it must be at most 315576000000 ms (10 years)');
    expect(await refuses(take, Number.POSITIVE_INFINITY)).toContain('it must be finite');
  });

  it.each(TIMEOUTS)('%s of the module: one longer than a timer can be is refused', async (option, take) => {
    for (const bad of beyond(LONGEST_WAIT)) {
      const message = await refuses(take, bad);
      expect(message).toContain(option);
      expect(message).toContain('it must be at most 2147483647 ms (24 days)');
    }
    expect(await refuses(take, Number.POSITIVE_INFINITY)).toContain('it must be finite');
  });

  it.each([...WAITS, ...LEASES])('%s: what is not a duration is refused', async (place, take) => {
    for (const bad of NO_DURATIONS) if (!isDefault(place, bad)) await refuses(take, bad);
  });

  it('an extension longer than 10 years is refused, and the lease stays as it was', async () => {
    const { locks, backend } = await world.process({ watchdogTimeout: ms(30_000) });
    const lease = await locks.acquire('a');
    for (const bad of [...beyond(LONGEST_LEASE), Number.POSITIVE_INFINITY])
      expect(await errorOf(lease.extend(bad as never))).toBeInstanceOf(LockConfigurationError);
    expect(backend.count()).toBe(1);
    expect(lease.remainingTime()).toBeLessThanOrEqual(30_000);
    await lease.extend(LONGEST_LEASE);
    expect(lease.remainingTime()).toBeGreaterThan(LONGEST_LEASE * 0.9);
    await lease.release();
  });

  it('the longest ones work, and Infinity means to wait forever', async () => {
    const process = await world.process();
    const { locks } = process;
    const held = await locks.acquire('a', { leaseTime: LONGEST_LEASE });
    expect(held.remainingTime()).toBeGreaterThan(LONGEST_LEASE * 0.9);
    const waiting = [LONGEST_WAIT, Number.POSITIVE_INFINITY].map((waitTime) => locks.acquire('a', { waitTime }));
    await held.release();
    for (const lease of waiting) await (await lease).release();
    await nothingIsLeft(process);
  });

  it("the longest lease can be written as '10y', the longest wait as '24d'", async () => {
    const { locks } = await world.process();
    const held = await locks.acquire('a', { leaseTime: '10y', waitTime: '24d' });
    expect(held.remainingTime()).toBeGreaterThan(LONGEST_LEASE * 0.9);
    await held.extend('10y');
    expect(held.remainingTime()).toBeLessThanOrEqual(LONGEST_LEASE);
    await held.release();
    expect(() => decorate({ leaseTime: '10y', holdAtLeast: '10y' })).not.toThrow();
  });
});

describe('the longest lease, on Redis', () => {
  const world = openWorld('Redis');

  it('is a lease there too: Redis can say when it ends', async () => {
    const { locks } = await world.process();
    const lease = await locks.acquire('a', { leaseTime: LONGEST_LEASE });
    const [{ remainingTime }] = (await locks.inspect('a')).owners;
    expect(remainingTime).toBeGreaterThan(LONGEST_LEASE * 0.9);
    await lease.release();
    const permits = locks.getPermitExpirableSemaphore('s');
    await permits.trySetPermits(1);
    const id = await permits.acquire(LONGEST_LEASE);
    expect(await permits.tryAcquire()).toBeNull();
    await permits.release(id);
  });
});
