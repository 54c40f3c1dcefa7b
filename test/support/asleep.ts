import { setImmediate } from 'node:timers/promises';
import type { LockService } from '../../lib/service/lock-service.js';
import { backendOf } from './lock-world.js';
import { until } from './until.js';

/**
 * Whether callers of this service wait for this many semaphores and latches, and send no request until they are woken.
 */
export function isAsleep(locks: LockService, objects = 1): boolean {
  const { subscriptions, isQuiet } = backendOf(locks).synchronizerRequests;
  return subscriptions === objects && isQuiet;
}

/** Settles when {@link isAsleep} is true. */
export async function asleep(locks: LockService, objects = 1): Promise<void> {
  await until(async () => {
    if (!isAsleep(locks, objects)) return false;
    await setImmediate(); // processing the last answer may cause another request
    return isAsleep(locks, objects);
  });
}

/** Whether a promise has settled yet. */
export function watch(promise: Promise<unknown>): { done: boolean } {
  const watched = { done: false };
  const end = () => {
    watched.done = true;
  };
  promise.then(end, end);
  return watched;
}
