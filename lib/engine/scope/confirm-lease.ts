import type { BackendError } from '../../backends/lock-backend.js';
import type { Timer } from '../../backends/runtime.js';
import type { HeldLock } from '../lease/held-lock.js';
import type { LockEngine } from '../lock-engine.js';
import type { AcquisitionTerms } from '../lock-options.js';
import { permanentError, unavailableError } from '../waiting/wait-errors.js';
import { Waiter } from '../waiting/waiter.js';

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 1_000;

/**
 * Settles with whether a lock is held whose clocks have parted: as soon as the backend has confirmed it, says that it is not there, or its
 * lease has ended meanwhile. To acquire it anew instead would mean to wait for oneself.
 *
 * @throws LockUnavailableError when the backend gives no answer within the waitTime of `terms`, LockAbortedError
 */
export function confirmLease(engine: LockEngine, held: HeldLock, terms: AcquisitionTerms): Promise<boolean> {
  const { backend, runtime, watchdog } = engine.context;
  return new Promise((resolve, reject) => {
    let failure: BackendError | undefined;
    let timer: Timer | undefined;
    let pause = FIRST_PAUSE;
    const waiter = new Waiter<boolean>(held.name, () => held.owner, terms, runtime, resolve, reject);
    const look = () => {
      if (waiter.settled) return;
      const state = watchdog.judge(held);
      if (state !== 'unsure') return waiter.grant(state === 'held');
      if (waiter.triesOnce) return waiter.refuse(unavailableError(waiter, backend, failure));
      timer = runtime.timer(pause, ask, 'keep-alive');
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    };
    const ask = () => {
      watchdog.confirmNow(held).then(look, (error: BackendError) => {
        failure = error;
        if (error.kind !== 'unavailable') waiter.refuse(permanentError(waiter, backend, error));
        look();
      });
    };
    waiter.watch(() => {
      timer?.cancel();
      return unavailableError(waiter, backend, failure);
    });
    ask();
  });
}
