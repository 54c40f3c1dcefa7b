import { type BackendError, because } from '../../lock-backend.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { ServerError } from '../connection/redis-errors.js';

export function timeoutError(
  { description }: RedisConnection,
  commandTimeout: number,
  outcome: BackendError['outcome'],
  reason?: string,
  validUntil?: number,
): BackendError {
  const message = because(`no answer within ${commandTimeout} ms`, reason);
  return new ServerError(description, message, 'unavailable', outcome, { validUntil });
}

export function closedError({ description }: RedisConnection): BackendError {
  return new ServerError(description, 'the lock backend was closed', 'unavailable', 'unknown');
}
