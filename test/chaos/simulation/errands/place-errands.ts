import { getEventListeners } from 'node:events';
import type { LockOptions } from '../../../../lib/engine/terms/lock-options.js';
import type { Caller } from './caller.js';
import type { Errand } from './errands.js';
import { PLACES } from './shared-objects.js';

/** Takes one of the places of a lock that n may hold. */
async function take(caller: Caller, options: LockOptions = {}) {
  return caller.recorder.acquire(PLACES, { permits: caller.shared.total(PLACES), ...options });
}

const place: Errand = async (caller) => {
  const recorded = await take(caller);
  await caller.stay();
  await recorded?.release();
  if (recorded !== undefined && caller.chance.chance(0.1)) await recorded.lease.release();
};

/** Takes a place repeatedly without a pause, so that there are hand-offs. */
const placeHurry: Errand = async (caller) => {
  for (let round = 0; round < 4; round++) {
    const recorded = await take(caller);
    if (recorded === undefined) return;
    if (caller.chance.chance(0.3)) await caller.stay();
    await recorded.release();
  }
};

/** More callers than there are places, at once. */
const placeCrowd: Errand = async (caller) => {
  await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(() => place(caller)));
};

const placeTry: Errand = async (caller) => {
  const { chance } = caller;
  const waitTime = chance.chance(0.5) ? 0 : chance.whole(1, chance.chance(0.5) ? 20 : 400);
  const recorded = await take(caller, { waitTime });
  await caller.stay();
  await recorded?.release();
};

const placeAbort: Errand = async (caller) => {
  const controller = new AbortController();
  const { signal } = controller;
  void caller.process.sleep(caller.chance.between(0, 200)).then(() => controller.abort(new Error('changed its mind')));
  const recorded = await take(caller, { signal });
  const listeners = getEventListeners(signal, 'abort').length;
  if (listeners > 0) caller.recorder.left({ 'listeners of a signal': listeners });
  await caller.stay();
  await recorded?.release();
};

/** Uses a fixed lease. Sometimes the body takes longer than the lease, and sometimes the lease is changed. */
const placeFixed: Errand = async (caller) => {
  const leaseTime = caller.chance.whole(100, 500);
  const recorded = await take(caller, { leaseTime });
  if (recorded === undefined) return;
  const { call, lease } = recorded;
  if (caller.chance.chance(0.3)) {
    const extended = lease.extend(caller.chance.whole(100, 2_000));
    caller.recorder.extended(call, lease);
    await extended.catch(() => {});
    if (!lease.released) caller.recorder.extended(call, lease);
  }
  if (caller.chance.chance(0.4)) await caller.process.sleep(leaseTime * caller.chance.between(0.8, 1.3));
  else await caller.stay();
  await recorded.release();
};

/** Holds a place for longer than its lease, while others come and go. A place in line is granted no shorter lease. */
const placeOverdue: Errand = async (caller) => {
  const leaseTime = caller.chance.whole(1_000, 1_500);
  const recorded = await take(caller, { leaseTime });
  if (recorded !== undefined) await caller.process.sleep(leaseTime + caller.chance.between(500, 1_500));
  await recorded?.release();
};

/** Holds all places until their leases end at once. */
const placesOverdue: Errand = async (caller) => {
  const leaseTime = caller.chance.whole(1_000, 1_500);
  const places = Array.from({ length: caller.shared.total(PLACES) }, () => take(caller, { leaseTime }));
  const recorded = await Promise.all(places);
  await caller.process.sleep(leaseTime + caller.chance.between(500, 1_500));
  await Promise.all(recorded.map((each) => each?.release()));
};

/** Holds a place for much longer than a lease that is not renewed. */
const placeLong: Errand = async (caller) => {
  const recorded = await take(caller);
  if (recorded !== undefined) await caller.process.sleep(caller.chance.between(1_000, 4_000));
  await recorded?.release();
};

export const PLACE_ERRANDS = {
  place,
  placeHurry,
  placeCrowd,
  placeTry,
  placeAbort,
  placeFixed,
  placeOverdue,
  placesOverdue,
  placeLong,
};
