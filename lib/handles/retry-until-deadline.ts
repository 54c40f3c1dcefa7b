import type { BackOff } from '../backends/back-off.js';
import { type BackendError, type LockBackend, noAnswer } from '../backends/lock-backend.js';
import type { Runtime } from '../backends/runtime.js';
import { LockAbortedError, LockBusyError, LockLostError, LockUnavailableError } from '../engine/errors.js';
import type { WaitTerms } from '../engine/waiting/waiter.js';
import { Deadline } from './deadline.js';
import type { LockHandle } from './lock-handle.js';

export interface RetryOptions {
  readonly runtime: Runtime;
  readonly terms: WaitTerms;
  readonly lock: Pick<LockHandle, 'name' | 'isOutageOver'>;
  /** The backends that the attempts ask. If none of them answers, the error gives their reason. */
  readonly backends: readonly LockBackend[];
  /** The pauses between attempts. */
  readonly backOff: BackOff;
}

/**
 * Repeats an attempt until it succeeds, fails permanently, or the time has ended. It then throws the error of the last
 * attempt. The deadline's signal ends an attempt without an answer.
 */
export async function retryUntilDeadline<T>(
  { runtime, terms, lock, backends, backOff }: RetryOptions,
  attempt: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  const { name } = lock;
  const calledAt = runtime.monotonic();
  const deadline = new Deadline(name, runtime, terms);
  let lastFailure: unknown;
  try {
    for (;;) {
      try {
        return await attempt(deadline);
      } catch (error) {
        if (deadline.passed && error instanceof LockAbortedError)
          throw lastFailure ?? unansweredError(name, backends, terms);
        if (!isRetryable(error) || deadline.remaining === 0) throw error;
        if (lock.isOutageOver(calledAt, terms.outageTimeout))
          throw error instanceof LockUnavailableError ? error : unansweredError(name, backends, terms);
        lastFailure = error;
      }
      await deadline.sleep(backOff.next());
    }
  } finally {
    deadline.cancel();
  }
}

/** Whether another attempt may succeed. */
export function isRetryable(error: unknown): boolean {
  if (error instanceof LockBusyError || error instanceof LockLostError) return true;
  if (!(error instanceof LockUnavailableError)) return false;
  const { kind = 'unavailable' } = (error.cause ?? {}) as Partial<BackendError>;
  return kind === 'unavailable';
}

function unansweredError(
  name: string,
  backends: readonly LockBackend[],
  { waitTime }: WaitTerms,
): LockUnavailableError {
  const silent = backends.find(({ connectionError }) => connectionError !== undefined) ?? backends[0];
  const cause = noAnswer(silent, waitTime);
  return new LockUnavailableError(`The lock '${name}' could not be acquired: ${cause.message}`, name, { cause });
}
