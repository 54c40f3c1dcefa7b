import { randomInt } from 'node:crypto';
import type { SqlConnection } from '../driver/sql-connection.js';
import { UnsuitableServer } from '../server/lock-server.js';
import { toMilliseconds } from '../server/postgres-statements.js';
import { holderValues, type PostgresTokens } from '../server/postgres-tokens.js';
import type { TableNames } from '../server/table-name.js';
import { keySpace, LONGEST_WAIT, numberOfKey, rowsAreThere, WAIT_ANSWER } from './advisory-lock.js';
import type { NewHolder, PostgresLocks, TakenLock } from './session-locks.js';

const LOCK_TIMEOUT = '55P03';
/** The largest value for `randomInt`. */
const LARGEST_MARK = 2 ** 48 - 1;

/**
 * Advisory locks of sessions. A session that holds locks has no open transaction and no snapshot.
 *
 * Such a lock outlives the statement that took it, even if the statement fails afterwards. Therefore a session whose
 * statement failed is closed.
 */
export class PostgresAdvisoryLocks implements PostgresLocks {
  /** idle_session_timeout. */
  readonly oldest = 140_000;
  readonly tableStatements = [];
  readonly idleState = 'idle';
  private space = '';
  /** The mark of each session that has locks: see {@link newMark}. */
  private readonly marks = new WeakMap<SqlConnection, number>();
  private newer: readonly string[] = [];

  constructor(
    private readonly tables: TableNames,
    private readonly tokens: PostgresTokens,
  ) {}

  /** The session still has the mark that is stored in the state. */
  readonly isHeld = `a.pid = s.session AND EXISTS (
      SELECT 1 FROM pg_locks AS l WHERE l.pid = s.session AND l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND ((l.classid::bigint << 32) | l.objid::bigint) = s.transaction)`;

  useSettings(newer: readonly string[]): void {
    this.newer = newer;
  }

  /** All processes must use the same table, even if their search paths differ. */
  async checkTables(control: SqlConnection): Promise<void> {
    const { rows } = await control.run(
      `SELECT n.nspname AS schema, c.relname AS name, to_regclass($2) IS NOT NULL AS has_rows
       FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)`,
      [this.tables.state, this.tables.rows],
    );
    const { schema, name, has_rows } = rows[0];
    if (has_rows) throw new UnsuitableServer(rowsAreThere(this.tables.rows));
    this.space = keySpace(schema, name);
  }

  async prepareSession(session: SqlConnection): Promise<void> {
    await session.run(this.settings.map((setting) => `SET ${setting}`).join('; '));
  }

  /** Needed because a pooler may give the session to other clients. */
  async restoreSession(session: SqlConnection, limit: number): Promise<void> {
    const text = this.settings.map((setting) => `RESET ${setting.split(' ')[0]}`).join('; ');
    await session.run(text, undefined, limit);
  }

  async begin(session: SqlConnection, key: string, leaseTime: number): Promise<TakenLock | undefined> {
    const mark = this.newMark(session);
    const { rows } = await session.run(
      `WITH l AS MATERIALIZED (SELECT pg_try_advisory_lock($1) AS ok)
       SELECT ok, CASE WHEN ok THEN pg_try_advisory_lock($2) END, CASE WHEN ok THEN set_config('idle_session_timeout', $3, false) END FROM l`,
      [this.numberOf(key), mark, String(toMilliseconds(leaseTime))],
    );
    return rows[0].ok === true ? { transaction: mark } : undefined;
  }

  /**
   * The snapshot of the statement may be older than the last note of the lock. Then the UPDATE uses the latest version
   * of the row, as always in READ COMMITTED.
   */
  async beginNoted(session: SqlConnection, holder: NewHolder): Promise<TakenLock | undefined> {
    const { tokens } = this;
    const mark = this.newMark(session);
    const { rows } = await session.run(
      `WITH l AS MATERIALIZED (SELECT pg_try_advisory_lock($8) AS ok),
       held AS MATERIALIZED (SELECT ok, CASE WHEN ok THEN pg_try_advisory_lock($6) END AS mark, CASE WHEN ok THEN set_config('idle_session_timeout', $9, false) END AS lease FROM l),
       ${tokens.source}, noted AS (${tokens.noteOne('held')})
       SELECT held.*, noted.* FROM held LEFT JOIN noted ON true`,
      [
        ...holderValues({ ...holder, transaction: mark }),
        this.numberOf(holder.key),
        String(toMilliseconds(holder.leaseTime)),
      ],
    );
    const [row] = rows;
    if (row.ok !== true) return undefined;
    // Without a token, the row of the lock is missing, or there are no tokens below the limit.
    return { transaction: mark, tokens: row.token === null ? undefined : tokens.read(row) };
  }

  async try(session: SqlConnection, key: string): Promise<TakenLock | undefined> {
    const { rows } = await session.run('SELECT pg_try_advisory_lock($1) AS ok', [this.numberOf(key)]);
    return rows[0].ok === true ? { transaction: this.marks.get(session) ?? 0 } : undefined;
  }

  /**
   * A waiting statement has a snapshot, which limits VACUUM. So it waits for a bounded time (`lock_timeout`). The lock
   * may be granted at the moment at which this time ends.
   */
  async wait(session: SqlConnection, key: string, leaseTime: number): Promise<TakenLock | undefined> {
    const mark = this.newMark(session);
    try {
      await session.run(
        `SELECT pg_advisory_lock($1), pg_try_advisory_lock($2), set_config('idle_session_timeout', $3, false)`,
        [this.numberOf(key), mark, String(toMilliseconds(leaseTime))],
        WAIT_ANSWER,
      );
      return { transaction: mark };
    } catch (error) {
      if ((error as { readonly code?: string }).code !== LOCK_TIMEOUT) throw error;
      await session.run('SELECT pg_advisory_unlock_all()');
      return undefined;
    }
  }

  async provide(): Promise<boolean> {
    return false;
  }

  async setLease(session: SqlConnection, leaseTime: number): Promise<void> {
    await session.run(`SELECT set_config('idle_session_timeout', $1, false)`, [String(toMilliseconds(leaseTime))]);
  }

  async release(session: SqlConnection, keys: readonly string[]): Promise<boolean> {
    const { rows } = await session.run(
      `SELECT bool_and(pg_advisory_unlock(key)) AS ok, set_config('idle_session_timeout', '0', false) FROM unnest($1::bigint[]) AS key`,
      [[...keys.map((key) => this.numberOf(key)), this.marks.get(session)]],
    );
    return rows[0].ok === true;
  }

  async undo(session: SqlConnection, keys: readonly string[]): Promise<void> {
    if (keys.length > 0 && !(await this.release(session, keys))) throw new Error('a lock was already free');
  }

  private get settings(): readonly string[] {
    return [
      "default_transaction_isolation = 'read committed'",
      'default_transaction_read_only = off',
      'statement_timeout = 0',
      `lock_timeout = ${LONGEST_WAIT}`,
      'idle_session_timeout = 0',
      ...this.newer,
    ];
  }

  /**
   * A number that is unique to one hold, and that the session locks as well. It distinguishes the hold from earlier and
   * later holds of the same lock by the same session, because notes are written after the grant.
   */
  private newMark(session: SqlConnection): number {
    const mark = randomInt(LARGEST_MARK);
    this.marks.set(session, mark);
    return mark;
  }

  private numberOf(key: string): string {
    return numberOfKey(this.space, key).toString();
  }
}
