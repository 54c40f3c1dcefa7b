import type { HeldType, LockBackend } from '../../backends/lock-backend.js';
import { LockConfigurationError } from '../errors.js';

/**
 * @param what the name of the call in errors
 * @throws LockConfigurationError, with the reason, when the backend does not support locks of this type
 */
export function assertSupported(backend: LockBackend, type: HeldType, what: string): void {
  const { blocking, description, permitsRefusal } = backend;
  if (type === 'permits' && permitsRefusal !== undefined)
    throw new LockConfigurationError(`${what}: permits is not possible: ${permitsRefusal}`);
  const refusal = blocking?.refusal(type);
  if (refusal !== undefined)
    throw new LockConfigurationError(`${what}: ${description} has no locks of type '${type}': ${refusal}`);
}

/**
 * @param option how the caller has written it: `newest`
 * @throws LockConfigurationError when the backend has no one place that decides which caller is the newest
 */
export function assertNewest({ description, permitsRefusal }: LockBackend, what: string, option = 'newest'): void {
  if (permitsRefusal === undefined) return;
  throw new LockConfigurationError(
    `${what}: ${option} is not possible (${description}), because one Redis has to decide which call is the newest. Use a single Redis, Sentinel or a cluster without minReplicas, or leave out ${option}`,
  );
}

/** @throws LockConfigurationError when an option is only for one name */
export function assertForSeveral(
  { permits, newest }: { readonly permits: number | undefined; readonly newest: boolean },
  what: string,
): void {
  const option = permits !== undefined ? 'permits' : newest ? 'newest' : undefined;
  if (option === undefined) return;
  throw new LockConfigurationError(
    `${what}: ${option} is for one name, not for several. Acquire them one by one, or leave out ${option}`,
  );
}

/**
 * Refuses `release: 'background'` if a caller relies on the answer to the release.
 *
 * @param onLost the option as it was given; undefined if it was not
 * @param what the name of the call in errors
 * @throws LockConfigurationError with the reason
 */
export function assertMayNotConfirm(
  reason: string | undefined,
  onLost: 'throw' | 'warn' | undefined,
  what: string,
): void {
  if (reason !== undefined)
    throw new LockConfigurationError(`${what}: release: 'background' is not possible: ${reason}. Use 'confirmed'`);
  if (onLost === 'throw')
    throw new LockConfigurationError(
      `${what}: onLost: 'throw' and release: 'background' exclude each other: only the answer to the release can show that the lock was lost, and nobody waits for it. Use release: 'confirmed', or leave out onLost`,
    );
}

/** @throws LockConfigurationError, with the reason, when the backend has no single flights */
export function assertFlights({ flights, description }: LockBackend, what: string): void {
  if (flights !== undefined) return;
  throw new LockConfigurationError(
    `${what}: ${description} has no single flights, because it cannot store a result and release the lock in one step. Use a single Redis, Sentinel or a cluster, or the memory backend`,
  );
}

/**
 * @param what the name of the call in errors
 * @throws LockConfigurationError, with the reason, when locks of this backend cannot change processes
 */
export function assertDetachable({ adopt, adoptRefusal, description }: LockBackend, what: string): void {
  if (adopt !== undefined) return;
  const reason = adoptRefusal ?? 'it cannot transfer a lock to another process';
  throw new LockConfigurationError(`${what}: locks of this backend (${description}) cannot be detached: ${reason}`);
}
