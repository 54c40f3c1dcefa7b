import { nearestName } from '../../nearest-name.js';
import { ConnectionError } from './connection-error.js';

/** How a client library says where its servers are. */
export interface Dialect {
  readonly library: string;
  /** The options that say where. Without any, the library connects to localhost. */
  readonly where: readonly string[];
  /** Other options of the library that resemble those. */
  readonly alike?: readonly string[];
  /** What other libraries call such options, each with what to write instead. This library ignores them. */
  readonly others: Readonly<Record<string, string>>;
}

/**
 * Refuses options that do not say where the servers are. The library would ignore what it does not know, and connect to
 * localhost. All other options are checked by the compiler alone.
 *
 * @param what how the error names the object
 * @throws ConnectionError that names the option, and says what to do
 */
export function checkSaysWhere(options: object, what: string, dialect: Dialect): void {
  checkMisleading(options, what, dialect);
  const { library, where } = dialect;
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  if (given.some(([name, value]) => where.includes(name) && typeof value !== 'function')) return;
  const isMock = given.some(([, value]) => typeof value === 'function');
  const names = given.map(([name]) => `'${name}'`).join(', ');
  throw new ConnectionError(
    `${what} does not say where Redis is, ${given.length === 0 ? 'because it is empty' : `but has ${names}`}: ${library} takes ${where.join(', ')}. ${
      isMock
        ? "If this is a mock: in tests, use backend: 'memory' or nestjs-redis-lock/testing"
        : 'Is a setting or an environment variable missing?'
    }`,
  );
}

/**
 * Refuses options by which somebody meant to say where the servers are, in vain.
 *
 * @throws ConnectionError that names the option, and says what to do
 */
export function checkMisleading(options: object, what: string, { library, where, alike = [], others }: Dialect): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || where.includes(name) || alike.includes(name)) continue;
    const nearest = nearestName(name, where);
    const remedy = Object.hasOwn(others, name) ? others[name] : nearest && `did you mean '${nearest}'?`;
    if (remedy !== undefined)
      throw new ConnectionError(`${what} has '${name}', which ${library} would ignore: ${remedy}`);
  }
}
