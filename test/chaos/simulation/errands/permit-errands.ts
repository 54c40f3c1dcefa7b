import { getEventListeners } from 'node:events';
import type { Patience } from '../../permit-recorder.js';
import type { Caller } from './caller.js';
import type { Errand } from './errands.js';
import { POOL, SEATS } from './shared-objects.js';

/** How many permits to ask for: mostly one, sometimes several. */
function wish({ chance, shared }: Caller, name: string): number {
  return chance.chance(0.7) ? 1 : chance.whole(1, Math.min(3, shared.total(name)));
}

function forAWhile({ chance }: Caller): Patience {
  return { waitTime: chance.whole(1, chance.chance(0.5) ? 20 : 400) };
}

/** Without a time limit, if permits are always given back in the end. */
function patient(caller: Caller): Patience {
  return caller.shared.mortal ? forAWhile(caller) : {};
}

/** Takes permits that are only counted. */
const pool: Errand = async (caller) => {
  const taken = await caller.permits.take(POOL, wish(caller, POOL), patient(caller));
  await caller.stay();
  await taken?.release();
};

/** Takes permits repeatedly without a pause. */
const poolHurry: Errand = async (caller) => {
  for (let round = 0; round < 3; round++) {
    const taken = await caller.permits.take(POOL, 1, patient(caller));
    if (caller.chance.chance(0.3)) await caller.stay();
    await taken?.release();
  }
};

/** Holds permits long enough to distinguish these callers from those that wait for another reason. */
const poolLong: Errand = async (caller) => {
  const taken = await caller.permits.take(POOL, 1, patient(caller));
  if (taken !== undefined) await caller.process.sleep(caller.chance.between(300, 1_500));
  await taken?.release();
};

const poolTry: Errand = async (caller) => {
  const waiting = caller.chance.chance(0.5) ? { waitTime: 0 } : forAWhile(caller);
  const taken = await caller.permits.take(POOL, wish(caller, POOL), waiting);
  await caller.stay();
  await taken?.release();
};

const poolDrain: Errand = async (caller) => {
  const taken = await caller.permits.drain(POOL, caller.shared.total(POOL));
  await caller.stay();
  await taken?.release();
};

const poolAbort: Errand = (caller) =>
  abortable(caller, (signal) => caller.permits.take(POOL, wish(caller, POOL), { signal }));

/** Takes permits that are renewed. */
const seat: Errand = async (caller) => {
  const taken = await caller.permits.lease(SEATS, wish(caller, SEATS));
  await caller.stay();
  await taken?.release();
};

const seatTry: Errand = async (caller) => {
  const waiting = caller.chance.chance(0.5) ? { waitTime: 0 } : forAWhile(caller);
  const taken = await caller.permits.lease(SEATS, wish(caller, SEATS), undefined, waiting);
  await caller.stay();
  await taken?.release();
};

/** Holds permits for much longer than a lease that is not renewed. */
const seatLong: Errand = async (caller) => {
  const taken = await caller.permits.lease(SEATS, 1);
  if (taken !== undefined) await caller.process.sleep(caller.chance.between(500, 2_500));
  await taken?.release();
};

/**
 * Takes permits with a fixed lease. Sometimes the work takes longer than the lease, and sometimes the lease is changed.
 */
const seatFixed: Errand = async (caller) => {
  const leaseTime = caller.chance.whole(100, 500);
  const taken = await caller.permits.lease(SEATS, wish(caller, SEATS), leaseTime);
  if (taken === undefined) return;
  if (caller.chance.chance(0.3)) await caller.permits.adjust(SEATS, taken, caller.chance.whole(100, 500));
  if (caller.chance.chance(0.4)) await caller.process.sleep(leaseTime * caller.chance.between(0.8, 1.3));
  else await caller.stay();
  // A permit that is not released becomes available when its lease ends.
  if (caller.chance.chance(0.8)) await taken.release();
};

/** Holds permits for longer than their lease, while others come and go. */
const seatOverdue: Errand = async (caller) => {
  const leaseTime = caller.chance.whole(1_000, 1_500);
  const taken = await caller.permits.lease(SEATS, 1, leaseTime);
  if (taken === undefined) return;
  await caller.process.sleep(leaseTime + caller.chance.between(500, 1_500));
  if (caller.chance.chance(0.8)) await taken.release();
};

const seatAbort: Errand = (caller) =>
  abortable(caller, (signal) => caller.permits.lease(SEATS, wish(caller, SEATS), undefined, { signal }));

/** Waits until its signal ends the wait. */
async function abortable(
  caller: Caller,
  take: (signal: AbortSignal) => Promise<{ release(): Promise<void> } | undefined>,
): Promise<void> {
  const controller = new AbortController();
  const { signal } = controller;
  void caller.process.sleep(caller.chance.between(0, 100)).then(() => controller.abort(new Error('changed its mind')));
  const taken = await take(signal);
  const listeners = getEventListeners(signal, 'abort').length;
  if (listeners > 0) caller.recorder.left({ 'listeners of a signal': listeners });
  await caller.stay();
  await taken?.release();
}

export const PERMIT_ERRANDS = {
  pool,
  poolHurry,
  poolLong,
  poolTry,
  poolDrain,
  poolAbort,
  seat,
  seatTry,
  seatLong,
  seatFixed,
  seatOverdue,
  seatAbort,
};
