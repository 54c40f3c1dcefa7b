import { getEventListeners } from 'node:events';
import { LockBusyError } from '../../../../lib/engine/errors.js';
import type { LockLease } from '../../../../lib/engine/lease/lock-lease.js';
import type { Caller } from './caller.js';
import { PLACES } from './shared-objects.js';

const BUSY_NAMES = ['busy-1', 'busy-2', 'busy-3', 'busy-4', 'busy-5', 'busy-6', 'busy-7', 'busy-8'];
const CROWD = 100;

/** Something that a caller does with locks. It never rejects. Errors are recorded in the history. */
export type Errand = (caller: Caller) => Promise<void>;

/** Acquires a lock, holds it, and releases it, sometimes twice. */
const hold: Errand = async (caller) => {
  const { name, type } = caller.any();
  const recorded = await caller.recorder.acquire(name, { type });
  await caller.stay();
  await recorded?.release();
  if (recorded !== undefined && caller.chance.chance(0.1)) await recorded.lease.release();
};

/** Acquires the same lock repeatedly without a pause, so that there are hand-offs. */
const hurry: Errand = async (caller) => {
  const name = caller.name();
  for (let round = 0; round < 4; round++) {
    const recorded = await caller.recorder.acquire(name);
    if (recorded === undefined) return;
    if (caller.chance.chance(0.3)) await caller.stay();
    await recorded.release();
  }
};

/** Holds a lock for much longer than a lease that is not renewed or that the server has lost. */
const holdLong: Errand = async (caller) => {
  const { name, type } = caller.any();
  const recorded = await caller.recorder.acquire(name, { type });
  if (recorded !== undefined) await caller.process.sleep(caller.chance.between(1_000, 4_000));
  await recorded?.release();
};

const tryOnce: Errand = async (caller) => {
  const { name, type } = caller.any();
  const recorded = await caller.recorder.tryAcquire(name, { type });
  await caller.stay();
  await recorded?.release();
};

/** Waits for a limited time. */
const waitAWhile: Errand = async (caller) => {
  const { name, type } = caller.any();
  const waitTime = caller.chance.whole(1, caller.chance.chance(0.5) ? 20 : 400);
  const recorded = await caller.recorder.acquire(name, { type, waitTime });
  await caller.stay();
  await recorded?.release();
};

/** Waits until its signal ends the wait. */
const abort: Errand = async (caller) => {
  const { name, type } = caller.any();
  const controller = new AbortController();
  const { signal } = controller;
  void caller.process.sleep(caller.chance.between(0, 200)).then(() => controller.abort(new Error('changed its mind')));
  const recorded = await caller.recorder.acquire(name, { type, signal });
  const listeners = getEventListeners(signal, 'abort').length;
  if (listeners > 0) caller.recorder.left({ 'listeners of a signal': listeners });
  await caller.stay();
  await recorded?.release();
};

/** Uses a fixed lease. Sometimes the body takes longer than the lease. */
const fixedLease: Errand = async (caller) => {
  const { name, type } = caller.any();
  const leaseTime = caller.chance.whole(100, 500);
  const recorded = await caller.recorder.acquire(name, { type, leaseTime });
  if (recorded === undefined) return;
  if (caller.chance.chance(0.4)) await caller.process.sleep(leaseTime * caller.chance.between(0.8, 1.3));
  else await caller.stay();
  await recorded.release();
};

/** Makes a lease longer or shorter while it holds it. */
const extend: Errand = async (caller) => {
  const { name, type } = caller.any();
  const leaseTime = caller.chance.chance(0.5) ? caller.chance.whole(100, 500) : undefined;
  const recorded = await caller.recorder.acquire(name, { type, ...(leaseTime && { leaseTime }) });
  if (recorded === undefined) return;
  const { call, lease } = recorded;
  const extended = lease.extend(caller.chance.whole(100, 2_000));
  // The lease may be shorter from now on, which the lease object shows before the answer arrives.
  caller.recorder.extended(call, lease);
  const extending = extended.catch(() => {}).then(() => !lease.released && caller.recorder.extended(call, lease));
  if (caller.chance.chance(0.7)) await extending;
  // A lease that is kept has to be renewed when the extension ends.
  if (leaseTime === undefined && caller.chance.chance(0.4)) await caller.process.sleep(caller.chance.between(0, 3_000));
  else await caller.stay();
  await recorded.release();
};

/** Renews a lock of any kind just before it is released. */
const prolong: Errand = async (caller) => {
  const { chance, shared } = caller;
  const { name, type } = caller.any();
  const recorded = chance.chance(0.5)
    ? await caller.recorder.acquire(PLACES, { permits: shared.total(PLACES) })
    : await caller.recorder.acquire(name, { type });
  if (recorded === undefined) return;
  const extended = recorded.lease.extend(chance.whole(60_000, 120_000)).catch(() => {});
  if (chance.chance(0.5)) await extended;
  else await caller.stay();
  await recorded.release();
};

