import type { BackOff } from '../backends/back-off.js';
import { type BackendError, type LockBackend, noAnswer } from '../backends/lock-backend.js';
import { deadlineTimer, type Runtime, type Timer } from '../backends/runtime.js';
import { LockAbortedError, LockBusyError, LockLostError, LockUnavailableError } from '../engine/errors.js';
import type { WaitTerms } from '../engine/waiting/caller.js';

/** The time that one call has for its tries. */
export class Deadline {
  /** Aborts when there is no time left, or the caller's own signal does. */
  readonly signal: AbortSignal;
  private readonly controller = new AbortController();
  private readonly end: number;
  private readonly timer: Timer | undefined;

  constructor(
    private readonly runtime: Runtime,
    { waitTime, signal }: WaitTerms,
  ) {
    this.end = runtime.monotonic() + waitTime;
    this.signal = signal === undefined ? this.controller.signal : AbortSignal.any([this.controller.signal, signal]);
    if (waitTime > 0 && waitTime !== Number.POSITIVE_INFINITY)
      this.timer = deadlineTimer(runtime, waitTime, () => this.controller.abort(), 'keep-alive');
  }

  /** Milliseconds. */
  get left(): number {
    return Math.max(0, this.end - this.runtime.monotonic());
  }

  /** It was this deadline that ended a try. */
  get passed(): boolean {
    return this.controller.signal.aborted;
  }

  cancel(): void {
    this.timer?.cancel();
  }

  /** Settles after `delay` milliseconds, or when the deadline comes first. */
  sleep(delay: number): Promise<void> {
    const { runtime, signal, left } = this;
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const end = () => {
        timer.cancel();
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = runtime.timer(Math.min(left, delay), end, 'keep-alive');
      signal.addEventListener('abort', end);
    });
  }
}

/**
 * Tries until it succeeds, fails for good, or the time is over: then it fails with what the last try failed with. A try that gets no
 * answer is cut off by the deadline's signal.
 *
 * @param backends who was asked, for what it fails with when none of them answers
 * @param backOff pauses after each try
 */
export async function retryUntilDeadline<T>(
  runtime: Runtime,
  terms: WaitTerms,
  name: string,
  backends: readonly LockBackend[],
  backOff: BackOff,
  attempt: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  const deadline = new Deadline(runtime, terms);
  try {
    for (let last: unknown; ; ) {
      try {
        return await attempt(deadline);
      } catch (error) {
        if (deadline.passed && error instanceof LockAbortedError) throw last ?? unanswered(name, backends, terms);
        if (!isRetryable(error) || deadline.left === 0) throw error;
        last = error;
      }
      await deadline.sleep(backOff.next());
    }
  } finally {
    deadline.cancel();
  }
}

function unanswered(name: string, backends: readonly LockBackend[], { waitTime }: WaitTerms): LockUnavailableError {
  const silent = backends.find(({ connectionError }) => connectionError !== undefined) ?? backends[0];
  const cause = noAnswer(silent, waitTime);
  return new LockUnavailableError(`The lock '${name}' could not be acquired: ${cause.message}`, name, { cause });
}

/** Whether another try may do better. */
export function isRetryable(error: unknown): boolean {
  if (error instanceof LockBusyError || error instanceof LockLostError) return true;
  if (!(error instanceof LockUnavailableError)) return false;
  const { kind = 'unavailable' } = (error.cause ?? {}) as Partial<BackendError>;
  return kind === 'unavailable';
}
