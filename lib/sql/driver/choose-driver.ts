import type { Pool as MysqlPool } from 'mysql2';
import type { Pool as PostgresPool } from 'pg';
import { type OptionalPackage, tooOld, tooOldFor } from '../../backends/installed-version.js';
import type { RowLocksOptions } from '../row-locks-options.js';
import { mysqlDriver, mysqlPoolDriver, sslOf } from './mysql-driver.js';
import { postgresDriver, postgresPoolDriver } from './postgres-driver.js';
import type { Driver } from './sql-connection.js';

/** The time limit for opening a connection, in milliseconds. */
const CONNECT_TIMEOUT = 5_000;

export interface DriverChoice {
  readonly kind: 'postgres' | 'mysql';
  readonly driver: Driver;
  /** Secrets that must not appear in any message. */
  readonly secrets: readonly string[];
}

const KINDS: Readonly<Record<string, DriverChoice['kind']>> = {
  'postgres:': 'postgres',
  'postgresql:': 'postgres',
  'mysql:': 'mysql',
  'mariadb:': 'mysql',
};

/**
 * A driver for this URL, or what is wrong with it. The message does not quote the URL, which may contain a password.
 */
export function driverFromUrl(url: unknown): DriverChoice | string {
  const example = "Write 'postgres://user:password@host:5432/database' or 'mysql://…'";
  if (typeof url !== 'string' || !URL.canParse(url))
    return `url is not a URL that can be read. ${example}, with reserved characters in the password percent-encoded (encodeURIComponent)`;
  const { protocol, hostname, port, pathname, username, password, search, searchParams, hash } = new URL(url);
  const kind = KINDS[protocol];
  if (kind === undefined) return `url must not begin with '${protocol}'. ${example}`;
  // They end the password early, so that what is left of it would be a part of the database's name.
  if (hash !== '' || pathname.includes('@') || (pathname.length < 2 && search.includes('@')))
    return 'the user name or the password in url contains a reserved character: write # as %23, / as %2F, ? as %3F and @ as %40, as encodeURIComponent() does';
  if (![username, password, pathname].every(isEncoded))
    return 'the user name, password or database in url contains a % that is not part of an escape sequence. Write it as %25';
  if (pathname.length < 2) return `url does not contain a database name. ${example}`;
  const { problem } = kind === 'mysql' ? sslOf(searchParams) : {};
  if (problem !== undefined) return problem;
  const old = tooOld(PACKAGES[kind]);
  if (old !== undefined) return updateOrKeep(old, PACKAGES[kind]);
  const defaultPort = kind === 'postgres' ? 5432 : 3306;
  const description = `${kind} ${hostname}:${port || defaultPort}${pathname}`;
  const secrets = [password, decodeURIComponent(password)].filter((secret) => secret !== '');
  const driver =
    kind === 'postgres'
      ? postgresDriver(url, description, CONNECT_TIMEOUT)
      : mysqlDriver(url, description, CONNECT_TIMEOUT);
  return { kind, driver, secrets };
}

/** Members that identify the kind of a pool. */
interface AnyPool {
  readonly Client?: unknown;
  readonly connect?: unknown;
  readonly getConnection?: unknown;
  readonly options?: {
    readonly max?: number;
    readonly host?: string;
    readonly port?: number;
    readonly password?: unknown;
  };
  readonly config?: { readonly connectionLimit?: number; readonly connectionConfig?: { readonly password?: unknown } };
  readonly pool?: AnyPool;
}

/** A driver that takes its connections from the user's pool, or what is wrong with the pool. */
export function driverFromPool(given: RowLocksOptions['pool'], connections: number): DriverChoice | string {
  const pool = given as AnyPool;
  if (typeof pool?.connect === 'function') {
    const old = tooOldFor<{ Client: unknown }>('pg', ({ Client }) => pool.Client === Client);
    if (old !== undefined) return updateOrKeep(old, 'pg');
    const most = pool.options?.max ?? 10;
    if (most <= connections) return tooSmall('max', most, connections);
    const { password } = pool.options ?? {};
    const driver = postgresPoolDriver(
      given as unknown as PostgresPool,
      `postgres (given pool of at most ${most} connections)`,
    );
    return { kind: 'postgres', driver: { ...driver, spare: most - connections }, secrets: secretsOf(password) };
  }
  const inner = typeof pool?.pool?.getConnection === 'function' ? pool.pool : pool;
  if (typeof inner?.getConnection !== 'function') return 'pool must be a pg or mysql2 pool';
  const old = tooOldFor<{ Pool: new () => object }>('mysql2', ({ Pool }) => inner instanceof Pool);
  if (old !== undefined) return updateOrKeep(old, 'mysql2');
  const most = inner.config?.connectionLimit ?? 10;
  if (most <= connections) return tooSmall('connectionLimit', most, connections);
  const driver = mysqlPoolDriver(inner as unknown as MysqlPool, `mysql (given pool of at most ${most} connections)`);
  const secrets = secretsOf(inner.config?.connectionConfig?.password);
  return { kind: 'mysql', driver: { ...driver, spare: most - connections }, secrets };
}

const PACKAGES = { postgres: 'pg', mysql: 'mysql2' } as const;

/** An application may need the old version for something else. */
function updateOrKeep(problem: string, name: OptionalPackage): string {
  return `${problem}. Update it: npm install ${name}@latest. Or keep it, install a second copy (npm install ${name}-latest@npm:${name}@latest), and give a pool of that one`;
}

function tooSmall(option: string, most: number, connections: number): string {
  return `the pool has at most ${most} connections, but ${connections + 1} are needed. Set its '${option}' to at least ${connections + 1}, or reduce the option 'connections'`;
}

function secretsOf(password: unknown): readonly string[] {
  return typeof password === 'string' && password !== '' ? [password] : [];
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