/** Keeps locks that nobody else wants. Some of them are extended, so that each has a different deadline. */
const keep: Errand = async (caller) => {
  const { recorder, process, chance } = caller;
  const keepOne = async (extended: boolean) => {
    await process.sleep(chance.between(0, 300));
    const recorded = await recorder.acquire(`own-${chance.whole(1, 1_000_000)}`);
    if (recorded === undefined) return;
    const { call, lease } = recorded;
    if (extended) await lease.extend(chance.whole(500, 2_500)).catch(() => {});
    if (!lease.released) recorder.extended(call, lease);
    await process.sleep(chance.between(1_000, 4_000));
    await recorded.release();
  };
  await Promise.all([keepOne(true), keepOne(false), keepOne(false)]);
};

/** Several callers ask in the same ticks, each for a different lock. */
const together: Errand = async ({ recorder, chance, process }) => {
  const type = chance.pick(['reentrant', 'fair', 'read', 'write'] as const);
  const names = type === 'reentrant' ? ['stock', 'order', 'parcel'] : [1, 2, 3].map((n) => `${type}-${n}`);
  const stay = chance.between(0, 20);
  const visit = async (name: string) => {
    const recorded = await recorder.acquire(name, { type });
    await process.sleep(stay);
    await recorded?.release();
  };
  await Promise.all(names.map(visit));
};

/** All or none. */
const several: Errand = async (caller) => {
  const { chance } = caller;
  const names = ['stock', 'order', 'parcel'].filter(() => chance.chance(0.7));
  if (names.length < 2) names.splice(0, names.length, 'order', 'stock');
  const waitTime = chance.chance(0.3) ? { waitTime: chance.whole(0, 300) } : {};
  const leaseTime = chance.chance(0.2) ? { leaseTime: chance.whole(100, 500) } : {};
  const recorded = await caller.recorder.acquire(names, { ...waitTime, ...leaseTime });
  await caller.stay();
  await recorded?.release();
};

/** Callers that keep each lock busy for twenty seconds. A caller that wants several of them still has to get them. */
const crowd: Errand = async ({ recorder, process, chance }) => {
  const end = recorder.now() + 20_000;
  const visit = async (name: string) => {
    while (recorder.now() < end) {
      const recorded = await recorder.acquire(name);
      if (recorded === undefined) return;
      await process.sleep(chance.between(0, 20));
      await recorded.release();
    }
  };
  await Promise.all(['stock', 'order', 'parcel', 'stock', 'order', 'parcel'].map(visit));
};

/**
 * Locks that many callers want at once, more than the first reserved tokens suffice for, so that many more are reserved
 * next.
 */
const busyNames: Errand = async ({ recorder }) => {
  const visit = async (name: string) => (await recorder.acquire(name))?.release();
  await Promise.all(BUSY_NAMES.flatMap((name) => Array.from({ length: CROWD }, () => visit(name))));
};

/** Tries one of these locks once. */
const tryBusyName: Errand = async ({ recorder, chance }) => {
  const recorded = await recorder.tryAcquire(chance.pick(BUSY_NAMES));
  await recorded?.release();
};

/** Uses a handle in the style of Redisson, with re-entry. */
const handle: Errand = async (caller) => {
  const { recorder, chance } = caller;
  const name = caller.name();
  const lock = recorder.locks.getLock(name);
  const outer = recorder.sent(name);
  const lease = (await lock.lock().catch((error: Error) => recorder.refused(outer, error))) as LockLease | undefined;
  if (lease === undefined) return;
  recorder.granted(outer, lease);
  await caller.stay();
  if (chance.chance(0.5)) {
    const inner = recorder.sent(name, { waitTime: 0 });
    try {
      const share = (await lease.run(() => lock.tryLock())) as LockLease | null;
      if (share === null) throw new LockBusyError('tryLock() gave null', name, -1, undefined);
      recorder.granted(inner, share, share.locks[0] === lease.locks[0] ? outer : undefined);
      await caller.stay();
      recorder.releaseAsked(inner, share);
      await recorder.released(inner, share.release());
    } catch (error) {
      recorder.refused(inner, error as Error);
    }
  }
  recorder.releaseAsked(outer, lease);
  await recorder.released(outer, lease.release());
};

export const ERRANDS = {
  hold,
  hurry,
  holdLong,
  tryOnce,
  waitAWhile,
  abort,
  fixedLease,
  extend,
  prolong,
  keep,
  together,
  several,
  crowd,
  busyNames,
  tryBusyName,
  handle,
};
