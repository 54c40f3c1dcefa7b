import { BackOff } from '../../backends/back-off.js';
import type { BackendError } from '../../backends/lock-backend.js';
import type { Timer } from '../../backends/runtime.js';
import { FOREVER } from '../terms/duration.js';
import type { WaitTerms } from '../terms/wait-terms.js';
import { Caller } from '../wait/caller.js';
import { permanentError, unavailableError } from '../wait/wait-errors.js';
import type { HeldLock } from './held-lock.js';
import type { HoldServices } from './hold-services.js';

/** The services that are needed here. */
type Needs = Pick<HoldServices, 'backend' | 'runtime' | 'watchdog'>;

const WAIT_FOREVER: WaitTerms = { waitTime: FOREVER, outageTimeout: FOREVER, signal: undefined };

/** A caller that waits until the backend has confirmed whether a lock is held. */
class Confirmation extends Caller<boolean> {
  get what(): string {
    return `the lock '${this.name}'`;
  }
}

/**
 * Finds out whether a lock is still held after the clocks have diverged. Settles when the backend has confirmed the
 * lock or reports that it is gone, or when its lease has ended or it was given back meanwhile. Acquiring the lock again
 * instead would make the caller wait for itself.
 *
 * @throws LockUnavailableError when the backend gives no answer within the waitTime of `terms`, LockAbortedError
 */
export function confirmLease(services: Needs, held: HeldLock, terms: WaitTerms): Promise<boolean> {
  const { backend, runtime, watchdog } = services;
  return new Promise((resolve, reject) => {
    let failure: BackendError | undefined;
    let timer: Timer | undefined;
    const backOff = new BackOff(runtime);
    const caller = new Confirmation(held.name, terms, runtime, resolve, reject);
    const check = () => {
      if (caller.settled) return;
      const state = watchdog.judge(held);
      // What was given back meanwhile is confirmed by no answer.
      if (state !== 'unsure' || !watchdog.guards(held)) return caller.grant(state === 'held');
      if (caller.triesOnce) return caller.refuse(unavailableError(caller, backend, failure));
      timer = runtime.timer(backOff.next(), ask, 'keep-alive');
    };
    const ask = () => {
      watchdog.confirmNow(held).then(check, (error: BackendError) => {
        failure = error;
        if (error.kind !== 'unavailable') caller.refuse(permanentError(caller, backend, error));
        check();
      });
    };
    caller.watch(() => {
      timer?.cancel();
      return unavailableError(caller, backend, failure);
    });
    ask();
  });
}

/** Settles when it is certain for each of these locks whether it is held. `undefined` if that is already certain. */
export function confirmLeases(services: Needs, locks: readonly HeldLock[]): Promise<unknown> | undefined {
  const unsure = locks.filter((lock) => services.watchdog.judge(lock) === 'unsure');
  if (unsure.length === 0) return undefined;
  return Promise.all(unsure.map((lock) => confirmLease(services, lock, WAIT_FOREVER)));
}
