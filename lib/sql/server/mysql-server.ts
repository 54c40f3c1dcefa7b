import { ConnectionLost, type SessionIdentity, type SqlConnection, type SqlResult } from '../driver/sql-connection.js';
import type { HolderEntry, MysqlLocks, TokenRange } from '../session-locks/session-locks.js';
import { createOthers } from './create-tables.js';
import {
  type ClientTable,
  type HolderNote,
  type KnownState,
  type LockServer,
  type LockWords,
  MAX_LEAD,
  SHARED_SESSIONS,
  UnsuitableServer,
} from './lock-server.js';
import { MysqlClients } from './mysql-clients.js';
import { probesOf } from './rights.js';
import type { TableNames } from './table-name.js';

/** The largest value of wait_timeout, in seconds. */
const LONGEST_TIMEOUT = 31_536_000;
/** How long a killed session may take to end, in milliseconds. */
const KILL_TIME = 1_000;
export const TRANSACTIONS = 'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE';
const NOW = 'CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)';

/**
 * MySQL 8 and MariaDB 10.6, and later. The server counts a session's idle time in whole seconds, so leases are
 * rounded up.
 */
export class MysqlServer implements LockServer {
  readonly tableStatements: readonly string[];
  readonly clients: ClientTable;
  private isMariaDb = false;
  /** The table of all sessions. */
  private sessions = INFORMATION_SCHEMA;

  private readonly state: string;

  /** @param singlePrimary all clients use one node, even if the server reports several */
  constructor(
    readonly words: LockWords,
    private readonly tables: TableNames,
    readonly locks: MysqlLocks,
    private readonly singlePrimary = false,
  ) {
    const { state, clients } = tables;
    this.state = state;
    this.clients = new MysqlClients(clients);
    this.tableStatements = [...locks.tableStatements, ...createOthers('mysql', tables)];
  }

  isCreatedMeanwhile(error: unknown): boolean {
    return (error as { errno?: number }).errno === 1050;
  }

  async identify(connection: SqlConnection): Promise<SessionIdentity> {
    const text = `SELECT CONNECTION_ID() AS id, (SELECT HOST FROM ${this.sessions} WHERE ID = CONNECTION_ID()) AS origin`;
    const { rows } = await connection.run(text);
    return { id: Number(rows[0].id), origin: String(rows[0].origin) };
  }

  async checkServer(control: SqlConnection): Promise<void> {
    const { rows } = await control.run('SELECT VERSION() AS version');
    const kind = checkMysqlVersion(String(rows[0].version), this.words.title);
    this.isMariaDb = kind === 'MariaDB';
    this.locks.useServer(kind);
    this.sessions = this.isMariaDb ? INFORMATION_SCHEMA : await sessionTable(control);
    const { rows: settings } = await control.run(`SHOW SESSION VARIABLES WHERE Variable_name IN (${SETTINGS})`);
    const problem = settingProblem(
      new Map(settings.map((row) => [String(row.Variable_name), String(row.Value)])),
      this.words.title,
      this.singlePrimary,
    );
    if (problem !== undefined) throw new UnsuitableServer(problem);
  }

  /**
   * Sets autocommit and the settings of transactions regardless of the server's defaults, because a token must be
   * committed at once.
   */
  async prepareControl(control: SqlConnection): Promise<void> {
    await control.run(
      "SET SESSION sql_mode = '', autocommit = 1, time_zone = '+00:00', innodb_lock_wait_timeout = 1, wait_timeout = 28800",
    );
    await control.run(TRANSACTIONS);
    const { rows } = await control.run('SELECT @@SESSION.innodb_lock_wait_timeout AS stays');
    if (Number(rows[0].stays) !== 1) throw new UnsuitableServer(SHARED_SESSIONS);
  }

  async checkTables(control: SqlConnection): Promise<void> {
    for (const probe of probesOf(this.tables, 'lease')) await control.run(probe);
    await this.locks.checkTables(control);
  }

  /** Nothing to do: a token is as durable as the server is configured to make it. */
  async prepareTokens(): Promise<void> {}

  async touch(session: SqlConnection): Promise<void> {
    await session.run('SELECT 1');
  }

  makeState(control: SqlConnection, key: string): Promise<void> {
    return insertMissing(control, this.state, key, this.isMariaDb);
  }

  /** LAST_INSERT_ID() returns one token. MariaDB has RETURNING. */
  get mostNotes(): number {
    return this.isMariaDb ? 128 : 1;
  }

