import type { SqlConnection } from '../driver/sql-connection.js';
import { UnsuitableServer } from '../server/lock-server.js';
import { SessionTimeouts, TRANSACTIONS } from '../server/mysql-server.js';
import type { TableNames } from '../server/table-name.js';
import { keySpace, LONGEST_WAIT, numberOfKey, rowsAreThere, WAIT_ANSWER } from './advisory-lock.js';
import type { MysqlLocks, TakenLock } from './session-locks.js';

const HELD: TakenLock = { transaction: 0 };
/** Names apply to the whole server, and have at most 64 characters. */
const PREFIX = 'nestjs-redis-lock:';

/**
 * Locks of GET_LOCK, which belong to a session. A session whose statement failed is closed, as it may have the lock.
 */
export class MysqlAdvisoryLocks implements MysqlLocks {
  readonly tableStatements = [];
  /** IS_USED_LOCK shows them. */
  readonly showsReleases = true;
  private readonly timeouts = new SessionTimeouts();
  private space = '';
  private isMariaDb = false;

  constructor(private readonly tables: TableNames) {}

  get isHeld(): string {
    const space = `X'${Buffer.from(this.space).toString('hex')}'`;
    const name = `CONCAT('${PREFIX}', LEFT(SHA2(CONCAT(${space}, s.lock_name), 256), 16))`;
    return `p.ID = s.session AND IS_USED_LOCK(${name}) = p.ID`;
  }

  useServer(kind: 'MySQL' | 'MariaDB'): void {
    this.isMariaDb = kind === 'MariaDB';
  }

  /** All processes must use the same table, even if their current databases differ. */
  async checkTables(control: SqlConnection): Promise<void> {
    const [rows, state] = [this.tables.rows, this.tables.state].map((name) => name.replaceAll('`', '').split('.'));
    const found = await tableOf(control, state);
    if ((await tableOf(control, rows)) !== undefined) throw new UnsuitableServer(rowsAreThere(this.tables.rows));
    this.space = keySpace(...(found ?? state));
  }

  async prepareSession(session: SqlConnection): Promise<void> {
    const own = this.isMariaDb ? 'max_statement_time = 0' : 'max_execution_time = 0';
    await session.run(`SET SESSION sql_mode = '', autocommit = 1, completion_type = 0, ${own}`);
    await session.run(TRANSACTIONS);
  }

  begin(session: SqlConnection, key: string, leaseTime: number): Promise<TakenLock | undefined> {
    return this.try(session, key, leaseTime);
  }

  try(session: SqlConnection, key: string, leaseTime: number): Promise<TakenLock | undefined> {
    return this.get(session, key, leaseTime, 0);
  }

  wait(session: SqlConnection, key: string, leaseTime: number): Promise<TakenLock | undefined> {
    return this.get(session, key, leaseTime, LONGEST_WAIT / 1_000, WAIT_ANSWER);
  }

  async provide(): Promise<boolean> {
    return false;
  }

  setLease(session: SqlConnection, leaseTime: number): Promise<void> {
    return this.timeouts.set(session, leaseTime);
  }

  async release(session: SqlConnection, keys: readonly string[]): Promise<boolean> {
    const each = keys.map(() => 'RELEASE_LOCK(?)').join(' + ');
    const { rows } = await session.run(
      `SELECT ${each} AS freed`,
      keys.map((key) => this.nameOf(key)),
    );
    return Number(rows[0].freed) === keys.length;
  }

  async undo(session: SqlConnection, keys: readonly string[]): Promise<void> {
    if (keys.length > 0 && !(await this.release(session, keys))) throw new Error('a lock was already free');
  }

  /**
   * 1: this session holds the lock. 0: somebody else holds it. NULL, which a killed statement returns without an error,
   * proves neither.
   */
  private async get(session: SqlConnection, key: string, leaseTime: number, seconds: number, limit?: number) {
    await this.timeouts.provide(session, leaseTime);
    const { rows } = await session.run('SELECT GET_LOCK(?, ?) AS ok', [this.nameOf(key), seconds], limit);
    const { ok } = rows[0];
    if (ok === null) throw new Error('GET_LOCK returned NULL: it was killed, or failed');
    return Number(ok) === 1 ? HELD : undefined;
  }

  private nameOf(key: string): string {
    return PREFIX + BigInt.asUintN(64, numberOfKey(this.space, key)).toString(16).padStart(16, '0');
  }
}

/** The database and the name of a table, as the server writes them. */
async function tableOf(control: SqlConnection, parts: readonly string[]): Promise<readonly string[] | undefined> {
  const { rows } = await control.run(
    'SELECT TABLE_SCHEMA AS db, TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ?',
    [parts.length > 1 ? parts[0] : null, parts[parts.length - 1]],
  );
  return rows.length === 0 ? undefined : [String(rows[0].db), String(rows[0].name)];
}
