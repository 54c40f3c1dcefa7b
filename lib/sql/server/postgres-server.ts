import { ConnectionLost, type SessionIdentity, type SqlConnection, type SqlRow } from '../driver/sql-connection.js';
import {
  type ClientTable,
  type HolderEntry,
  type KnownState,
  type LockServer,
  SHARED_SESSIONS,
  type TokenRange,
  UnsuitableServer,
} from './lock-server.js';
import { PostgresClients } from './postgres-clients.js';
import { durably, micros, SOON } from './postgres-statements.js';
import { PostgresTokens } from './postgres-tokens.js';
import { probesOf } from './rights.js';
import type { TableNames } from './table-name.js';

/** SKIP LOCKED and idle_in_transaction_session_timeout. */
const OLDEST = 90_600;
/** The largest value of a time-out, in milliseconds. */
const LONGEST_TIMEOUT = 2 ** 31 - 1;
/** How long a session that is ended by force may take for it, in milliseconds. */
const KILL_TIME = 1_000;
/** How often notes are sent again because the tokens had to be raised first. */
const RAISES = 3;

/**
 * PostgreSQL 9.6 and later. A lock is a row that a transaction has locked; the session is that of `pg_stat_activity`.
 */
export class PostgresServer implements LockServer {
  readonly title = 'PostgreSQL';
  readonly mostNotes = 128;
  readonly tableStatements: readonly string[];
  readonly clients: ClientTable;

  private readonly rows: string;
  private readonly state: string;
  private readonly tokens: PostgresTokens;
  /** Settings of newer servers that transactions get as well. */
  private newer: readonly string[] = [];

  constructor(private readonly tables: TableNames) {
    const { rows, state, clients } = tables;
    this.rows = rows;
    this.state = state;
    this.clients = new PostgresClients(clients);
    this.tokens = new PostgresTokens(tables);
    this.tableStatements = [
      `CREATE TABLE IF NOT EXISTS ${rows} (lock_name text COLLATE "C" PRIMARY KEY)`,
      `CREATE TABLE IF NOT EXISTS ${state} (lock_name text COLLATE "C" PRIMARY KEY, token bigint NOT NULL DEFAULT 0, reserved integer NOT NULL DEFAULT 0, owner text, mode text, session bigint, transaction bigint, lease bigint, since timestamptz)`,
      ...this.tokens.tableStatements,
      this.clients.statement,
    ];
  }

  isCreatedMeanwhile(error: unknown): boolean {
    return ['23505', '42P07', '42710'].includes((error as { code?: string }).code ?? '');
  }

  async identify(connection: SqlConnection): Promise<SessionIdentity> {
    const { rows } = await connection.run(
      `SELECT pid AS id, ${micros('backend_start')} AS origin FROM pg_stat_activity WHERE pid = pg_backend_pid()`,
    );
    return { id: Number(rows[0].id), origin: String(rows[0].origin) };
  }

  async checkServer(control: SqlConnection): Promise<void> {
    const { rows } = await control.run('SHOW server_version_num');
    const version = Number(rows[0].server_version_num);
    checkPostgresVersion(version);
    const { rows: activities } = await control.run('SHOW track_activities');
    if (activities[0].track_activities === 'off')
      throw new UnsuitableServer(
        'track_activities is off: without it the server does not show which sessions hold locks and wait. Set track_activities = on for this server, database or user',
      );
    this.newer = [];
    // Not on every operating system. A setting that is local to its transaction ends with this statement.
    const looksForClients = "SELECT set_config('client_connection_check_interval', '1000', true)";
    const isKnown = version >= 140_000 && (await control.run(looksForClients).then(() => true, unlessLost(control)));
    if (isKnown) this.newer = ["client_connection_check_interval = '1s'"];
    if (version >= 170_000) this.newer = [...this.newer, 'transaction_timeout = 0'];
  }

  async prepareControl(control: SqlConnection): Promise<void> {
    // Whatever the defaults of the role and of the database are.
    await control.run(
      "SET lock_timeout = '1s'; SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off",
    );
    const { rows } = await control.run('SHOW lock_timeout');
    if (rows[0].lock_timeout !== '1s') throw new UnsuitableServer(SHARED_SESSIONS);
  }

  async checkTables(control: SqlConnection): Promise<void> {
    await control.run([...probesOf(this.tables, 'transaction'), ...this.tokens.probes].join(';'));
  }

  prepareTokens(control: SqlConnection): Promise<void> {
    return this.tokens.open(control);
  }

  /** All settings are those of a transaction, so that none is left behind in a session that others may get. */
  async prepareSession(): Promise<void> {}