  async note(control: SqlConnection, entries: readonly HolderEntry[]): Promise<readonly (TokenRange | undefined)[]> {
    return this.isMariaDb ? this.noteAll(control, entries) : [await this.noteOne(control, entries[0])];
  }

  /**
   * Rows are locked in the order of their names, so that two such statements cannot wait for each other. Assignments
   * are evaluated from left to right, and use the new values of earlier ones.
   */
  private async noteAll(control: SqlConnection, entries: readonly HolderEntry[]): Promise<readonly TokenRange[]> {
    const sorted = [...entries].sort((a, b) => Buffer.compare(toBytes(a.key), toBytes(b.key)));
    const row = `(?, ${NOW}, ?, ?, ?, ?, ?, ${NOW})`;
    const { rows } = await runPatiently(
      control,
      `INSERT INTO ${this.state} (lock_name, token, reserved, owner, mode, session, lease, since) VALUES ${sorted.map(() => row).join(', ')}
       ON DUPLICATE KEY UPDATE token = GREATEST(token + reserved + 1, VALUES(token)),
         reserved = GREATEST(0, LEAST(VALUES(reserved), VALUES(token) + ${MAX_LEAD} - token)),
         owner = VALUES(owner), mode = VALUES(mode), session = VALUES(session), lease = VALUES(lease), since = VALUES(since)
       RETURNING lock_name, token, reserved`,
      sorted.flatMap(({ key, owner, mode, session, leaseTime, reserve }) => {
        const reserved = Math.min(reserve, MAX_LEAD);
        return [toBytes(key), reserved, owner, mode, session, toSeconds(leaseTime) * 1_000];
      }),
    );
    const ranges = new Map(
      rows.map((row) => [String(row.lock_name), { token: Number(row.token), reserved: Number(row.reserved) }]),
    );
    return entries.map(({ key }) => ranges.get(key) as TokenRange);
  }

  /** Assignments are evaluated from left to right, and use the new values of earlier ones. */
  private async noteOne(control: SqlConnection, entry: HolderEntry): Promise<TokenRange | undefined> {
    const { key, owner, mode, session, leaseTime, reserve } = entry;
    const { changed, lastId } = await runPatiently(
      control,
      `UPDATE ${this.state} SET token = LAST_INSERT_ID(GREATEST(token + reserved + 1, ${NOW})),
         reserved = GREATEST(0, LEAST(?, ${NOW} + ${MAX_LEAD} - token)), owner = ?, mode = ?, session = ?, lease = ?, since = ${NOW}
       WHERE lock_name = ?`,
      [reserve, owner, mode, session, toSeconds(leaseTime) * 1_000, toBytes(key)],
    );
    if (changed === 0) return undefined;
    if (reserve === 0) return { token: lastId, reserved: 0 };
    const text = `SELECT reserved FROM ${this.state} WHERE lock_name = ? AND token = ?`;
    const { rows } = await control.run(text, [toBytes(key), lastId]);
    return { token: lastId, reserved: rows.length === 0 ? 0 : Number(rows[0].reserved) };
  }

  async noteLease(control: SqlConnection, key: string, owner: string, leaseTime: number): Promise<void> {
    const text = `UPDATE ${this.state} SET lease = ? WHERE lock_name = ? AND owner = ?`;
    await control.run(text, [toSeconds(leaseTime) * 1_000, toBytes(key), owner]);
  }

  /** Records must be withdrawn because not every user can see whether a session is in a transaction. */
  async withdraw(control: SqlConnection, notes: readonly HolderNote[]): Promise<void> {
    const meant = notes.map(() => '(lock_name = ? AND owner = ? AND token = ?)').join(' OR ');
    const text = `UPDATE ${this.state} SET owner = NULL WHERE ${meant}`;
    const values = notes.flatMap(({ key, owner, token }) => [toBytes(key), owner, token]);
    await runPatiently(control, text, values);
  }

