import mysqlCallbacks from 'mysql2';
import mysql from 'mysql2/promise';
import pg from 'pg';
import { LockBusyError, LockConfigurationError, LockUnavailableError } from '../../lib/engine/errors.js';
import { createLockService } from '../../lib/service/create-lock-service.js';
import { loadDriver } from '../../lib/sql/driver/load-driver.js';
import { configFromUrl } from '../../lib/sql/driver/mysql-driver.js';
import { checkMysqlVersion } from '../../lib/sql/server/mysql-server.js';
import { checkPostgresVersion } from '../../lib/sql/server/postgres-server.js';
import { PostgresRowLocks } from '../../lib/sql/session-locks/postgres-row-locks.js';
import { rowLocks } from '../../lib/sql.js';
import { PASSWORD, SQL_SERVERS, startSqlServer } from '../support/servers/sql/sql-server.js';
import { until } from '../support/until.js';
import { addUser } from './sessions.js';
import { ALL_SQL_LOCKS, SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

const MYSQLS = SQL_SERVERS.filter((kind) => kind !== 'PostgreSQL');

describe.each(MYSQLS)('an account that cannot log in, %s', (kind) => {
  const world = openSqlWorld(kind);

  it.each([
    ['is locked', "ALTER USER locks@'%' ACCOUNT LOCK", "ALTER USER locks@'%' ACCOUNT UNLOCK", /locked/],
    [
      'has an expired password',
      "ALTER USER locks@'%' PASSWORD EXPIRE",
      `ALTER USER locks@'%' IDENTIFIED BY '${PASSWORD}'`,
      /password/i,
    ],
    [
      'belongs to another host',
      "RENAME USER locks@'%' TO locks@'192.0.2.1'",
      "RENAME USER locks@'192.0.2.1' TO locks@'%'",
      /not allowed|denied/,
    ],
  ])('is reported at once, and not as an outage, when it %s', async (_what, change, undo, message) => {
    await world.server.asAdmin(change, 'FLUSH PRIVILEGES');
    const locks = world.service({}, { outageTimeout: Number.POSITIVE_INFINITY });
    const refused = locks.acquire(world.name());
    await expect(refused).rejects.toThrow(LockUnavailableError);
    await expect(refused).rejects.toThrow(message);
    await world.server.asAdmin(undo, 'FLUSH PRIVILEGES');
  });
});

describe.each(ALL_SQL_LOCKS)('a database that cannot keep locks, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);

  /** The error with which an acquisition is refused. */
  const refusalOf = async (options: Parameters<typeof world.service>[0]): Promise<Error> => {
    const refused = world.service(options).acquire(world.name(), { waitTime: 3_000 });
    await expect(refused).rejects.toThrow(LockUnavailableError);
    const error: Error = await refused.catch((reason) => reason);
    for (let inner: unknown = error; inner instanceof Error; inner = inner.cause)
      expect(`${inner.message} ${inner.stack}`).not.toContain(PASSWORD);
    return error;
  };

  it('names the tables that are missing, with the statements that make them', async () => {
    const { message } = await refusalOf({ table: 'no_such_table', createTable: false });
    expect(message).toMatch(/no_such_table/);
    expect(message).toMatch(/createTable: true/);
    expect(message).toMatch(/CREATE TABLE IF NOT EXISTS .no_such_table_state./);
  });

  it.each(['SELECT', 'INSERT', 'UPDATE', 'DELETE'])(
    'says so when the right to %s is missing, and locks nothing',
    async (right) => {
      const locks = world.service();
      await (await locks.acquire(world.name())).release();
      const user = await addUser(world, right);
      const { message } = await refusalOf({ url: world.server.url.replace('locks:', `${user}:`), createTable: false });
      expect(message).toMatch(/denied/);
      expect(message).toMatch(/needs these tables, SELECT, INSERT and UPDATE on them, and DELETE on the last/);
      expect((await locks.list()).locks).toEqual([]);
    },
  );

  it('works for a user that has the rights which the error names, and no others', async () => {
    await (await world.service().acquire(world.name())).release();
    const url = world.server.url.replace('locks:', `${await addUser(world)}:`);
    const locks = world.service({ url, createTable: false });
    const name = world.name();
    await locks.withLock([name, world.name()], async () => {
      expect(await locks.isLocked(name)).toBe(true);
      await until(async () => (await locks.clients()).length === 1);
    });
    const waiter = world.service({ url, createTable: false });
    const lease = await locks.acquire(name);
    const waiting = waiter.acquire(name);
    await expect(waiter.acquire(name, { waitTime: 1_000 })).rejects.toThrow(LockBusyError);
    await lease.release();
    await (await waiting).release();
    expect(world.logger.warnings).toEqual([]);
  });

  it('creates nothing where the tables are there, so that it takes no right to', async () => {
    await (await world.service().acquire(world.name())).release();
    const url = world.server.url.replace('locks:', `${await addUser(world)}:`);
    await (await world.service({ url, createTable: true }).acquire(world.name(), { waitTime: 5_000 })).release();
  });

  it('does not show a password that is wrong', async () => {
    const wrong = 'wr0ng%21 secret';
    const { message, stack, cause } = await refusalOf({
      url: world.server.url.replace(PASSWORD, encodeURIComponent(wrong)),
    });
    expect(message).toMatch(/password|denied/i);
    expect(`${message} ${stack} ${cause}`).not.toContain('wr0ng');
  });

  it('says so when the user or the password is wrong', async () => {
    const { message } = await refusalOf({ url: world.server.url.replace('locks:', 'nobody_known:') });
    expect(message).toMatch(/nobody_known|password/i);
  });

  it('says so when the database is not there', async () => {
    const { message } = await refusalOf({ url: world.server.url.replace(/locks$/, 'elsewhere') });
    expect(message).toMatch(/elsewhere/);
  });

  it('says so when nobody listens', async () => {
    const { message } = await refusalOf({ url: world.server.urlAt(9) });
    expect(message).toMatch(/ECONNREFUSED/);
  });

  it('refuses a server that is too old, with its version, and locks nothing', async () => {
    const isPostgres = kind === 'PostgreSQL';
    const pool = isPostgres ? postgresPool(world.server.url) : mysqlPool(world.server.url);
    const statements = answerVersions(pool, isPostgres ? '90524' : '10.5.23-MariaDB-log');
    const { message } = await refusalOf({ url: undefined, pool: pool as never, connections: 2 });
    expect(message).toMatch(
      isPostgres ? /need PostgreSQL (9.6|14) or later.*PostgreSQL 9.5/ : /MariaDB 10.6, or later.*MariaDB 10.5.23/,
    );
    expect(statements.filter((text) => /FOR UPDATE|INSERT|UPDATE|advisory_lock|GET_LOCK/.test(text))).toEqual([]);
    await world.tidy();
    await new Promise<void>((resolve) => void Promise.resolve(pool.end(() => resolve())));
  });

  it('takes its connections from a pool of the driver', async () => {
    const isPostgres = kind === 'PostgreSQL';
    const pool = isPostgres
      ? new pg.Pool({ connectionString: world.server.url, max: 4 })
      : mysql.createPool({ uri: world.server.url, connectionLimit: 4 });
    const locks = world.service({ pool: pool as never, connections: 3 });
    const names = [world.name(), world.name(), world.name()];
    await Promise.all(names.map((name) => locks.withLock(name, () => {})));
    await locks.close();
    await pool.end();
    expect(() => SQL_LOCKS[which]({ pool: pool as never, connections: 4 })).toThrow(
      /has at most 4 connections, but 5 are needed/,
    );
  });
});

