import { BackOff } from '../../backends/back-off.js';
import type { Subscription, Wake } from '../../backends/lock-backend.js';
import type { Runtime, Timer } from '../../backends/runtime.js';

/**
 * A waiter of rank r lets r other processes go first, and gives each of them this many milliseconds to take the lock.
 */
const TURN = 10;
/**
 * Extra milliseconds for ranks above 1. With the turn, they make 25 ms: how long a process may hand the lock off (see
 * HandOffBudget).
 */
const WORK = 15;

/**
 * `open`: the backend may be asked. `asking`: it was asked. `resting`, `yielding`, `backing off`: nothing may be tried
 * until a message or a timer calls `retry`; see {@link TurnToAsk}.
 */
type State = 'open' | 'asking' | 'resting' | 'yielding' | 'backing off';

/**
 * Decides when this process may ask the backend for one lock again. It never polls.
 *
 * | state         | entered                                       | left for `open`, with a retry                   |
 * | ------------- | --------------------------------------------- | ----------------------------------------------- |
 * | `open`        | at first; lock acquired, or nobody waits      | -                                               |
 * | `asking`      | with a request (`begin`)                      | when the lock is acquired                       |
 * | `resting`     | the lock is busy (`busy`)                     | message at rank 0, or end of the holder's lease |
 * | `yielding`    | `yieldTo`, `arrive`, or message above rank 0  | message that leads to rank 0, or after its time |
 * | `backing off` | there was no answer (`failed`)                | message at rank 0, or after a growing pause     |
 *
 * A message that arrives while a request is under way is remembered: after a busy answer, the process then asks again
 * instead of resting.
 *
 * Ranks: a process that releases a lock to which n others listen takes rank n. Each message lowers the rank by one. At
 * rank 0 the next attempt comes at once, at rank 1 after 10 ms at the latest, at rank r after 15 + r × 10 ms. A process
 * that releases the lock while none of its own callers waits remembers its rank for a while, so that a caller that
 * comes straight back does not overtake the others. Newcomers have rank 0. When several are woken at once, the backend
 * gives those that came too late a ticket, whose number is their rank. See docs/decisions/turns.md for the
 * measurements.
 */
export class TurnToAsk {
  private state: State = 'open';
  private subscription: Subscription | undefined;
  private timer: Timer | undefined;
  private rank = 0;
  private yieldUntil = 0;
  /** Messages of this process's own releases that have not arrived here yet. */
  private ownMessagesPending = 0;
  /** Something has changed since the current attempt was sent. */
  private missed = false;
  /** A message caused the current attempt. */
  private woken = false;
  private messages = 0;
  private failing = false;
  private readonly backOff: BackOff;

  /**
   * @param retry called when the backend may be asked again
   * @param takeTicket numbers the processes that came too late, if the backend supports this
   */
  constructor(
    private readonly subscribe: (listener: (wake: Wake) => void) => Subscription,
    private readonly runtime: Runtime,
    private readonly retry: () => void,
    private readonly takeTicket: (holder: string) => Promise<number> | undefined = () => undefined,
  ) {
    this.backOff = new BackOff(runtime);
  }

  /** Whether nothing may be tried now. A message or a timer will call `retry`. */
  get resting(): boolean {
    return this.state !== 'open' && this.state !== 'asking';
  }

  /** Notes that a request is sent. */
  begin(): void {
    this.missed = false;
    // A caller that tries once may ask while the others rest.
    if (this.state === 'open') this.state = 'asking';
  }

  /** Rests after a request that found the lock busy, unless a message arrived meanwhile. */
  busy(remaining: number, holder?: string): void {
    const { woken } = this;
    this.answered();
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
    this.answered();
    this.open();
  }

  /** Notes that a release is sent. If it publishes a message, this process receives that message, too. */
  releasing(): void {
    if (this.subscription !== undefined) this.ownMessagesPending++;
  }

  /**
   * Notes that the release published no message, or may not have. A message may still arrive, but must not be waited
   * for.
   */
  releasedSilently(): void {
    if (this.ownMessagesPending > 0) this.ownMessagesPending--;
  }

  /** Lets the `listeners` other processes that received a release go first. */
  yieldTo(listeners: number, hasWaiters: boolean): void {
    this.rank = listeners;
    if (listeners === 0) return;
    this.yieldUntil = this.runtime.monotonic() + listeners * TURN;
    if (!hasWaiters) return;
    this.listen();
    this.restForTurn();
  }

  /** Milliseconds for which this process still remembers that others wait. */
  get yieldRemaining(): number {
    return this.rank > 0 ? Math.max(0, this.yieldUntil - this.runtime.monotonic()) : 0;
  }

  /** Handles the first caller of an empty queue: it waits for the processes that should go first, but not for long. */
  arrive(remainingWait: number): void {
    const { yieldRemaining } = this;
    if (yieldRemaining === 0) {
      this.rank = 0;
      return;
    }
    this.listen();
    this.rest('yielding', Math.min(yieldRemaining, remainingWait / 2));
  }

  /** Asks again after a change that is not announced by a message. */
  recheck(): void {
    this.wake();
  }

  /** No caller waits any more. */
  onEmpty(): void {
    this.open();
  }

  /** Calls back when this process no longer has to remember that others wait. */
  afterYield(callback: () => void): void {
    this.open();
    this.timer = this.runtime.timer(this.yieldRemaining, callback);
  }

  close(): void {
    this.open();
    this.subscription?.close();
    this.subscription = undefined;
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

  /**
   * Rests until other processes have had their turns. A message normally comes first; an earlier attempt could take the
   * lock out of turn.
   */
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
    // A release before the subscription was confirmed was missed, by this process and by others: ask once more.
    subscription.ready.then(() => {
      if (this.subscription !== subscription) return;
      this.ownMessagesPending = 0;
      this.onChange(false);
    });
  }

  /**
   * Takes a ticket, because other processes woken by the same message were faster. From now on, each process is woken
   * by a separate message.
   */
  private queueByTicket(holder: string): void {
    const { messages } = this;
    this.takeTicket(holder)?.then(
      (ticket) => {
        if (this.resting && this.messages === messages) this.rank = ticket;
      },
      () => {}, // without tickets, all of them try again at the next message
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

  /** Handles a possible release: asks when it is this process's turn, or after the current attempt. */
  private onChange(woken: boolean): void {
    if (!this.resting) this.missed = true;
    else if (this.rank > 0) this.restForTurn();
    else {
      this.woken = woken;
      this.wake();
    }
  }
}
