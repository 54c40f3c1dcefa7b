import { type BackendError, noAnswer, withReason } from '../../backends/backend-error.js';
import type { LockBackend } from '../../backends/lock-backend.js';
import { LockBusyError, LockError, LockKeyError, LockUnavailableError } from '../errors.js';
import type { PermitWaiter } from './permit-waiter.js';
import type { Synchronizer } from './synchronizer.js';

/** The error that a caller gets for a failure of the backend. */
export function failedError(
  { name, what }: Pick<Synchronizer, 'name' | 'what'>,
  backend: LockBackend,
  failure: Error,
): LockError {
  if (failure instanceof LockError) return failure;
  const cause = withReason(backend, failure as BackendError);
  if (cause.kind === 'key') return new LockKeyError(`${what} cannot be used: ${cause.message}`, name, { cause });
  return new LockUnavailableError(`The backend gave no usable answer about ${what}: ${cause.message}`, name, { cause });
}

/** The wait was over before the backend answered. */
export function unansweredError(
  { name, what, terms }: PermitWaiter<never>,
  backend: LockBackend,
): LockUnavailableError {
  const cause = noAnswer(backend, terms.waitTime);
  return new LockUnavailableError(`The backend gave no answer about ${what}: ${cause.message}`, name, { cause });
}

/** The wait was over before the permits were available. */
export function permitsBusyError({ name, what, permits, terms }: PermitWaiter<never>): LockBusyError {
  const within = terms.waitTime > 0 ? ` within ${terms.waitTime} ms` : '';
  const wanted = permits === 1 ? `A permit of ${what} was` : `${permits} permits of ${what} were`;
  return new LockBusyError(`${wanted} not available${within}`, name, -1, undefined);
}