describe('settings of a server with which row locks cannot be kept', () => {
  it('are named: track_activities', async () => {
    const server = await startSqlServer('PostgreSQL', 'fast', ['track_activities=off']);
    const locks = createLockService({ backend: rowLocks({ url: server.url, createTable: true }) });
    await expect(locks.acquire('order', { waitTime: 5_000 })).rejects.toThrow(/track_activities is off/);
    await locks.close();
    await server.stop();
  });

  it('are named: binlog_format, and nobody waits forever', async () => {
    const server = await startSqlServer('MariaDB', 'fast', ['--log-bin', '--binlog-format=STATEMENT']);
    const locks = createLockService({ backend: rowLocks({ url: server.url, createTable: true }) });
    await expect(locks.acquire('order')).rejects.toThrow(/set binlog_format to MIXED or ROW/);
    await locks.close();
    await server.stop();
  }, 30_000);
});

describe('a URL of MySQL', () => {
  it.each([
    ['mysql://db/x', { host: 'db', port: 3306 }],
    ['mysql://[::1]:3307/x', { host: '::1', port: 3307 }],
    ['mysql://db/x?ssl=true', { ssl: {} }],
    ['mysql://db/x?ssl={"rejectUnauthorized":false}', { ssl: { rejectUnauthorized: false } }],
    ['mysql://db/x?sslmode=require', { ssl: { rejectUnauthorized: false } }],
    ['mysql://db/x?ssl-mode=VERIFY_IDENTITY', { ssl: { verifyIdentity: true } }],
  ])('is read as it is meant: %s', (url, config) => {
    expect(configFromUrl(url)).toMatchObject(config);
  });

  it('encrypts nothing where it says so, or nothing', () => {
    for (const url of ['mysql://db/x', 'mysql://db/x?ssl=false', 'mysql://db/x?sslmode=disable'])
      expect(configFromUrl(url)).not.toHaveProperty('ssl');
  });
});

