import { nearestName } from '../../nearest-name.js';
import { ConnectionError } from './connection-error.js';

/** The options that a client library knows. */
export interface KnownOptions {
  readonly library: string;
  readonly values: readonly string[];
  /** Options that may be functions. */
  readonly functions: readonly string[];
  /** Names that other clients and frameworks use, each with what to write instead. */
  readonly others: Readonly<Record<string, string>>;
}

/**
 * Refuses options that a client library does not know. It would ignore them, and could connect to localhost or without
 * TLS. A version of the library that is newer than this list may know more: its users create the client themselves.
 *
 * @param what how the error names the object
 * @throws ConnectionError that names the option, and says what to do
 */
export function checkOptionNames(options: object, what: string, known: KnownOptions): void {
  const { library, values, functions, others } = known;
  for (const [name, value] of Object.entries(options)) {
    if (functions.includes(name)) continue;
    if (typeof value === 'function') {
      throw new ConnectionError(
        `${what} has a function '${name}', which is not an option of ${library}: this looks like a mock, or like a client of another library. In tests, use backend: 'memory' or nestjs-redis-lock/testing`,
      );
    }
    if (values.includes(name)) continue;
    const remedy = Object.hasOwn(others, name) ? others[name] : guess(name, [...values, ...functions]);
    throw new ConnectionError(`${what} has '${name}', which ${library} would ignore: ${remedy}`);
  }
}

function guess(name: string, names: readonly string[]): string {
  const nearest = nearestName(name, names);
  if (nearest !== undefined) return `did you mean '${nearest}'?`;
  return 'remove it (or, if your version has this option, create the client yourself, and give it as the connection)';
}
