import type { LockBackend, LockType } from '../../backends/lock-backend.js';
import { LockConfigurationError } from '../errors.js';

/**
 * @param what how errors name the call
 * @throws LockConfigurationError where the backend has no locks of this type, with the reason
 */
export function assertSupported({ blocking, description }: LockBackend, type: LockType, what: string): void {
  const refusal = blocking?.refusal(type);
  if (refusal !== undefined)
    throw new LockConfigurationError(`${what}: ${description} has no locks of type '${type}': ${refusal}`);
}
