import { BackOff } from '../../backends/back-off.js';
import type { Busy, Subscription, Wake } from '../../backends/lock-backend.js';
import type { Runtime, Timer } from '../../backends/runtime.js';

/** How long a process of rank r waits for each of the r processes in front of it, in milliseconds. */
const TURN = 10;
/**
 * Extra milliseconds for ranks above 1. TURN and WORK together are 25 ms, the longest time for which a process hands
 * the lock off to its own callers (see HandOffBudget).
 */
const WORK = 15;

/** See {@link TurnToAsk}. The backend may be asked only while the state is `open`. */
type State = 'open' | 'asking' | 'resting' | 'yielding' | 'backing off';

/**
 * Decides when this process may ask the backend for one lock again. It never polls.
 *
 * | state         | entered when                                         | becomes `open` when                              |
 * | ------------- | ---------------------------------------------------- | ------------------------------------------------ |
 * | `open`        | nothing has happened yet                             | -                                                |
 * | `asking`      | a request is sent (`begin`)                          | the lock is acquired                             |
 * | `resting`     | the lock was busy (`busy`)                           | a message arrives, or the holder's lease ends    |
 * | `yielding`    | other processes go first (`yieldTo`, `arrive`)       | this process's turn comes, or a timer fires      |
 * | `backing off` | there was no answer (`failed`)                       | a message arrives, or a growing pause has passed |
 *
 * Each state also becomes `open` when nobody waits any more. A message that arrives during a request is remembered. If
 * the answer is busy, the process then asks again instead of resting.
 *
 * The rank of a process is the number of processes that go before it. A process that releases the lock while n others
 * listen takes rank n, and each release message lowers its rank by one. At rank 0 it asks at once, at rank 1 after 10
 * ms at the latest, and at rank r after 15 + r × 10 ms. While the rank is above 0, a message does not wake the process,
 * but restarts this time.
 *
 * Newcomers have rank 0. A process without waiting callers keeps its rank for a while after its release, so that its
 * next caller does not overtake other processes. If one message wakes several processes, the first to ask gets the
 * lock. The backend gives the others tickets, and the number of a ticket becomes the rank. See
 * docs/internals/decisions/turns.md.
 */
export class TurnToAsk {
  private state: State = 'open';
  private subscription: Subscription | undefined;
  /** Listens for the release of a holder of another kind, whose messages do not count for `rank`. */
  private otherKind: Subscription | undefined;
  private timer: Timer | undefined;
  private rank = 0;
  private yieldUntil = 0;
  /** The number of release messages from this process that have not come back to it yet. */
  private ownMessagesPending = 0;
  /** Whether the lock may have been released since the current request was sent. */
  private missed = false;
  /** The current request was sent because of a message. */
  private woken = false;
  private messages = 0;
  private failing = false;
  /** Whether messages about releases arrive. */
  listens = false;
  private readonly backOff: BackOff;

  /**
   * @param subscribe listens for releases of this type, or of holders of another kind
   * @param retry called when the backend may be asked again
   * @param takeTicket draws a number for this process, among the processes that asked too late. Undefined if the
   * backend does not support this
   */
  constructor(
    private readonly subscribe: (listener: (wake: Wake) => void, heldAs?: Busy['heldAs']) => Subscription,
    private readonly runtime: Runtime,
    private readonly retry: () => void,
    private readonly takeTicket: (holder: string) => Promise<number> | undefined = () => undefined,
  ) {
    this.backOff = new BackOff(runtime);
  }

  /** Whether the backend must not be asked now. A message or a timer will call `retry`. */
  get resting(): boolean {
    return this.state !== 'open' && this.state !== 'asking';
  }

  /** Records that a request is sent. */
  begin(): void {
    this.missed = false;
    // A caller that tries once may ask while the others rest.
    if (this.state === 'open') this.state = 'asking';
  }

  /** Rests after a request that found the lock busy, unless a message arrived meanwhile. */
  busy(remaining: number, holder?: string, heldAs?: Busy['heldAs']): void {
    const { woken } = this;
    this.answered();
    if (heldAs !== undefined) this.listenTo(heldAs);
    else this.stopListeningToOthers();
    if (this.subscription !== undefined && this.missed) return;
    this.listen();
    this.rest('resting', remaining);
    if (woken && holder !== undefined) this.queueByTicket(holder);
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
    this.rank = 0;
    this.stopListeningToOthers();
    this.answered();
    this.open();
  }

