import { type BackendError, type LockBackend, noAnswer, withReason } from '../../backends/lock-backend.js';
import { LockBusyError, LockError, LockKeyError, LockUnavailableError } from '../errors.js';
import type { PermitWaiter, Synchronizer } from './permit-request.js';

/** What a caller hears of a backend that failed. */
export function backendFailure(
  { name, what }: Pick<Synchronizer, 'name' | 'what'>,
  backend: LockBackend,
  failure: Error,
): LockError {
  if (failure instanceof LockError) return failure;
  const cause = withReason(backend, failure as BackendError);
  if (cause.kind === 'key') return new LockKeyError(`${what} cannot be used: ${cause.message}`, name, { cause });
  return new LockUnavailableError(`There was no usable answer about ${what}: ${cause.message}`, name, { cause });
}

/** The wait was over before anything was known. */
export function noAnswerError({ name, what, terms }: PermitWaiter<never>, backend: LockBackend): LockUnavailableError {
  const cause = noAnswer(backend, terms.waitTime);
  return new LockUnavailableError(`There was no answer about ${what}: ${cause.message}`, name, { cause });
}

export function unavailablePermitsError({ name, what, permits, terms }: PermitWaiter<never>): LockBusyError {
  const within = terms.waitTime > 0 ? ` within ${terms.waitTime} ms` : '';
  const wanted = permits === 1 ? 'A permit' : `${permits} permits`;
  return new LockBusyError(`${wanted} of ${what}: not available${within}`, name, -1, undefined);
}
