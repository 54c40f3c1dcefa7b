import { type BackendError, withReason } from '../../backends/backend-error.js';
import type { LockBackend } from '../../backends/lock-backend.js';
import { type LockError, LockKeyError, LockUnavailableError } from '../errors.js';

/** A semaphore or latch of one service. */
export interface Synchronizer {
  readonly name: string;
  /** The whole key, prefix included. */
  readonly key: string;
  /** Its name in errors: `the semaphore 'mail'`. */
  readonly what: string;
  /** The method that created its handle: `getSemaphore`. */
  readonly method: string;
  /** The number of permits with which it is created if missing. Undefined: it is not created. */
  readonly initial: number | undefined;
}

/** The caller's error for a failure of the backend. */
export function failedError(
  { name, what }: Pick<Synchronizer, 'name' | 'what'>,
  backend: LockBackend,
  failure: BackendError,
): LockError {
  const cause = withReason(backend, failure);
  if (cause.kind === 'key') return new LockKeyError(`${what} cannot be used: ${cause.message}`, name, { cause });
  return new LockUnavailableError(`The backend gave no usable answer about ${what}: ${cause.message}`, name, { cause });
}
