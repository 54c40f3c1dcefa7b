import type { Contestant } from '../contestants/contestant.js';
import { leastLine } from '../contestants/least-line.js';
import { redisSemaphore } from '../contestants/redis-semaphore.js';
import { redlockUniversal } from '../contestants/redlock-universal.js';

/** The peers that poll and can give up. The first one is the poller to which all are compared. */
export const POLLERS: readonly Contestant[] = [redisSemaphore, redlockUniversal];

/**
 * Takes part only if `--contestants` names it. It shows how much of the time of a change of holder is due to the line,
 * whoever writes it.
 */
export const LEAST_LINE: Contestant = leastLine;