  /** Records that a release is sent. This process also receives the message of its own release. */
  releasing(): void {
    if (this.subscription !== undefined) this.ownMessagesPending++;
  }

  /** Records that the release published no message, as far as is known, so that none is expected. */
  releasedSilently(): void {
    if (this.ownMessagesPending > 0) this.ownMessagesPending--;
  }

  /** Lets other processes go first. @param listeners how many of them received the release */
  yieldTo(listeners: number, hasWaiters: boolean): void {
    this.rank = listeners;
    if (listeners === 0) return;
    this.yieldUntil = this.runtime.monotonic() + listeners * TURN;
    if (!hasWaiters) return;
    this.listen();
    this.restForTurn();
  }

  /** Milliseconds for which this process still keeps its rank. */
  get yieldRemaining(): number {
    return this.rank > 0 ? Math.max(0, this.yieldUntil - this.runtime.monotonic()) : 0;
  }

  /** Handles the first caller of an empty queue. It lets other processes go first, for at most half of its waitTime. */
  arrive(remainingWait: number): void {
    const { yieldRemaining } = this;
    if (yieldRemaining === 0) {
      this.rank = 0;
      return;
    }
    this.listen();
    this.rest('yielding', Math.min(yieldRemaining, remainingWait / 2));
  }

  /** Asks again after a change that no message announces. */
  recheck(): void {
    this.wake();
  }

  /** Called when no caller waits any more. */
  onEmpty(): void {
    this.open();
  }

  /** Calls back when this process no longer has to keep its rank. */
  afterYield(callback: () => void): void {
    this.open();
    this.timer = this.runtime.timer(this.yieldRemaining, callback);
  }

  close(): void {
    this.open();
    this.subscription?.close();
    this.subscription = undefined;
    this.stopListeningToOthers();
    this.listens = false;
  }

  private answered(): void {
    this.failing = this.woken = false;
    this.backOff.reset();
  }

  private rest(state: 'resting' | 'yielding' | 'backing off', delay: number): void {
    this.state = state;
    this.timer?.cancel();
    this.timer = delay < 0 ? undefined : this.runtime.timer(delay + 1, () => this.wake(), 'keep-alive');
  }

  /** Rests until other processes have had their turns. Their release messages normally end this rest earlier. */
  private restForTurn(): void {
    this.rest('yielding', this.rank * TURN + (this.rank > 1 ? WORK : 0));
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
      this.ownMessagesPending = 0;
      this.onChange(false);
    });
  }

  private listenTo(heldAs: NonNullable<Busy['heldAs']>): void {
    if (this.otherKind !== undefined) return;
    const subscription = this.subscribe(() => this.onChange(false), heldAs);
    this.otherKind = subscription;
    subscription.ready.then(() => {
      if (this.otherKind === subscription) this.onChange(false);
    });
  }

  /** A line would take this process for others that listen outside it. */
  private stopListeningToOthers(): void {
    this.otherKind?.close();
    this.otherKind = undefined;
  }

  /**
   * Takes a ticket after another process was woken by the same message and was faster. With different ranks, the
   * processes ask at different times from then on.
   */
  private queueByTicket(holder: string): void {
    const { messages } = this;
    this.takeTicket(holder)?.then(
      (ticket) => {
        if (this.resting && this.messages === messages) this.rank = ticket;
      },
      () => {}, // without a ticket, this process asks again at the next message
    );
  }

  private heard(wake: Wake): void {
    this.messages++;
    if (wake.kind === 'resync') {
      this.ownMessagesPending = this.rank = 0;
    } else {
      if (this.ownMessagesPending > 0) {
        this.ownMessagesPending--;
        return;
      }
      if (this.rank > 0) this.rank--;
    }
    this.onChange(wake.kind === 'message');
  }

  /** Handles a possible release: asks now, when this process's turn comes, or after the current request. */
  private onChange(woken: boolean): void {
    if (!this.resting) this.missed = true;
    else if (this.rank > 0) this.restForTurn();
    else {
      this.woken = woken;
      this.wake();
    }
  }
}
