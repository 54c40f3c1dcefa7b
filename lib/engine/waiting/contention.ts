import type { Subscription, Wake } from '../../backends/lock-backend.js';
import type { Runtime, Timer } from '../../backends/runtime.js';

/** A waiter of rank r lets r others go first, and gives each so many milliseconds to take the lock. */
const TURN = 10;
/** As many more while it is not the next: whom it waits for may be at work, and ends within that time (see HandOff's tenure). */
const WORK = 15;
const FIRST_BACKOFF = 50;
const LONGEST_BACKOFF = 1_000;

/**
 * When this process may ask the backend for one lock again: after a message, when the holder's lease ends, when it is its turn
 * among the processes, or after an outage's pause. It never polls.
 *
 * Turns: who released a lock that n others listen for takes rank n. Each message lowers it by one; at rank 0 the next try comes at
 * once, at rank 1 after 10 ms at the latest, at rank r after 15 + r × 10 ms. Who leaves without waiting remembers its rank for a while
 * (it lingers), so that a caller who comes straight back does not overtake those who wait. Newcomers have rank 0: when several are
 * woken at once, the backend numbers those who came too late, and the number is their rank.
 */
export class Contention {
  /** Nothing is to be tried: a message or a timer will call `retry`. */
  resting = false;

  private subscription: Subscription | undefined;
  private timer: Timer | undefined;
  private rank = 0;
  private yieldUntil = 0;
  /** Messages of our own releases that are still to come back to us. */
  private ownMessagesPending = 0;
  private missed = false;
  /** A message let the try begin that is under way. */
  private woken = false;
  private heardSoFar = 0;
  private failures = 0;

  constructor(
    private readonly subscribe: (listener: (wake: Wake) => void) => Subscription,
    private readonly runtime: Runtime,
    private readonly retry: () => void,
    /** The backend's place for one who came too late, if it numbers them. */
    private readonly takeTicket: (holder: string) => Promise<number> | undefined = () => undefined,
  ) {}

  /** A try is sent. */
  begin(): void {
    this.missed = false;
  }

  /** A try found the lock busy: sleep, unless a message came meanwhile. */
  busy(remaining: number, holder?: string): void {
    const { woken } = this;
    this.failures = 0;
    this.woken = false;
    if (this.subscription !== undefined && this.missed) return;
    this.listen();
    this.rest(remaining);
    if (woken && holder !== undefined) this.queueByTicket(holder);
  }

  /**
   * A try failed: pause, longer each time, not in step with others.
   *
   * @returns whether it is the first failure in a row
   */
  failed(): boolean {
    const pause = Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** this.failures);
    this.rest(pause / 2 + (pause / 2) * this.runtime.random());
    return this.failures++ === 0;
  }

  acquired(): void {
    this.rank = this.failures = 0;
    this.woken = false;
    this.wakeUp();
  }

  /** A release is sent; if it publishes, the message comes back to us too. */
  releasing(): void {
    if (this.subscription !== undefined) this.ownMessagesPending++;
  }

  /** The release told nobody, or that is not known: then its message may wake us, but must not be waited for. */
  releasedSilently(): void {
    if (this.ownMessagesPending > 0) this.ownMessagesPending--;
  }

  /** A release was heard by `listeners` other processes: let them go first. */
  yieldTo(listeners: number, waiting: boolean): void {
    this.rank = listeners;
    if (listeners === 0) return;
    this.yieldUntil = this.runtime.monotonic() + listeners * TURN;
    if (!waiting) return;
    this.listen();
    this.restForTurn();
  }

  /** Milliseconds for which this process still remembers that others wait. */
  get yieldRemaining(): number {
    return this.rank > 0 ? Math.max(0, this.yieldUntil - this.runtime.monotonic()) : 0;
  }

  /** The first waiter comes to a free queue: it waits for those whom this process left behind, but not for long. */
  arrive(patience: number): void {
    const { yieldRemaining } = this;
    if (yieldRemaining === 0) {
      this.rank = 0;
      return;
    }
    this.listen();
    this.rest(Math.min(yieldRemaining, patience / 2));
  }

  /** Something changed that no message tells of. */
  recheck(): void {
    this.wake();
  }

  /** Nobody waits any more. */
  onEmpty(): void {
    this.wakeUp();
  }

  /** Calls back when it no longer lingers. */
  afterYield(callback: () => void): void {
    this.wakeUp();
    this.timer = this.runtime.timer(this.yieldRemaining, callback);
  }

  close(): void {
    this.wakeUp();
    this.subscription?.close();
    this.subscription = undefined;
  }

  private rest(delay: number): void {
    this.resting = true;
    this.timer?.cancel();
    this.timer = delay < 0 ? undefined : this.runtime.timer(delay + 1, () => this.wake(), 'keep-alive');
  }

  /** A look at the moment at which others hand the lock on would take it out of turn: later, there is a message first. */
  private restForTurn(): void {
    this.rest(this.rank * TURN + (this.rank > 1 ? WORK : 0));
  }

  private wakeUp(): void {
    this.resting = false;
    this.timer?.cancel();
    this.timer = undefined;
  }

  private wake(): void {
    if (!this.resting) return;
    this.wakeUp();
    this.retry();
  }

  private listen(): void {
    if (this.subscription !== undefined) return;
    const subscription = this.subscribe((wake) => this.heard(wake));
    this.subscription = subscription;
    // What was released before the subscription stood was not heard, by us or by others: look once more.
    subscription.ready.then(() => {
      if (this.subscription !== subscription) return;
      this.ownMessagesPending = 0;
      this.onChange(false);
    });
  }

  /** Others who were woken too were faster: from now on each comes at a message of its own. */
  private queueByTicket(holder: string): void {
    const { heardSoFar } = this;
    this.takeTicket(holder)?.then(
      (place) => {
        if (this.resting && this.heardSoFar === heardSoFar) this.rank = place;
      },
      () => {}, // then all try again, as before
    );
  }

  private heard(wake: Wake): void {
    this.heardSoFar++;
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

  /** Something may have changed: look when it is this process's turn, or after the try that is under way. */
  private onChange(woken: boolean): void {
    if (!this.resting) this.missed = true;
    else if (this.rank > 0) this.restForTurn();
    else {
      this.woken = woken;
      this.wake();
    }
  }
}