  /** `synchronous_commit`: a transaction that only locks rows writes nothing that could be lost. */
  async begin(
    session: SqlConnection,
    leaseTime: number,
    key: string,
  ): Promise<{ readonly transaction: number } | undefined> {
    const settings = ['statement_timeout = 0', 'lock_timeout = 0', 'synchronous_commit = off', ...this.newer];
    const local = settings.map((setting) => `SET LOCAL ${setting}`).join('; ');
    const { rows } = await session.run(
      `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; ${local}; ${setIdleTimeout(leaseTime)}; ${this.lockStatement(toLiteral(key), ' SKIP LOCKED')}`,
    );
    return toTransaction(rows);
  }

  tryRow(session: SqlConnection, key: string): Promise<{ readonly transaction: number } | undefined> {
    return this.lockRow(session, key, ' SKIP LOCKED');
  }

  waitForRow(session: SqlConnection, key: string): Promise<{ readonly transaction: number } | undefined> {
    return this.lockRow(session, key, '', Number.POSITIVE_INFINITY);
  }

  async touch(session: SqlConnection): Promise<void> {
    await session.run('SELECT 1');
  }

  async setLease(session: SqlConnection, leaseTime: number): Promise<void> {
    await session.run(setIdleTimeout(leaseTime));
  }

  /** A transaction that has failed answers ROLLBACK to COMMIT. Then its lock was free since the failure. */
  async commit(session: SqlConnection): Promise<boolean> {
    return (await session.run('COMMIT')).command === 'COMMIT';
  }

  async rollback(session: SqlConnection): Promise<void> {
    await session.run('ROLLBACK');
  }

  async hasRow(control: SqlConnection, key: string): Promise<boolean> {
    const { rows } = await control.run(`SELECT 1 FROM ${this.rows} WHERE lock_name = $1`, [key]);
    return rows.length > 0;
  }

  async makeRows(control: SqlConnection, key: string): Promise<void> {
    const row = 'SELECT $1::text FROM setting ON CONFLICT DO NOTHING';
    await control.run(
      `WITH setting AS (SELECT ${SOON}), state AS (INSERT INTO ${this.state} (lock_name) ${row}) INSERT INTO ${this.rows} (lock_name) ${row}`,
      [key],
    );
  }

  async note(control: SqlConnection, entries: readonly HolderEntry[]): Promise<readonly (TokenRange | undefined)[]> {
    const keys = entries.map(({ key }) => key);
    for (let attempt = 1; ; attempt++) {
      const ranges = await this.noteAll(control, entries);
      const isComplete = ranges.every((range) => range !== undefined);
      // Rows may be missing, or tokens.
      if (isComplete || attempt === RAISES || !(await this.tokens.provideFor(control, keys))) return ranges;
    }
  }

  /** Rows are locked in the order of their names, so that two such statements cannot wait for each other. */
  private async noteAll(
    control: SqlConnection,
    entries: readonly HolderEntry[],
  ): Promise<readonly (TokenRange | undefined)[]> {
    const { tokens } = this;
    const { rows } = await control.run(
      `WITH ${tokens.source},
       entry AS (SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
         AS e(lock_name, reserve, owner, mode, session, transaction, lease)),
       locked AS (SELECT lock_name AS locked_name FROM ${this.state} WHERE lock_name = ANY($1::text[]) ORDER BY lock_name FOR UPDATE)
       UPDATE ${this.state} AS s SET ${tokens.assignments('entry.reserve')},
         owner = entry.owner, mode = entry.mode, session = entry.session, transaction = entry.transaction, lease = entry.lease,
         since = clock_timestamp()
       FROM source, entry, locked WHERE s.lock_name = entry.lock_name AND s.lock_name = locked.locked_name AND ${tokens.areLeft}
       RETURNING s.lock_name, ${tokens.returned}`,
      [
        entries.map(({ key }) => key),
        entries.map(({ reserve }) => reserve),
        entries.map(({ owner }) => owner),
        entries.map(({ mode }) => mode),
        entries.map(({ session }) => session),
        entries.map(({ transaction }) => transaction),
        entries.map(({ leaseTime }) => Math.ceil(leaseTime)),
      ],
    );
    const ranges = new Map(rows.map((row) => [String(row.lock_name), tokens.read(control, row)]));
    return entries.map(({ key }) => ranges.get(key));
  }

  async noteLease(control: SqlConnection, key: string, owner: string, leaseTime: number): Promise<void> {
    const text = `WITH setting AS (SELECT ${SOON}) UPDATE ${this.state} SET lease = $3 FROM setting WHERE lock_name = $1 AND owner = $2`;
    await control.run(text, [key, owner, leaseTime]);
  }

  /** The session's transaction has ended: that is enough. */
  async forget(): Promise<void> {}

  async raiseToken(control: SqlConnection, key: string, token: number): Promise<void> {
    const { state } = this;
    await control.run(
      durably(
        `UPDATE ${state} SET token = greatest(token + reserved, ${Math.ceil(token)}), reserved = 0 WHERE lock_name = ${toLiteral(key)}`,
      ),
    );
  }

