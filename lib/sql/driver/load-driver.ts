import { LockConfigurationError } from '../../engine/errors.js';

/**
 * Imports a driver when it is first needed.
 *
 * @throws LockConfigurationError naming the package to install
 */
export async function loadDriver<T>(name: 'pg' | 'mysql2', load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const message = `nestjs-redis-lock/sql: the package '${name}' could not be loaded; install it: npm install ${name}`;
    throw new LockConfigurationError(message, { cause });
  }
}