describe.each(['rowLocks', 'advisoryLocks'] as const)('options of %s', (which) => {
  it.each([
    [undefined, /give options/],
    [{}, /give one of url and pool/],
    [{ url: `redis://:${PASSWORD}@localhost` }, /url must not begin with 'redis:'/],
    [{ url: `postgres//${PASSWORD}` }, /url is not a URL/],
    [{ url: `postgres://app:${PASSWORD}@db` }, /does not contain a database name/],
    [{ url: 'postgres://db/x', table: 'a;b' }, /table must be a name/],
    [{ url: 'postgres://db/x', connections: 0 }, /connections is 0/],
    [{ url: 'postgres://db/x', conections: 1 }, /no option 'conections'/],
    [{ url: 'mysql://db/x?sslmode=strict' }, /sslmode that is not known/],
    [{ url: 'mysql://db/x', singlePrimary: 'yes' }, /singlePrimary is 'yes'; it must be true or false/],
    [{ pool: {} }, /pool must be a pg or mysql2 pool/],
  ])('refuses %j', (options, message) => {
    const make = () => SQL_LOCKS[which](options as never);
    expect(make).toThrow(LockConfigurationError);
    expect(make).toThrow(message);
    expect(make).toThrow(new RegExp(`^${which}\\(\\): `));
    expect(make).not.toThrow(new RegExp(PASSWORD));
  });

  it('names the driver to install where it is missing', async () => {
    const missing = 'a-package-that-nobody-has';
    const load = loadDriver('pg', () => import(missing));
    await expect(load).rejects.toThrow(LockConfigurationError);
    await expect(load).rejects.toThrow("the package 'pg' could not be loaded; install it: npm install pg");
  });

  it('refuses servers that are too old', () => {
    expect(() => checkPostgresVersion(90_524, new PostgresRowLocks('t').oldest, 'row locks')).toThrow(
      /need PostgreSQL 9.6 or later, but this server is PostgreSQL 9.5/,
    );
    expect(() => checkMysqlVersion('10.5.23-MariaDB-log', 'row locks')).toThrow(
      /MariaDB 10.6.*this server is MariaDB 10.5.23/,
    );
    expect(() => checkMysqlVersion('5.7.44', 'row locks')).toThrow(/MySQL 8.*this server is MySQL 5.7.44/);
    expect([checkMysqlVersion('8.4.0', 'row locks'), checkMysqlVersion('5.5.5-10.11.6-MariaDB', 'row locks')]).toEqual([
      'MySQL',
      'MariaDB',
    ]);
  });
});

const postgresPool = (url: string) => new pg.Pool({ connectionString: url, max: 4 });
const mysqlPool = (url: string) => mysqlCallbacks.createPool({ uri: url, connectionLimit: 4 });

/** Makes the server report this version. @returns the statements that it receives */
function answerVersions(
  pool: ReturnType<typeof postgresPool> | ReturnType<typeof mysqlPool>,
  version: string,
): string[] {
  const statements: string[] = [];
  const isVersion = (text: string) => statements.push(text) > 0 && /server_version_num|VERSION\(\)/.test(text);
  if (pool instanceof pg.Pool)
    pool.on('connect', (client) => {
      const send = client.query.bind(client) as (...args: unknown[]) => unknown;
      const query = (statement: string | { readonly text: string }, ...rest: unknown[]) =>
        isVersion(typeof statement === 'string' ? statement : statement.text)
          ? Promise.resolve({ rows: [{ server_version_num: version }] })
          : send(statement, ...rest);
      Object.assign(client, { query });
    });
  else
    pool.on('connection', (connection) => {
      const send = connection.query.bind(connection) as (...args: unknown[]) => unknown;
      const query = (text: string, done: (error: null, rows: unknown) => void) =>
        isVersion(text) ? done(null, [{ version }]) : send(text, done);
      Object.assign(connection, { query });
    });
  return statements;
}
