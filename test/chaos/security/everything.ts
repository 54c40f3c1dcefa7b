import { LockDeadlockError } from '../../../lib/engine/errors.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import type { LockService } from '../../../lib/service/lock-service.js';

/**
 * The times with which the services have to be configured, in milliseconds. They are long enough for a slow machine.
 */
export const TIMES = { watchdogTimeout: 2_000, waiterTimeout: 2_000 } as const;
/** In milliseconds. It is longer than a third of these times, so that leases and places are renewed meanwhile. */
const A_WHILE = 800;

/**
 * Uses every lock type and every synchronizer with two services that compete with each other, so that there are waits,
 * wake-ups, renewals, hand-offs inside a process, and time-outs.
 *
 * @param prefix the prefix of all names
 * @returns the errors of the parts that failed
 */
export async function useEverything(one: LockService, other: LockService, prefix: string): Promise<unknown[]> {
  const n = (name: string) => `${prefix}:${name}`;
  const parts = [
    ...(['reentrant', 'fair', 'fenced', 'write', 'read'] as const).map((type) =>
      waitAndHandOn(one, other, n(type), type),
    ),
    readAndWrite(one, other, n('page')),
    several(one, other, [n('a'), n('b')]),
    byHandle(one, n('handle')),
    force(one, other, n('forced')),
    deadlock(one, other, n('first'), n('second')),
    semaphore(one, other, n('semaphore')),
    permits(one, other, n('permits')),
    latch(one, other, n('latch')),
    look(one, other, n('seen')),
    flight(one, other, n('flight')),
    travel(one, other, n('travels')),
  ];
  const results = await Promise.allSettled(parts);
  return results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
}

async function waitAndHandOn(one: LockService, other: LockService, name: string, type: LockOptions['type']) {
  // A reader waits only for a writer.
  const holder = await one.acquire(name, { type: type === 'read' ? 'write' : type, waitTime: '12s' });
  const waiters = [
    other.acquire(name, { type, waitTime: '12s' }),
    other.acquire(name, { type, waitTime: '12s', leaseTime: '15s' }),
    other.acquire(name, { type, waitTime: '12s', leaseTime: '14s' }),
  ];
  for (const waiter of waiters) waiter.catch(() => {}); // they are awaited below
  await other.acquire(name, { type, waitTime: A_WHILE }).then(
    (lease) => lease.release(),
    () => {},
  );
  await holder.extend('1s').catch(() => {});
  await holder.release();
  const leases = await Promise.allSettled(waiters.map(async (waiter) => (await waiter).release()));
  for (const lease of leases) if (lease.status === 'rejected') throw lease.reason;
}

async function readAndWrite(one: LockService, other: LockService, name: string) {
  const reader = await one.acquire(name, { type: 'read', waitTime: '12s' });
  const writing = other.acquire(name, { type: 'write', waitTime: '12s' });
  writing.catch(() => {}); // it is awaited below
  // Null, unless it arrived before the writer.
  const late = await one.tryAcquire(name, { type: 'read', waitTime: A_WHILE });
  await late?.release();
  await reader.release();
  await (await writing).release();
  await one.withLock(name, { type: 'write', waitTime: '12s' }, () =>
    one.withLock(name, { type: 'read', waitTime: '12s' }, async () => {}),
  );
}

async function several(one: LockService, other: LockService, names: string[]) {
  for (const type of ['reentrant', 'fenced', 'write'] as const) {
    const lease = await one.acquire(names, { type, waitTime: '12s' });
    const waiting = other.acquire(names, { type, waitTime: '12s' });
    waiting.catch(() => {}); // it is awaited below
    await lease.release();
    await (await waiting).release();
  }
}

async function byHandle(locks: LockService, name: string) {
  const lease = await locks.getLock(name).lock();
  await lease.release();
  const fenced = await locks.getFencedLock(`${name}:fenced`).lock();
  await fenced.release();
}

