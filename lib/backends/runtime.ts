/** The longest timer of Node.js, in milliseconds. With a longer one, setTimeout would fire at once. */
export const LONGEST_TIMER = 2 ** 31 - 1;

/** A timer that can be cancelled. @publicApi */
export interface Timer {
  cancel(): void;
}

/** A moment on both clocks of this process. @publicApi */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

/**
 * Time, randomness and ids for the engine and the memory backend. A seeded simulation replaces it to control all of
 * them; production code uses `nodeRuntime`.
 *
 * @publicApi
 */
export interface Runtime {
  /** Milliseconds that never go back. They may stop while the machine is suspended. */
  monotonic(): number;

  /** Milliseconds since 1970, by this machine's clock. */
  wall(): number;

  /**
   * Calls back after `delay` milliseconds (at most 2³¹−1), outside any lock scope. Keeps the process alive only with
   * `'keep-alive'`.
   */
  timer(delay: number, callback: () => void, keepAlive?: 'keep-alive'): Timer;

  /** Calls back after one turn of the event loop, outside any lock scope. */
  nextTurn(callback: () => void): void;

  /** A number in [0, 1). */
  random(): number;

  /** An id that no other process uses: `<8>-<4>-<4>-<4>-<12>` hexadecimal digits. */
  uuid(): string;

  /** Runs `work` outside any lock scope, so that resources opened by it do not keep the caller's scope alive. */
  detached<T>(work: () => T): T;
}

/** The present moment. @publicApi */
export function momentOf(runtime: Runtime): Moment {
  return { monotonic: runtime.monotonic(), wall: runtime.wall() };
}

/**
 * A timer for giving up on an answer. Node.js runs timers before it reads sockets. After a blocked event loop, a plain
 * timer would fire before answers that arrived long ago; this timer lets them be read first.
 *
 * @publicApi
 */
export function deadlineTimer(runtime: Runtime, delay: number, giveUp: () => void, keepAlive?: 'keep-alive'): Timer {
  return new DeadlineTimer(runtime, delay, giveUp, keepAlive);
}

/** This is a class for the reason given in engine/collections/list-of.ts. */
class DeadlineTimer implements Timer {
  private readonly timer: Timer;
  private cancelled = false;

  constructor(runtime: Runtime, delay: number, giveUp: () => void, keepAlive?: 'keep-alive') {
    const afterAnswers = () => {
      if (!this.cancelled) giveUp();
    };
    this.timer = runtime.timer(delay, () => runtime.nextTurn(afterAnswers), keepAlive);
  }

  cancel(): void {
    this.cancelled = true;
    this.timer.cancel();
  }
}

/** A request gets at most this many milliseconds more after the event loop was blocked. */
const LONGEST_GRACE = 1_000;
/** A timer that fires less than this many milliseconds late was not delayed by a blocked event loop. */
const ON_TIME = 2;

/**
 * A {@link deadlineTimer} for answers to requests. If the event loop was blocked, requests get that time in addition,
 * within bounds. The reason is that node-redis writes a command one turn after it was sent, so a server may receive it
 * only when the loop continues.
 *
 * @param due on the monotonic clock
 * @param giveUp receives a moment. Requests that were due by then are overdue
 */
export function answerTimer(
  runtime: Runtime,
  due: number,
  giveUp: (moment: number) => void,
  keepAlive?: 'keep-alive',
): Timer {
  return new AnswerTimer(runtime, due, giveUp, keepAlive);
}

/** This is a class for the reason given in engine/collections/list-of.ts. */
class AnswerTimer implements Timer {
  private timer: Timer;

  constructor(runtime: Runtime, due: number, giveUp: (moment: number) => void, keepAlive: 'keep-alive' | undefined) {
    const firstTime = Math.max(1, due - runtime.monotonic());
    const first = () => {
      const now = runtime.monotonic();
      const late = now - due;
      if (late < ON_TIME) return giveUp(now);
      this.timer = deadlineTimer(runtime, Math.min(late, LONGEST_GRACE), () => giveUp(due), keepAlive);
    };
    this.timer = deadlineTimer(runtime, firstTime, first, keepAlive);
  }

  cancel(): void {
    this.timer.cancel();
  }
}
