import { setImmediate } from 'node:timers/promises';
import type { LockService } from '../../lib/service/lock-service.js';
import { waitsOf } from '../support/lock-world.js';
import { until } from '../support/until.js';

/** Settles when the callers of this service wait for so many semaphores and latches, and have nothing more to do until they are woken. */
export async function asleep(locks: LockService, objects = 1): Promise<void> {
  const waits = waitsOf(locks);
  const quiet = () => waits.count === objects && waits.areQuiet;
  await until(async () => {
    if (!quiet()) return false;
    await setImmediate(); // the last answer is looked at, and may lead to another question
    return quiet();
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
