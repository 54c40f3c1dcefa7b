import type { HeldLock, ReleaseListener, ReleaseOutcome } from '../../../lib/engine/hold/held-lock.js';

interface Keeper {
  giveBack(held: HeldLock, listener: ReleaseListener): Promise<void> | undefined;
}

/** Gives a lock back, and waits for it. @returns the outcome, or a promise of it if there is something to wait for */
export function giveBack(keeper: Keeper, held: HeldLock): ReleaseOutcome | Promise<ReleaseOutcome> {
  const outcomes: ReleaseOutcome[] = [];
  const releaseSettled = (outcome: ReleaseOutcome) => void outcomes.push(outcome);
  const told = keeper.giveBack(held, { waits: true, releaseSettled });
  return told === undefined ? outcomes[0] : told.then(() => outcomes[0]);
}
