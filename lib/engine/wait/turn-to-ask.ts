import type { Busy, Subscription, Wake } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import { WhenToAsk } from './when-to-ask.js';

/** How long a process of rank r waits for each of the r processes in front of it, in milliseconds. */
const TURN = 10;
/**
 * Extra milliseconds for ranks above 1. TURN and WORK together are 25 ms, the longest time for which a process hands
 * the lock off to its own callers (see HandOffBudget).
 */
const WORK = 15;

/**
 * Decides when this process may ask again for a lock without a line, whose release wakes all processes that wait: a
 * read/write lock, or a lock of a quorum.
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
export class TurnToAsk extends WhenToAsk {
  private rank = 0;
  private yieldUntil = 0;
  /** The number of release messages from this process that have not come back to it yet. */
  private ownMessagesPending = 0;
  /** The current request was sent because of a message. */
  private woken = false;
  private messages = 0;

  /**
   * @param takeTicket draws a number for this process, among the processes that asked too late. Undefined if the
   * backend does not support this
   */
  constructor(
    subscribe: (listener: (wake: Wake) => void, heldAs?: Busy['heldAs']) => Subscription,
    runtime: Runtime,
    retry: () => void,
    private readonly takeTicket: (holder: string) => Promise<number> | undefined = () => undefined,
  ) {
    super(subscribe, runtime, retry);
  }

  override busy(remaining: number, holder?: string, heldAs?: Busy['heldAs']): boolean {
    const { woken } = this;
    const rests = super.busy(remaining, holder, heldAs);
    if (rests && woken && holder !== undefined) this.queueByTicket(holder);
    return rests;
  }

  override acquired(): void {
    this.rank = 0;
    super.acquired();
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
  override get usefulFor(): number {
    return this.rank > 0 ? Math.max(0, this.yieldUntil - this.runtime.monotonic()) : 0;
  }

  /** Handles the first caller of an empty queue. It lets other processes go first, for at most half of its waitTime. */
  arrive(remainingWait: number): void {
    const { usefulFor } = this;
    if (usefulFor === 0) {
      this.rank = 0;
      return;
    }
    this.listen();
    this.rest('yielding', Math.min(usefulFor, remainingWait / 2));
  }

  protected override answered(): void {
    this.woken = false;
    super.answered();
  }

  /** Rests until other processes have had their turns. Their release messages normally end this rest earlier. */
  private restForTurn(): void {
    this.rest('yielding', this.rank * TURN + (this.rank > 1 ? WORK : 0));
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

  protected override confirmed(): void {
    this.ownMessagesPending = 0;
  }

  protected override heard(wake: Wake): void {
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
    super.heard(wake);
  }

  protected override onChange(woken: boolean): void {
    if (this.resting && this.rank > 0) return this.restForTurn();
    if (this.resting) this.woken = woken;
    super.onChange(woken);
  }
}
