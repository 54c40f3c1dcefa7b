import type { HeldType, LockBackend } from '../../backends/lock-backend.js';
import { LockConfigurationError } from '../errors.js';

/**
 * @param what the name of the call in errors
 * @throws LockConfigurationError, with the reason, when the backend does not support locks of this type
 */
export function assertSupported({ blocking, description }: LockBackend, type: HeldType, what: string): void {
  const refusal = blocking?.refusal(type);
  if (refusal !== undefined)
    throw new LockConfigurationError(`${what}: ${description} has no locks of type '${type}': ${refusal}`);
}
