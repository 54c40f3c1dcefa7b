import type { DetachableType } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import { Attempt, type AttemptReply, type AttemptServices, type Failed, type Outcome } from '../ask/attempt.js';
import { Doubt } from '../ask/doubt.js';
import { RetryPause } from '../time/retry-pause.js';

/** Transfers a lock between an owner of this process and the owner of a ticket, in either direction. */
export class Transfer<Reply extends AttemptReply> {
  /** What the requests may have left. */
  private readonly doubt = new Doubt();

  /** @param owner the owner that the lock goes to */
  constructor(
    private readonly services: AttemptServices & { readonly runtime: Runtime },
    private readonly key: string,
    private readonly type: DetachableType,
    private readonly owner: string,
    private readonly leaseTime: number,
  ) {}

  /**
   * Requests the transfer until there is an answer. This is safe, because a second copy of a transfer finds the new
   * owner and changes nothing.
   *
   * @param pauseAfter the longest pause before the next request, in milliseconds; throws when there is to be none
   */
  async untilAnswered(
    request: () => Promise<Reply | undefined>,
    pauseAfter: (failure: Failed) => number,
  ): Promise<Exclude<Outcome<Reply>, Failed>> {
    const { services, key, owner, type, leaseTime } = this;
    const pause = new RetryPause(services.runtime);
    for (;;) {
      const outcome = await new Attempt(services, key, owner, { type, leaseTime }).outcome(request(), (ended) => ended);
      this.doubt.note(outcome);
      if (outcome.state !== 'failed') return outcome;
      await pause.sleep(Math.min(pauseAfter(outcome), pause.next()));
    }
  }

  /** Releases the new owner in the background, if it may hold the lock. */
  undo(): void {
    const { services, key, type, owner, leaseTime, doubt } = this;
    doubt.undo(services.backgroundReleases, { key, type, owner }, leaseTime);
  }
}
