import type { WayOfAsking } from './way-of-asking.js';

/** One holder at a time: the first waiter asks, and the lock goes from one caller to the next. */
export const oneByOne: WayOfAsking = {
  servesFirstOnly: true,
  believesGrants: true,
  asksBeside: () => false,
  askNext: (queue, first) => {
    if (queue.attempts === 0) queue.ask(first);
  },
  reserve: (queue) => queue.reserveBehind(1),
  enterLine: (turn, waiter, isAlone) => turn.enterLine(waiter, isAlone),
  keepsPlace: () => false,
  passes: () => true,
  leavesToOthers: () => true,
};
