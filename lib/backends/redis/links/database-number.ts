import { ConnectionError } from './connection-error.js';

/**
 * Refuses values that are not a database number. ioredis would read '3x' as 3, and use database 0 for other text.
 *
 * @throws ConnectionError
 */
export function checkDatabaseNumber(db: unknown, what: string): void {
  if (db === undefined || db === null || (typeof db === 'number' && Number.isSafeInteger(db) && db >= 0)) return;
  if (typeof db === 'string' && /^\d{1,9}$/.test(db)) return;
  throw new ConnectionError(`${what} must be a database number, such as 0`);
}