  async read(control: SqlConnection, key: string): Promise<KnownState | undefined> {
    const { rows } = await control.run(
      `SELECT s.owner, s.mode, s.session, s.token,
         greatest(0, s.lease - CASE WHEN a.state LIKE 'idle in transaction%' THEN extract(epoch from clock_timestamp() - a.state_change) * 1000 ELSE 0 END) AS remaining
       FROM ${this.state} AS s JOIN pg_stat_activity AS a ON ${OF_SESSION} WHERE s.lock_name = $1`,
      [key],
    );
    return rows.length === 0 ? undefined : toState(rows[0]);
  }

  async heldKeys(control: SqlConnection): Promise<readonly string[]> {
    const { rows } = await control.run(
      `SELECT s.lock_name AS key FROM ${this.state} AS s JOIN pg_stat_activity AS a ON ${OF_SESSION}`,
    );
    return rows.map(({ key }) => String(key));
  }

  /** The state is locked meanwhile: nobody is noted as the holder between the comparison and the end of the session. */
  async kill(control: SqlConnection, key: string, { owner, token, session }: KnownState): Promise<boolean> {
    const { rows: killed } = await control.run(
      `WITH meant AS (SELECT session, transaction FROM ${this.state} WHERE lock_name = $1 AND owner = $2 AND token = $3 FOR UPDATE)
       SELECT pg_terminate_backend(a.pid) FROM meant AS s JOIN pg_stat_activity AS a ON ${OF_SESSION}`,
      [key, owner, token],
    );
    if (killed.length === 0) return false;
    for (const until = performance.now() + KILL_TIME; performance.now() < until; ) {
      const { rows } = await control.run('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [session]);
      if (rows.length === 0) break;
    }
    return true;
  }

  async running(control: SqlConnection, sessions: readonly number[]): Promise<readonly number[]> {
    const text = `SELECT pid FROM pg_stat_activity WHERE pid = ANY($1) AND state = 'active'`;
    const { rows } = await control.run(text, [sessions]);
    return rows.map(({ pid }) => Number(pid));
  }

  async endIdle(control: SqlConnection, { id, origin }: SessionIdentity): Promise<void> {
    await control.run(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND ${micros('backend_start')} = $2 AND state <> 'active'`,
      [id, origin],
    );
  }

  async cancel(control: SqlConnection, session: number): Promise<void> {
    await control.run('SELECT pg_cancel_backend($1)', [session]);
  }

  private async lockRow(session: SqlConnection, key: string, how: string, limit?: number) {
    const { rows } = await session.run(this.lockStatement('$1', how), [key], limit);
    return toTransaction(rows);
  }

  private lockStatement(name: string, how: string): string {
    return `SELECT ${micros('now()')} AS transaction FROM ${this.rows} WHERE lock_name = ${name} FOR UPDATE${how}`;
  }
}

/**
 * The transaction that the state names still runs: a session is known by its process and when its transaction began.
 */
const OF_SESSION = `a.pid = s.session AND ${micros('a.xact_start')} = s.transaction`;

function toTransaction([row]: readonly SqlRow[]): { readonly transaction: number } | undefined {
  return row && { transaction: Number(row.transaction) };
}

/**
 * A string constant for a statement that is sent with others in one text, which can have no parameters. `E` makes
 * backslashes mean the same whatever `standard_conforming_strings` is.
 *
 * @throws an error with PostgreSQL's code for a name with a zero byte, at which the text of a statement ends
 */
function toLiteral(text: string): string {
  if (text.includes('\0'))
    throw Object.assign(new Error('invalid byte sequence for encoding "UTF8": 0x00'), { code: '22021' });
  return `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}

function setIdleTimeout(leaseTime: number): string {
  return `SET LOCAL idle_in_transaction_session_timeout = ${Math.min(Math.ceil(leaseTime), LONGEST_TIMEOUT)}`;
}

/** @throws UnsuitableServer when it is too old */
export function checkPostgresVersion(version: number): void {
  if (version >= OLDEST) return;
  const found = `${Math.floor(version / 10_000)}.${Math.floor(version / 100) % 100}`;
  throw new UnsuitableServer(`row locks need PostgreSQL 9.6 or later, and this server is PostgreSQL ${found}`);
}

/** For a statement that may fail, but not for want of a connection. */
function unlessLost(connection: SqlConnection): (error: unknown) => boolean {
  return (error) => {
    if (connection.ended !== undefined || error instanceof ConnectionLost) throw error;
    return false;
  };
}

function toState(row: SqlRow): KnownState {
  const { owner, mode, session, remaining, token } = row;
  return {
    owner: String(owner),
    mode: mode === 'write' ? 'write' : 'exclusive',
    session: Number(session),
    token: Number(token),
    remaining: Math.round(Number(remaining)),
  };
}
