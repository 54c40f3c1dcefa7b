import type { HeldType, ReleaseReply, ReleaseRequest } from '../../backends/lock-backend.js';
import type { Departing } from '../ask/unsettled-releases.js';
import { longestLease, unreleasedOwner } from '../ask/unused-owner.js';
import type { Services } from '../services.js';
import type { HeldLock, ReleaseListener, ReleaseOutcome } from './held-lock.js';

/** Told when the backend has answered a release, or gave no answer. */
export interface ReleaseSender {
  releaseAnswered(release: RecallableRelease, reply: ReleaseReply | undefined): void;
}

/**
 * The release of a held lock in the backend. Until it is sent, it can be recalled, and the lock is held as before. If
 * the lock is given back again before the request would have been sent, the same request is resumed. Otherwise a loop
 * on one lock would create and withdraw thousands of requests in one turn of the event loop.
 */
export class RecallableRelease implements ReleaseRequest, Departing {
  unsent = false;
  withdrawn = false;
  /** The links of the list of unsettled releases. */
  previous: Departing | undefined;
  next: Departing | undefined;
  readonly underWay = true;
  whenAnswered: readonly (() => void)[] | undefined;

  readonly key: string;
  readonly type: HeldType;
  readonly owner: string;
  /** Receives the outcome if its caller does not wait. */
  private listener: ReleaseListener | undefined;
  /** After a recall, the outcome for the caller of {@link send} if it waits: see {@link passed}. */
  private recalled: ReleaseOutcome | Promise<ReleaseOutcome> | undefined;

  /**
   * @param sender told of the answer. If there is none, the lock is released in the background
   */
  constructor(
    private readonly services: Pick<Services, 'backend' | 'backgroundReleases' | 'clock' | 'unsettledReleases'>,
    readonly held: HeldLock,
    private readonly sender?: ReleaseSender,
  ) {
    this.key = held.key;
    this.type = held.type;
    this.owner = held.owner;
  }

  get leaseTime(): number {
    return longestLease(this.held);
  }

  /** @returns the outcome; undefined when `listener` receives it */
  send(listener: ReleaseListener | undefined): Promise<ReleaseOutcome> | undefined {
    this.services.unsettledReleases.begin(this);
    const answer = this.services.backend.release(this);
    if (listener?.waits) {
      listener.ending = answer.then(
        (reply) => tell(listener, this.settle(reply)),
        () => tell(listener, this.settle(undefined)),
      );
      return undefined;
    }
    this.listener = listener;
    const outcome = answer.then(
      (reply) => this.settle(reply),
      () => this.settle(undefined),
    );
    return listener === undefined ? outcome : undefined;
  }

  /** Whether the lock can be held again, because the release has not been sent yet. */
  get recallable(): boolean {
    return this.unsent && !this.withdrawn;
  }

  /** Withdraws the release. */
  recall(): void {
    this.withdrawn = true;
    this.services.unsettledReleases.end(this);
  }

  /** Settles a recalled release for its caller, with the outcome of the hand-off that replaced it. */
  passed(outcome: ReleaseOutcome | Promise<ReleaseOutcome>): void {
    const { listener } = this;
    this.listener = undefined;
    if (listener === undefined) this.recalled ??= outcome;
    else void tell(listener, outcome);
  }

  /** Whether a recalled release can be sent after all. */
  get resumable(): boolean {
    return this.unsent && this.withdrawn;
  }

  /** Sends a recalled release after all. Returns as {@link send}. */
  resume(listener: ReleaseListener | undefined): Promise<ReleaseOutcome> | undefined {
    this.withdrawn = false;
    this.services.unsettledReleases.begin(this);
    this.listener = listener;
    if (listener?.waits === false) return undefined;
    const outcome = new Promise<ReleaseOutcome>((resolve) => {
      this.listener = { waits: false, ending: undefined, releaseSettled: resolve };
    });
    if (listener === undefined) return outcome;
    listener.ending = outcome.then((settled) => listener.releaseSettled(settled));
    return undefined;
  }

  private settle(reply: ReleaseReply | undefined): ReleaseOutcome | Promise<ReleaseOutcome> {
    const outcome = this.withdrawn ? 'released' : this.outcomeOf(reply);
    this.listener?.releaseSettled(outcome);
    return this.recalled ?? outcome;
  }

  private outcomeOf(reply: ReleaseReply | undefined): ReleaseOutcome {
    const { held, sender, services } = this;
    const { backgroundReleases, unsettledReleases } = services;
    unsettledReleases.end(this);
    if (reply === undefined) {
      backgroundReleases.release(unreleasedOwner(held));
      sender?.releaseAnswered(this, undefined);
      return 'unreachable';
    }
    backgroundReleases.followUp(held);
    sender?.releaseAnswered(this, reply);
    return answeredOutcome(services, held, reply.released, reply.resent);
  }
}

function tell(listener: ReleaseListener, outcome: ReleaseOutcome | Promise<ReleaseOutcome>): void | Promise<void> {
  if (typeof outcome === 'string') return listener.releaseSettled(outcome);
  return outcome.then((settled) => listener.releaseSettled(settled));
}

/**
 * The outcome of an answered release. If the client resent it after its answer was lost, the second copy finds nothing.
 *
 * @param found whether the answer says that the owner held the lock
 */
export function answeredOutcome(
  { clock }: Pick<Services, 'clock'>,
  { confirmed, validFor }: HeldLock,
  found: boolean,
  resent: boolean,
): ReleaseOutcome {
  const executedTwice = resent && clock.left(confirmed, validFor) > 0;
  return found || executedTwice ? 'released' : 'gone';
}
