import { ConnectionError } from './connection-error.js';

/**
 * Refuses what is not a database number: ioredis reads '3x' as 3, and uses database 0 for anything else.
 *
 * @throws ConnectionError
 */
export function checkDatabaseNumber(db: unknown, what: string): void {
  if (db === undefined || db === null || (typeof db === 'number' && Number.isSafeInteger(db) && db >= 0)) return;
  if (typeof db === 'string' && /^\d{1,9}$/.test(db)) return;
  throw new ConnectionError(`${what} must be a database number, such as 0`);
}
