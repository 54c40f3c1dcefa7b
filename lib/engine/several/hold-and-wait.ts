import type { Runtime, Timer } from '../../backends/runtime.js';
import type { HolderClient } from '../describe-holder.js';
import type { Milliseconds } from '../terms/duration.js';
import type { Caller } from '../wait/caller.js';

/** A lock that a caller wants together with others. */
export interface Wanted {
  readonly name: string;
  /** All processes acquire locks in the order of this key. */
  readonly sortKey: string;
  readonly taken: boolean;
  /** Whether the lock was acquired but is no longer held. */
  readonly stale: boolean;
  /** Whether the lease is fixed, and part of its time passed while the caller waited for other locks. */
  readonly aged: boolean;
  /** Waits for this lock alone, and takes it. */
  wait(waitTime: Milliseconds, caller: Caller<never>, departed: () => Error): Promise<void>;
  /** Ends a {@link wait}, which rejects. */
  stopWaiting(error: Error): void;
  /** Gives a fixed lease its whole time again, unless the lock is shared with an outer scope. */
  restartLease(): Promise<void>;
  giveBack(): Promise<void>;
  /** Describes the holder for errors. */
  describe(holder: string | undefined): { readonly client?: HolderClient | undefined; readonly who: string };
}

/** A caller counts as passed over when it has failed this many times … */
const FAILED_ATTEMPTS = 5;
/** … or has tried for this many milliseconds. */
const FAILED_FOR = 2_000;

/** How long a caller that was passed over may hold locks while it waits for others, in milliseconds. */
const LONGEST_HOLD = 1_000;

/** Never reported to the caller. */
const NOT_NEEDED = new Error('the position in the queue is no longer needed');

/** The part of the acquisition that {@link HoldAndWait} needs. */
export interface HoldAndWaitTerms {
  /** In sorted order. */
  readonly all: readonly Wanted[];
  /** How long a lock that is not renewed may be held while the caller waits for others, in milliseconds. */
  readonly longestHold: number;
  /** Rejects when the caller has left. */
  readonly waitFor: (wanted: Wanted) => Promise<void>;
  /** Ends early when the caller leaves. */
  readonly sleep: (pause: number) => Promise<void>;
}

/**
 * Lets a caller get several locks although other callers keep each of them busy. It waits for one lock after another,
 * in sorted order, and meanwhile holds those that it has got.
 *
 * Because of the order, such callers do not wait for each other in a cycle, unless the holder of one lock waits for
 * another one inside its scope. So all locks are given back after a second at most, and a second passes before the next
 * attempt. In a queue whose wait is longer than that, the caller keeps its position. If its turn comes while a lock
 * that sorts earlier is missing, it passes the turn on.
 */
export class HoldAndWait {
  private failedAttempts = 0;
  private readonly since: number;
  /** The queues in which the caller waits. */
  private readonly turns = new Map<Wanted, Promise<true>>();
  /** The lock whose turn may come now. */
  private next: Wanted | undefined;
  private running = false;
  private refuse: (error: Error) => void = () => {};
  /** Rejects when the caller is refused in one of the queues, whatever it waits for at that moment. */
  private readonly refused: Promise<never>;

  constructor(
    private readonly runtime: Runtime,
    private readonly terms: HoldAndWaitTerms,
  ) {
    this.since = runtime.monotonic();
    this.refused = new Promise((_, reject) => {
      this.refuse = reject;
    });
    this.refused.catch(() => {});
  }

  /**
   * Records that the caller got one lock while another one was busy.
   *
   * @returns how often that had happened before
   */
  noteFailedAttempt(): number {
    return this.failedAttempts++;
  }

  /**
   * Whether the caller was passed over. Only then does it hold locks while it waits for others. All other callers
   * cannot deadlock, whatever the order of their locks.
   */
  get due(): boolean {
    return this.failedAttempts >= FAILED_ATTEMPTS || this.runtime.monotonic() - this.since >= FAILED_FOR;
  }

  /** Settles when all locks are held. */
  async run(): Promise<void> {
    const { all, sleep } = this.terms;
    this.running = true;
    try {
      while (!(await this.takeInOrder())) {
        await Promise.all(all.map((wanted) => wanted.giveBack()));
        // The pause is at least as long as the locks were held. Without the random part, two callers in step could
        // obstruct each other forever.
        const pause = this.longestHold * (1 + this.runtime.random() / 2);
        await Promise.race([sleep(pause), this.refused]);
      }
    } finally {
      this.running = false;
      for (const wanted of this.turns.keys()) wanted.stopWaiting(NOT_NEEDED);
    }
  }

  private get longestHold(): number {
    return Math.min(LONGEST_HOLD, this.terms.longestHold);
  }

  /** Resolves to false when the time for holding locks has run out. */
  private async takeInOrder(): Promise<boolean> {
    let end = () => {};
    const over = new Promise<false>((resolve) => {
      end = () => resolve(false);
    });
    let timer: Timer | undefined;
    try {
      for (const wanted of this.terms.all) {
        this.next = wanted;
        if (!(await Promise.race([this.turn(wanted), over, this.refused]))) return false;
        timer ??= this.runtime.timer(this.longestHold, end);
      }
      return true;
    } finally {
      this.next = undefined;
      timer?.cancel();
    }
  }

  /** Joins the queue, unless the caller is in it already. Settles when the lock is held. */
  private turn(wanted: Wanted): Promise<true> {
    const waiting = this.turns.get(wanted);
    if (waiting !== undefined) return waiting;
    const since = this.runtime.monotonic();
    const turn = this.terms.waitFor(wanted).then(() => true as const);
    this.turns.set(wanted, turn);
    turn.then(
      () => this.turnCame(wanted, this.runtime.monotonic() - since),
      (error) => {
        this.turns.delete(wanted);
        if (error !== NOT_NEEDED) this.refuse(error);
      },
    );
    return turn;
  }

  private turnCame(wanted: Wanted, waited: number): void {
    this.turns.delete(wanted);
    if (wanted === this.next) return;
    wanted.giveBack().catch((error) => this.refuse(error));
    if (this.running && waited > LONGEST_HOLD) this.turn(wanted).catch(() => {}); // a failure refuses the caller
  }
}
