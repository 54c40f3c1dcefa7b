import { BackendError } from '../../backend.js';
import { LockError } from '../../engine/errors.js';
import { UnsuitableServer } from '../server/lock-server.js';

/**
 * Errors that a retry cannot resolve: a wrong user, database, table or permission, an account that cannot log in (1130,
 * 1820, 1862, 3118, 4151), a name that a database cannot store, or a log that cannot be written (1665). SQLSTATE of
 * PostgreSQL, error numbers of MySQL and MariaDB.
 */
const PERMANENT_STATES = [
  '28P01',
  '28000',
  '3D000',
  '3F000',
  '42501',
  '42703',
  '42P01',
  '42804',
  '42883',
  '22021',
  '22P05',
];
const PERMANENT_NUMBERS = [1044, 1045, 1049, 1054, 1130, 1142, 1143, 1146, 1227, 1665, 1698, 1820, 1862, 3118, 4151];

/** The members of drivers' errors. */
interface DriverError {
  readonly code?: unknown;
  readonly errno?: unknown;
}

/** Converts errors of drivers into {@link BackendError}s without secrets. */
export class SqlFailures {
  /** @param secrets texts that no message may contain: the password, plain and as written in the URL */
  constructor(
    private readonly description: string,
    private readonly secrets: readonly string[],
  ) {}

  /** @param outcome the outcome of the call, if the error does not show it */
  toBackendError(thrown: unknown, outcome: BackendError['outcome'] = 'refused', hint = ''): BackendError {
    if (thrown instanceof BackendError) return thrown;
    const message = `${this.description}: ${this.scrub(textOf(thrown))}${hint}`;
    return new BackendError(message, isPermanent(thrown) ? 'denied' : 'unavailable', outcome);
  }

  scrub(text: string): string {
    return this.secrets.reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
  }
}

export function isPermanent(thrown: unknown): boolean {
  if (thrown instanceof LockError || thrown instanceof UnsuitableServer) return true;
  const { code, errno } = thrown as DriverError;
  return PERMANENT_STATES.includes(String(code)) || PERMANENT_NUMBERS.includes(Number(errno));
}

/** An error that stands for several addresses has no message. */
function textOf(thrown: unknown): string {
  const { message, code, errors } = thrown as Error & DriverError & { readonly errors?: readonly Error[] };
  return message || errors?.map((error) => error.message).join(', ') || String(code ?? thrown);
}