  /** The server numbers sessions from 1 after each start, so notes from before the last start are ignored. */
  async read(control: SqlConnection, key: string): Promise<KnownState | undefined> {
    // MySQL counts how often the second of its clock has changed, so the session may have been idle for a second less.
    const idle = this.isMariaDb ? 'p.TIME_MS' : 'GREATEST(0, p.TIME - 1) * 1000';
    const { rows } = await control.run(
      `SELECT s.owner, s.mode, s.session, s.token, s.since, ${NOW} AS now,
         GREATEST(0, s.lease - IF(p.COMMAND = 'Sleep', ${idle}, 0)) AS remaining
       FROM ${this.state} AS s JOIN ${this.sessions} AS p ON ${this.locks.isHeld}
       WHERE s.lock_name = ? AND s.owner IS NOT NULL`,
      [toBytes(key)],
    );
    if (rows.length === 0) return undefined;
    const { owner, mode, session, remaining, since, now, token } = rows[0];
    if (Number(since) < Number(now) - (await this.uptime(control)) * 1_000_000) return undefined;
    return {
      owner: String(owner),
      mode: mode === 'write' ? 'write' : 'exclusive',
      session: Number(session),
      token: Number(token),
      remaining: Math.round(Number(remaining)),
    };
  }

  async heldKeys(control: SqlConnection): Promise<readonly string[]> {
    const { rows } = await control.run(
      `SELECT s.lock_name AS name FROM ${this.state} AS s JOIN ${this.sessions} AS p ON ${this.locks.isHeld}
       WHERE s.owner IS NOT NULL`,
    );
    return rows.map(({ name }) => String(name));
  }

  /**
   * The row of the state is locked until KILL was sent. A holder that releases meanwhile cannot withdraw its note, so
   * it does not use its session for another lock.
   */
  async kill(control: SqlConnection, key: string, { owner, token, session }: KnownState): Promise<boolean> {
    const isKilled = await control.exclusively(async (run) => {
      await run('START TRANSACTION');
      try {
        const meant = `SELECT 1 FROM ${this.state} WHERE lock_name = ? AND owner = ? AND token = ? FOR UPDATE`;
        const { rows } = await run(meant, [toBytes(key), owner, token]);
        if (rows.length === 0) return false;
        await run(`KILL CONNECTION ${session}`).catch(unlessErrno(NO_SUCH_SESSION));
        await run(`UPDATE ${this.state} SET owner = NULL WHERE lock_name = ?`, [toBytes(key)]);
        return true;
      } finally {
        await run('COMMIT');
      }
    });
    if (!isKilled) return false;
    for (const until = performance.now() + KILL_TIME; performance.now() < until; ) {
      const { rows } = await control.run(`SELECT 1 FROM ${this.sessions} WHERE ID = ?`, [session]);
      if (rows.length === 0) break;
    }
    return true;
  }

  async running(control: SqlConnection, sessions: readonly number[]): Promise<readonly number[]> {
    const text = `SELECT ID AS id FROM ${this.sessions} WHERE ID IN (${sessions.join(', ')}) AND COMMAND <> 'Sleep'`;
    const { rows } = await control.run(text);
    return rows.map(({ id }) => Number(id));
  }

  async endIdle(control: SqlConnection, { id, origin }: SessionIdentity): Promise<void> {
    const text = `SELECT 1 FROM ${this.sessions} WHERE ID = ? AND HOST = ? AND COMMAND = 'Sleep'`;
    const { rows } = await control.run(text, [id, origin]);
    if (rows.length > 0) await control.run(`KILL CONNECTION ${id}`).catch(unlessErrno(NO_SUCH_SESSION));
  }

  async cancel(control: SqlConnection, session: number): Promise<void> {
    await control.run(`KILL QUERY ${session}`).catch(unlessErrno(NO_SUCH_SESSION));
  }

  private async uptime(control: SqlConnection): Promise<number> {
    const { rows } = await control.run("SHOW GLOBAL STATUS LIKE 'Uptime'");
    return Number(rows[0].Value) + 1;
  }
}

const NO_SUCH_SESSION = 1094;
const LOCK_TIMEOUT = 1205;
const DEADLOCK = 1213;
/** How many times a statement is sent at most if it finds a row of the state table locked. */
const ATTEMPTS = 3;
/**
 * In MySQL, its column of statements is utf8mb3. A running statement with another character makes every query of it
 * fail.
 */
const INFORMATION_SCHEMA = 'information_schema.PROCESSLIST';
const PERFORMANCE_SCHEMA = 'performance_schema.processlist';
const SETTINGS = "'wsrep_on', 'group_replication_single_primary_mode', 'log_bin', 'binlog_format'";

/** MySQL 8.0.22 and later have a better table of sessions, unless the performance schema is disabled. */
async function sessionTable(control: SqlConnection): Promise<string> {
  const own = `SELECT 1 FROM ${PERFORMANCE_SCHEMA} WHERE ID = CONNECTION_ID()`;
  const { rows } = await control.run(own).catch((error) => {
    if (error instanceof ConnectionLost) throw error;
    return { rows: [] };
  });
  return rows.length > 0 ? PERFORMANCE_SCHEMA : INFORMATION_SCHEMA;
}

