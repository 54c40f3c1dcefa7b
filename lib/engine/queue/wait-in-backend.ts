import { type AcquireReply, BackendError, type BlockingBackend, type Busy } from '../../backends/lock-backend.js';
import type { Attempt } from '../ask/attempt.js';
import type { LockWaiter } from '../hold/held-lock.js';
import type { LeaseClock } from '../time/lease-clock.js';
import type { Callers } from './callers.js';

/** Lets the first waiter of a queue wait in a backend that has a queue of its own, instead of asking it again. */
export class WaitInBackend {
  /** Whether the request waits until another holder releases the lock. */
  waits = false;

  constructor(
    private readonly backend: BlockingBackend,
    private readonly callers: Callers,
    private readonly clock: LeaseClock,
  ) {}

  ask(attempt: Attempt): Promise<AcquireReply> {
    return this.backend.acquire(attempt, (reason) => this.waitsFor(reason));
  }

  /** Ends the wait, because nobody waits for the answer any more. */
  stop(attempt: Attempt): void {
    this.backend.stop(attempt);
  }

  /** Called when the request is answered. */
  answered(): void {
    this.waits = false;
  }

  /** Called when the request waits, for the lock or for something else. Refuses callers that must not wait. */
  private waitsFor(reason: Busy | BackendError): void {
    const { callers } = this;
    if (reason instanceof BackendError) {
      callers.noteFailure(reason);
      const mayWait = ({ triesOnce, scoped }: LockWaiter) => !triesOnce && !scoped;
      return callers.refuseWhere((waiter) => (mayWait(waiter) ? undefined : callers.unavailable(waiter)));
    }
    callers.foundBusy(reason, this.clock.now());
    this.waits = true;
    callers.refuseTriers();
    callers.rest();
  }
}