async function force(one: LockService, other: LockService, name: string) {
  for (const type of ['reentrant', 'fair', 'fenced', 'read', 'write'] as const) {
    const lease = await one.acquire(name, { type, waitTime: '12s' });
    await other.inspect(name);
    await other.forceRelease(name);
    await lease.release().catch(() => {});
  }
}

async function deadlock(one: LockService, other: LockService, first: string, second: string) {
  const nest = (locks: LockService, outer: string, inner: string) =>
    locks.withLock(outer, { waitTime: '12s' }, async () => {
      await new Promise((resolve) => setTimeout(resolve, A_WHILE));
      await locks.withLock(inner, { waitTime: '12s' }, async () => {});
    });
  const results = await Promise.allSettled([nest(one, first, second), nest(other, second, first)]);
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  if (errors.length === 0) throw new Error('there was no deadlock');
  for (const error of errors) if (!(error instanceof LockDeadlockError)) throw error;
}

async function semaphore(one: LockService, other: LockService, name: string) {
  const [mine, theirs] = [one.getSemaphore(name), other.getSemaphore(name)];
  await mine.trySetPermits(2);
  await mine.acquire(2);
  const waiting = theirs.tryAcquire(1, '12s');
  waiting.catch(() => {}); // it is awaited below
  await mine.release(2);
  if (!(await waiting)) throw new Error('no permit came');
  await mine.addPermits(1);
  await mine.drainPermits();
  await mine.availablePermits();
  await mine.releaseIfExists();
}

async function permits(one: LockService, other: LockService, name: string) {
  const [mine, theirs] = [one.getPermitExpirableSemaphore(name), other.getPermitExpirableSemaphore(name)];
  await mine.trySetPermits(1);
  await mine.setPermits(2);
  await mine.addPermits(-1);
  const id = await mine.acquire('10s');
  await mine.updateLeaseTime(id, '20s');
  const waiting = theirs.tryAcquire('12s');
  waiting.catch(() => {}); // it is awaited below
  await Promise.all([mine.availablePermits(), mine.acquiredPermits(), mine.getPermits()]);
  await mine.release(id);
  const theirId = await waiting;
  await new Promise((resolve) => setTimeout(resolve, A_WHILE));
  if (theirId !== null) await theirs.tryRelease(theirId);
}

/** Inspects the locks. The record of a client is written when it has held something for a moment. */
async function look(one: LockService, other: LockService, name: string) {
  await one.withLock(name, async () => {
    await new Promise((resolve) => setTimeout(resolve, 2 * A_WHILE));
    await other.acquire(name, { waitTime: A_WHILE }).catch(() => {});
    const { locks } = await other.list({ match: '*' });
    if (locks.length === 0) throw new Error('no lock was listed');
    await other.clients();
  });
}

async function latch(one: LockService, other: LockService, name: string) {
  const [mine, theirs] = [one.getCountDownLatch(name), other.getCountDownLatch(name)];
  await mine.trySetCount(1);
  const waiting = theirs.await('12s');
  waiting.catch(() => {}); // it is awaited below
  await mine.countDown();
  if (!(await waiting)) throw new Error('the latch did not open');
  await mine.trySetCount(1);
  await mine.getCount();
  await mine.delete();
}

async function flight(one: LockService, other: LockService, name: string) {
  const run = async () => {
    await new Promise((resolve) => setTimeout(resolve, A_WHILE));
    return name;
  };
  const results = await Promise.all([
    one.singleFlight(name, { keepFor: '10s', waitTime: '12s' }, run),
    other.singleFlight(name, { keepFor: '10s', waitTime: '12s' }, run),
  ]);
  if (results.some((result) => result !== name)) throw new Error('the flight gave another result');
  await one.forgetResult(name);
}

async function travel(one: LockService, other: LockService, name: string) {
  const ticket = await (await one.acquire(name)).detach({ for: '10s' });
  await (await other.adopt(ticket)).release();
}