/** Why a server with these settings cannot keep locks. `undefined`: it can. */
function settingProblem(
  settings: ReadonlyMap<string, string>,
  title: string,
  singlePrimary: boolean,
): string | undefined {
  const advice = `${title} are local to a node, so two nodes would grant one lock to two holders. Use another database, or set singlePrimary: true if all clients of these locks use the same node`;
  if (!singlePrimary && settings.get('wsrep_on') === 'ON')
    return `this is a node of a Galera cluster (wsrep_on): ${advice}`;
  if (!singlePrimary && settings.get('group_replication_single_primary_mode') === 'OFF')
    return `this is a node of a multi-primary group (group_replication_single_primary_mode = OFF): ${advice}`;
  if (settings.get('log_bin') === 'ON' && settings.get('binlog_format') === 'STATEMENT')
    return 'binlog_format is STATEMENT, with which InnoDB cannot log READ COMMITTED transactions: set binlog_format to MIXED or ROW';
  return undefined;
}

/**
 * Retries a statement that finds a row of the state locked. Others lock such a row only for a moment, when the previous
 * holder releases the lock or somebody force-releases it.
 */
async function runPatiently(
  control: SqlConnection,
  ...statement: Parameters<SqlConnection['run']>
): Promise<SqlResult> {
  for (let attempt = 1; ; attempt++)
    try {
      return await control.run(...statement);
    } catch (error) {
      const { errno = 0 } = error as { readonly errno?: number };
      if (attempt === ATTEMPTS || ![LOCK_TIMEOUT, DEADLOCK].includes(errno)) throw error;
    }
}

/** Ignores only this error. */
function unlessErrno(errno: number): (error: unknown) => void {
  return (error) => {
    if ((error as { readonly errno?: number }).errno !== errno) throw error;
  };
}

/**
 * Distinguishes MySQL and MariaDB.
 *
 * @throws UnsuitableServer when it is too old
 */
export function checkMysqlVersion(version: string, title: string): 'MySQL' | 'MariaDB' {
  const [major, minor] = version
    .replace(/^5\.5\.5-/, '')
    .split('.')
    .map((part) => Number.parseInt(part, 10));
  const isMariaDb = /mariadb/i.test(version);
  const isNew = isMariaDb ? major > 10 || (major === 10 && minor >= 6) : major >= 8;
  if (isNew) return isMariaDb ? 'MariaDB' : 'MySQL';
  throw new UnsuitableServer(
    `${title} need MySQL 8 or MariaDB 10.6, or later; this server is ${isMariaDb ? 'MariaDB' : 'MySQL'} ${version}`,
  );
}

/** Creates the row if it is missing. An INSERT that times out has waited for a locked row, so the row exists. */
export async function insertMissing(
  control: SqlConnection,
  table: string,
  key: string,
  isMariaDb: boolean,
): Promise<void> {
  const atOnce = isMariaDb ? 'SET STATEMENT innodb_lock_wait_timeout = 0 FOR ' : '';
  const text = `${atOnce}INSERT IGNORE INTO ${table} (lock_name) SELECT * FROM (SELECT CAST(? AS BINARY)) AS n WHERE NOT EXISTS (SELECT 1 FROM ${table} WHERE lock_name = ?)`;
  await control.run(text, [toBytes(key), toBytes(key)]).catch(unlessErrno(LOCK_TIMEOUT));
}

/** The `wait_timeout` that each session has, which is its lease. */
export class SessionTimeouts {
  /** In seconds. */
  private readonly bySession = new WeakMap<SqlConnection, number>();

  /** Sets it unless the session has it already. */
  async provide(session: SqlConnection, leaseTime: number): Promise<void> {
    if (this.bySession.get(session) !== toSeconds(leaseTime)) await this.set(session, leaseTime);
  }

  async set(session: SqlConnection, leaseTime: number): Promise<void> {
    const timeout = toSeconds(leaseTime);
    this.bySession.delete(session);
    await session.run(`SET SESSION wait_timeout = ${timeout}`);
    this.bySession.set(session, timeout);
  }
}

function toSeconds(leaseTime: number): number {
  return Math.min(Math.ceil(leaseTime / 1_000), LONGEST_TIMEOUT);
}

/** The column is binary, so names are compared byte by byte. */
export function toBytes(key: string): Buffer {
  return Buffer.from(key);
}
