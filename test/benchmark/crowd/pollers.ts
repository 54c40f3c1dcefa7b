import type { Contestant } from '../contestants/contestant.js';
import { redisSemaphore } from '../contestants/redis-semaphore.js';
import { redlockUniversal } from '../contestants/redlock-universal.js';

/** The peers that poll and can give up. The first one is the poller to which all are compared. */
export const POLLERS: readonly Contestant[] = [redisSemaphore, redlockUniversal];
