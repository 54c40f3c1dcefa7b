import { BackendError } from '../../lock-backend.js';
import type { RedisConnection } from '../connection/redis-connection.js';

export function timeoutError(
  { description }: RedisConnection,
  commandTimeout: number,
  outcome: BackendError['outcome'],
  reason?: string,
  validUntil?: number,
): BackendError {
  const message = `${description}: no answer within ${commandTimeout} ms${reason === undefined ? '' : ` (${reason})`}`;
  return new BackendError(message, 'unavailable', outcome, { validUntil });
}

export function closedError({ description }: RedisConnection): BackendError {
  return new BackendError(`${description}: the lock backend was closed`, 'unavailable', 'unknown');
}
