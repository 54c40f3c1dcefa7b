import { type BackendError, type LockBackend, noAnswer, withReason } from '../../backends/lock-backend.js';
import { LockAbortedError, LockBusyError, LockKeyError, LockUnavailableError } from '../errors.js';
import type { Waiter } from './waiter.js';

/** What a process knows of who stands in the way. */
export interface KnownHolder {
  readonly holder: string | undefined;
  /** The holder is a caller of this process. */
  readonly here: boolean;
  /** Milliseconds until its lease ends unless renewed; −1 when unknown or without limit. */
  readonly remaining: number;
  /** It is known that its lease is not renewed. */
  readonly fixed?: boolean;
}

type Refused = Pick<Waiter, 'name' | 'terms'>;

export function busyError({ name, terms }: Waiter, { holder, here, remaining, fixed }: KnownHolder): LockBusyError {
  const waited = terms.waitTime > 0 ? `: not free within ${terms.waitTime} ms` : '';
  const who = `${holder ?? 'another owner'}${here ? ' (this process)' : ''}`;
  const lease = remaining >= 0 ? `, its lease ends in ${remaining} ms${fixed ? '' : ' unless renewed'}` : '';
  return new LockBusyError(
    `The lock '${name}' is busy${waited}; held by ${who}${lease}`,
    name,
    remaining,
    holder,
    fixed,
  );
}

/** @param failure what the last call failed with; undefined: none was answered */
export function unavailableError(
  { name, terms }: Refused,
  backend: LockBackend,
  failure?: BackendError,
): LockUnavailableError {
  const cause = failure === undefined ? noAnswer(backend, terms.waitTime) : withReason(backend, failure);
  return new LockUnavailableError(`The lock '${name}' could not be acquired: ${cause.message}`, name, { cause });
}

export function shutdownError(what: string, name: string): LockAbortedError {
  return new LockAbortedError(`${what}: the lock service is shutting down and gives no more locks`, name);
}

/** The backend will not give this lock, however often it is asked. */
export function permanentError(waiter: Refused, backend: LockBackend, cause: BackendError): Error {
  if (cause.kind !== 'key') return unavailableError(waiter, backend, cause);
  return new LockKeyError(`The lock '${waiter.name}' cannot be used: ${cause.message}`, waiter.name, { cause });
}
