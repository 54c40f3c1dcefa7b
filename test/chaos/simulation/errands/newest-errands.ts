import type { LockOptions } from '../../../../lib/engine/terms/lock-options.js';
import type { Caller } from './caller.js';
import type { Errand } from './errands.js';

/** A lock for which only the newest caller waits. */
const INDEX = 'index';

async function rebuild(caller: Caller, options: LockOptions): Promise<void> {
  const recorded = await caller.recorder.acquire(INDEX, options);
  await caller.stay();
  await recorded?.release();
}

const newest: Errand = (caller) => rebuild(caller, { newest: true });

/** Several callers one after another, before the first one has its answer. */
const newestBurst: Errand = async (caller) => {
  const { chance, process } = caller;
  const calls: Promise<void>[] = [];
  for (let size = chance.whole(2, 6); size > 0; size--) {
    calls.push(newest(caller));
    if (chance.chance(0.7)) await process.sleep(chance.between(0, 30));
  }
  await Promise.all(calls);
};

/** Holds the lock while others wait, one of whom remains. */
const newestLong: Errand = async (caller) => {
  const recorded = await caller.recorder.acquire(INDEX, { newest: true });
  if (recorded !== undefined) await caller.process.sleep(caller.chance.between(100, 2_000));
  await recorded?.release();
};

/** Waits for the same lock in its line. */
const besideNewest: Errand = (caller) => rebuild(caller, {});

export const NEWEST_ERRANDS = { newest, newestBurst, newestLong, besideNewest };
