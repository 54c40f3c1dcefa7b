import type { HeldType, ReleaseReply, ReleaseRequest } from '../../backends/lock-backend.js';
import type { Departing } from '../ask/unsettled-releases.js';
import { longestLease, unreleasedOwner } from '../ask/unused-owner.js';
import { CHECKED, invariant } from '../invariants.js';
import { type HeldLock, type ReleaseListener, type ReleaseOutcome, tellOutcome, UNAWAITED } from './held-lock.js';
import type { HoldServices } from './hold-services.js';

/** Told when the backend has answered a release, or gave no answer. */
export interface ReleaseSender {
  releaseAnswered(release: RecallableRelease, reply: ReleaseReply | undefined): void;
}

/**
 * | state       | meaning                                                              | ends                          |
 * | ----------- | -------------------------------------------------------------------- | ----------------------------- |
 * | `sent`      | the backend has it, or sends it at once                              | `settle`, `queued`            |
 * | `unsent`    | the backend keeps it back, so that it can be recalled                | `recall`, `leavesQueue`       |
 * | `withdrawn` | it was recalled, and is not sent unless the lock is given back again | `resume`, `leavesQueue`       |
 * | `answered`  | nothing follows any more                                             | never                         |
 */
type State = 'sent' | 'unsent' | 'withdrawn' | 'answered';

/**
 * The release of a held lock in the backend. Until it is sent, it can be recalled, and the lock is held as before. If
 * the lock is given back again before the request would have been sent, the same request is resumed. Otherwise a loop
 * on one lock would create and withdraw thousands of requests in one turn of the event loop.
 */
export class RecallableRelease implements ReleaseRequest, Departing {
  private state: State = 'sent';
  /** The links of the list of unsettled releases. */
  previous: Departing | undefined;
  next: Departing | undefined;
  readonly underWay = true;
  whenAnswered: readonly (() => void)[] | undefined;

  readonly key: string;
  readonly type: HeldType;
  readonly owner: string;
  /** Who has given the lock back last. */
  private listener: ReleaseListener = UNAWAITED;
  /** The outcome for the first listener, if it waits: that of the hand-off that replaced the release. */
  private recalled: ReleaseOutcome | Promise<ReleaseOutcome> | undefined;

  /** @param sender told of the answer */
  constructor(
    private readonly services: Pick<HoldServices, 'backend' | 'backgroundReleases' | 'clock' | 'unsettledReleases'>,
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

  // ── For the code that gives the lock back ──────────────────────────────────────────────────────────────────────────

  /** Returns as `LockKeeper.giveBack`. */
  send(listener: ReleaseListener): Promise<void> | undefined {
    this.listener = listener;
    this.services.unsettledReleases.begin(this);
    const told = this.services.backend.release(this).then(
      (reply) => this.settle(reply, listener),
      () => this.settle(undefined, listener),
    );
    return listener.waits ? told : undefined;
  }

  /** Whether the lock can be held again, because the release has not been sent yet. */
  get recallable(): boolean {
    return this.state === 'unsent';
  }

  /** Withdraws the release. */
  recall(): void {
    if (CHECKED) invariant(this.state === 'unsent', 'a release is recalled that is not kept back');
    this.state = 'withdrawn';
    this.services.unsettledReleases.end(this);
  }

  /** Settles a recalled release for its listener, with the outcome of the hand-off that replaced it. */
  passed(outcome: ReleaseOutcome | Promise<ReleaseOutcome>): void {
    const { listener } = this;
    this.listener = UNAWAITED;
    if (listener.waits) this.recalled = outcome;
    else void tellOutcome(listener, outcome);
  }

  /** Whether a recalled release can be sent after all. */
  get resumable(): boolean {
    return this.state === 'withdrawn';
  }

  /** Sends a recalled release after all. Returns as {@link send}. */
  resume(listener: ReleaseListener): Promise<void> | undefined {
    if (CHECKED) invariant(this.state === 'withdrawn', 'a release is resumed that was not recalled');
    this.state = 'unsent';
    this.services.unsettledReleases.begin(this);
    this.listener = listener;
    if (!listener.waits) return undefined;
    return new Promise<ReleaseOutcome>((resolve) => {
      this.listener = { waits: false, releaseSettled: resolve };
    }).then((outcome) => listener.releaseSettled(outcome));
  }

  // ── For the backend ────────────────────────────────────────────────────────────────────────────────────────────────

  queued(): void {
    this.state = 'unsent';
  }

  leavesQueue(): boolean {
    if (this.state === 'unsent') this.state = 'sent';
    else if (this.state === 'withdrawn') this.state = 'answered';
    return this.state === 'sent';
  }

  /** Called when the backend has answered, or gave no answer. */
  private settle(reply: ReleaseReply | undefined, first: ReleaseListener): Promise<void> | undefined {
    if (this.leavesQueue()) {
      this.state = 'answered';
      const { listener } = this;
      this.listener = UNAWAITED; // its lease may be collected before this object is
      listener.releaseSettled(this.outcomeOf(reply));
    }
    return this.recalled && tellOutcome(first, this.recalled);
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

/**
 * The outcome of an answered release. If the client resent it after its answer was lost, the second copy finds nothing.
 *
 * @param found whether the answer says that the owner held the lock
 */
export function answeredOutcome(
  { clock }: Pick<HoldServices, 'clock'>,
  { confirmed, validFor }: HeldLock,
  found: boolean,
  resent: boolean,
): ReleaseOutcome {
  const executedTwice = resent && clock.left(confirmed, validFor) > 0;
  return found || executedTwice ? 'released' : 'gone';
}
