import { type BackendError, because } from '../../lock-backend.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { ServerError } from '../connection/redis-errors.js';

/** @param wasSent whether the request has left this process. If not, no server was asked */
export function timeoutError(
  { description }: RedisConnection,
  commandTimeout: number,
  outcome: BackendError['outcome'],
  reason?: string,
  validUntil?: number,
  wasSent = true,
): BackendError {
  const message = because(`${wasSent ? 'no answer' : 'not sent'} within ${commandTimeout} ms`, reason);
  return new ServerError(description, message, 'unavailable', outcome, { validUntil });
}

export function closedError({ description }: RedisConnection): BackendError {
  return new ServerError(description, 'the lock backend was closed', 'unavailable', 'unknown');
}
