import { BackOff } from '../../backends/back-off.js';
import { HEAD_START } from '../../backends/line-backend.js';
import type { Busy, Subscription, Wake } from '../../backends/lock-backend.js';
import type { Runtime, Timer } from '../../backends/runtime.js';

/**
 * For how many milliseconds this process listens on after it has waited for the lock and got it, so that its next caller
 * enters the line with its first request.
 */
const LISTENS_ON = 1_000;

/** See {@link WhenToAsk}. The backend may be asked only while the state is `open`. */
export type State = 'open' | 'asking' | 'resting' | 'yielding' | 'backing off';

/**
 * Decides when this process may ask the backend for one thing again: a lock, permits, a flight. It never polls.
 *
 * | state         | entered when                    | becomes `open` when                           |
 * | ------------- | ------------------------------- | --------------------------------------------- |
 * | `open`        | nothing has happened yet        | -                                             |
 * | `asking`      | a request is sent (`begin`)     | the lock is acquired                          |
 * | `resting`     | the lock was busy (`busy`)      | a message arrives, or the holder's lease ends |
 * | `backing off` | there was no answer (`failed`)  | a message arrives, or a growing pause ends    |
 * | `yielding`    | several were woken by a message | a short random pause ends                     |
 * | `yielding`    | those outside the line go first | their head start ends                         |
 *
 * Each state also becomes `open` when nobody waits any more. A message that arrives during a request is remembered. If
 * the answer is busy, the process then asks again instead of resting.
 */
export class WhenToAsk {
  /** Whether messages arrive. */
  listens = false;
  private subscription: Subscription | undefined;
  private state: State = 'open';
  /** Listens for the release of a holder of another kind. */
  private otherKind: Subscription | undefined;
  private otherKindHeldAs: Busy['heldAs'];
  private timer: Timer | undefined;
  /** How many changes this process has heard of, and how many when the latest request was sent. */
  private changes = 0;
  private changesBefore = 0;
  /** How many changes it had heard of after the latest release that leaves the lock to others at first. */
  private leftToOthers = 0;
  /** A busy answer was older than what this process has heard of since, and nobody has asked after that answer. */
  private outdated = false;
  private failing = false;
  /** Whether others held the lock before this process did. */
  private contended = false;
  private listensUntil = 0;
  private standsBackUntil = 0;
  private readonly backOff: BackOff;

  /**
   * @param subscribe listens for what concerns this process, or for releases of holders of another kind
   * @param retry called when the backend may be asked again
   * @param spread within how many milliseconds of a message this process asks, at a random moment, because the message
   *   wakes others as well. 0: at once, because only this process is meant
   */
  constructor(
    private readonly subscribe: (listener: (wake: Wake) => void, heldAs?: Busy['heldAs']) => Subscription,
    private readonly runtime: Runtime,
    private readonly retry: () => void,
    private readonly spread = 0,
  ) {
    this.backOff = new BackOff(runtime);
  }

  /** Whether the backend must not be asked now. A message or a timer will call `retry`. */
  get resting(): boolean {
    return this.state !== 'open' && this.state !== 'asking';
  }

  /** Records that a request is sent. @returns the number of changes that it is sure to know of, for {@link busy} */
  begin(): number {
    this.changesBefore = this.changes;
    this.outdated = false;
    // A caller that tries once may ask while the others rest.
    if (this.state === 'open') this.state = 'asking';
    return this.changesBefore;
  }

  /**
   * Rests after a request that found the lock busy, unless a message arrived meanwhile.
   *
   * @param changesBefore what {@link begin} returned for this request, if others are under way beside it
   * @returns whether it rests
   */
  busy(remaining: number, heldAs?: Busy['heldAs'], changesBefore = this.changesBefore): boolean {
    this.contended = true;
    this.answered();
    if (heldAs !== undefined) this.listenTo(heldAs);
    else this.stopListeningToOthers();
    if (changesBefore < this.changes || this.outdated) {
      // Perhaps nobody can ask before a request beside this one is answered, which is newer.
      this.outdated = true;
      if (this.leftToOthers < this.changes) {
        this.open();
        return false;
      }
      this.rest('yielding', HEAD_START);
    } else {
      this.listen();
      this.rest('resting', remaining);
    }
    return true;
  }

  /**
   * Pauses after a request without an answer, longer each time.
   *
   * @returns whether it is the first failure in a row
   */
  failed(): boolean {
    const isFirst = !this.failing;
    this.failing = true;
    this.rest('backing off', this.backOff.next());
    return isFirst;
  }

  acquired(): void {
    if (this.contended) this.listensUntil = this.runtime.monotonic() + LISTENS_ON;
    this.contended = false;
    this.stopListeningToOthers();
    this.answered();
    this.open();
  }

  /** Asks again after a change that no message announces. */
  recheck(): void {
    this.wake();
  }

  /**
   * Lets those ask first who were woken by the release of this process.
   *
   * @param headStart for how many milliseconds, also if no caller waits now; undefined: for the {@link spread}
   */
  standBack(headStart?: number): void {
    if (headStart === undefined) this.listen();
    else this.standsBackUntil = this.runtime.monotonic() + headStart;
    this.rest('yielding', headStart ?? this.spread);
  }

  /** Whether others have a head start, although perhaps no caller waits. */
  get standsBack(): boolean {
    return this.resting && this.runtime.monotonic() < this.standsBackUntil;
  }

  /** Called when no caller waits any more. */
  onEmpty(): void {
    // The next caller waits for the head start of others alone, and not for a lease that was in the way of the last one.
    if (this.standsBack) this.rest('yielding', this.standsBackUntil - this.runtime.monotonic());
    else this.open();
  }

  /** For how many more milliseconds it helps the next caller to keep this object, because it listens already. */
  get usefulFor(): number {
    return this.listens ? this.listensUntil - this.runtime.monotonic() : 0;
  }

  /** Calls back when it is not {@link usefulFor} callers any more. */
  whenUseless(callback: () => void): void {
    this.open();
    this.timer = this.runtime.timer(this.usefulFor, callback);
  }

  close(): void {
    this.open();
    this.subscription?.close();
    this.subscription = undefined;
    this.stopListeningToOthers();
    this.listens = false;
  }

  private answered(): void {
    this.failing = false;
    this.backOff.reset();
  }

  private rest(state: State, delay: number): void {
    this.state = state;
    this.timer?.cancel();
    this.timer = delay < 0 ? undefined : this.runtime.timer(delay + 1, () => this.wake(), 'keep-alive');
  }

  private open(): void {
    this.state = 'open';
    this.timer?.cancel();
    this.timer = undefined;
  }

  private wake(): void {
    if (!this.resting) return;
    this.open();
    this.retry();
  }

  private listen(): void {
    if (this.subscription !== undefined) return;
    const subscription = this.subscribe((wake) => this.heard(wake));
    this.subscription = subscription;
    // A release may have been missed before the subscription was confirmed, so ask once more.
    subscription.ready.then(() => {
      if (this.subscription !== subscription) return;
      this.listens = true;
      this.onChange(false);
    });
  }

  private listenTo(heldAs: NonNullable<Busy['heldAs']>): void {
    if (this.otherKind !== undefined && this.otherKindHeldAs === heldAs) return;
    this.stopListeningToOthers();
    const subscription = this.subscribe(() => this.onChange(false), heldAs);
    this.otherKind = subscription;
    this.otherKindHeldAs = heldAs;
    subscription.ready.then(() => {
      if (this.otherKind === subscription) this.onChange(false);
    });
  }

  /** A line would take this process for others that listen outside it. */
  private stopListeningToOthers(): void {
    this.otherKind?.close();
    this.otherKind = undefined;
  }

  private heard(wake: Wake): void {
    if (wake.kind === 'message' && wake.lock === 'free') this.letOthersGoFirst();
    else this.onChange(wake.kind === 'message');
  }

  /** Handles a release that leaves the lock to those outside the line. It may be announced more than once. */
  private letOthersGoFirst(): void {
    this.leftToOthers = ++this.changes;
    if (this.resting && this.state !== 'yielding') this.rest('yielding', HEAD_START);
  }

  /**
   * Handles a possible release: asks now, or after the current request.
   *
   * @param woken whether a message has told of it
   */
  private onChange(woken: boolean): void {
    this.changes++;
    if (!this.resting) return;
    if (!woken || this.spread === 0) this.wake();
    else if (this.state !== 'yielding') this.rest('yielding', this.spread * this.runtime.random());
  }
}
