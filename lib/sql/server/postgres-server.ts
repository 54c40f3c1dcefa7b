import { ConnectionLost, type SessionIdentity, type SqlConnection, type SqlRow } from '../driver/sql-connection.js';
import type { HolderEntry, PostgresLocks, TokenRange } from '../session-locks/session-locks.js';
import { createOthers } from './create-tables.js';
import {
  type ClientTable,
  type KnownState,
  type LockServer,
  type LockWords,
  SHARED_SESSIONS,
  UnsuitableServer,
} from './lock-server.js';
import { PostgresClients } from './postgres-clients.js';
import { insertMissing, micros, SOON } from './postgres-statements.js';
import { holderValues, type PostgresTokens } from './postgres-tokens.js';
import { probesOf } from './rights.js';
import type { TableNames } from './table-name.js';

/** How long a terminated session may take to end, in milliseconds. */
const KILL_TIME = 1_000;
/**
 * How many times at most a statement that records holders is sent. It is sent again when rows were missing, or when the
 * token limit had to be raised first.
 */
const RAISES = 3;

/** PostgreSQL. Sessions are the rows of `pg_stat_activity`. */
export class PostgresServer implements LockServer {
  readonly mostNotes = 128;
  readonly tableStatements: readonly string[];
  readonly clients: ClientTable;

  private readonly state: string;

  constructor(
    readonly words: LockWords,
    private readonly tables: TableNames,
    private readonly tokens: PostgresTokens,
    readonly locks: PostgresLocks,
  ) {
    const { state, clients } = tables;
    this.state = state;
    this.clients = new PostgresClients(clients);
    this.tableStatements = [...locks.tableStatements, ...createOthers('postgres', tables)];
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
    checkPostgresVersion(version, this.locks.oldest, this.words.title);
    const { rows: roles } = await control.run('SELECT pg_is_in_recovery() AS is_standby');
    // No UnsuitableServer: after a failover, the same address may lead to a primary.
    if (roles[0].is_standby === true)
      throw new Error(
        'this server is a standby (pg_is_in_recovery), which cannot keep locks: connect to the primary, by a host name that follows it after a failover',
      );
    const { rows: activities } = await control.run('SHOW track_activities');
    if (activities[0].track_activities === 'off')
      throw new UnsuitableServer(
        'track_activities is off. Without it, the server does not show which sessions hold locks or wait for them. Set track_activities = on for this server, database or user',
      );
    const newer: string[] = [];
    // Probes for client_connection_check_interval, which not every operating system supports. The setting is local to
    // the transaction, so it ends with this statement.
    const looksForClients = "SELECT set_config('client_connection_check_interval', '1000', true)";
    const isKnown = version >= 140_000 && (await control.run(looksForClients).then(() => true, unlessLost(control)));
    if (isKnown) newer.push("client_connection_check_interval = '1s'");
    if (version >= 170_000) newer.push('transaction_timeout = 0');
    this.locks.useSettings(newer);
  }

  async prepareControl(control: SqlConnection): Promise<void> {
    // The role and the database may have other defaults.
    await control.run(
      "SET lock_timeout = '1s'; SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off",
    );
    const { rows } = await control.run('SHOW lock_timeout');
    if (rows[0].lock_timeout !== '1s') throw new UnsuitableServer(SHARED_SESSIONS);
  }

  async restoreControl(control: SqlConnection, limit: number): Promise<void> {
    const text = 'RESET lock_timeout; RESET default_transaction_isolation; RESET default_transaction_read_only';
    await control.run(text, undefined, limit);
  }

  async checkTables(control: SqlConnection): Promise<void> {
    await control.run([...probesOf(this.tables, 'transaction'), ...this.tokens.probes].join(';'));
    await this.locks.checkTables(control);
  }

  prepareTokens(control: SqlConnection): Promise<void> {
    return this.tokens.open(control);
  }

  async touch(session: SqlConnection): Promise<void> {
    await session.run('SELECT 1');
  }

  async makeState(control: SqlConnection, key: string): Promise<void> {
    await insertMissing(control, this.state, key);
  }

  async note(control: SqlConnection, entries: readonly HolderEntry[]): Promise<readonly (TokenRange | undefined)[]> {
    const keys = entries.map(({ key }) => key);
    for (let attempt = 1; ; attempt++) {
      const ranges =
        entries.length === 1 ? [await this.noteOne(control, entries[0])] : await this.noteAll(control, entries);
      const isComplete = ranges.every((range) => range !== undefined);
      // Rows or tokens may be missing.
      if (isComplete || attempt === RAISES || !(await this.tokens.provideFor(control, keys))) return ranges;
    }
  }

  /** Costs the server half as much as {@link noteAll}. */
  private async noteOne(control: SqlConnection, entry: HolderEntry): Promise<TokenRange | undefined> {
    const { tokens } = this;
    const { rows } = await control.run(`WITH ${tokens.source} ${tokens.noteOne()}`, holderValues(entry));
    return rows.length === 0 ? undefined : tokens.read(rows[0]);
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
    const ranges = new Map(rows.map((row) => [String(row.lock_name), tokens.read(row)]));
    return entries.map(({ key }) => ranges.get(key));
  }

  async noteLease(control: SqlConnection, key: string, owner: string, leaseTime: number): Promise<void> {
    const text = `WITH setting AS (SELECT ${SOON}) UPDATE ${this.state} SET lease = $3 FROM setting WHERE lock_name = $1 AND owner = $2`;
    await control.run(text, [key, owner, leaseTime]);
  }

  async read(control: SqlConnection, key: string): Promise<KnownState | undefined> {
    const { rows } = await control.run(
      `SELECT s.owner, s.mode, s.session, s.token,
         greatest(0, s.lease - CASE WHEN a.state LIKE '${this.locks.idleState}' THEN extract(epoch from clock_timestamp() - a.state_change) * 1000 ELSE 0 END) AS remaining
       FROM ${this.state} AS s JOIN pg_stat_activity AS a ON ${this.locks.isHeld} WHERE s.lock_name = $1`,
      [key],
    );
    return rows.length === 0 ? undefined : toState(rows[0]);
  }

  async heldKeys(control: SqlConnection): Promise<readonly string[]> {
    const { rows } = await control.run(
      `SELECT s.lock_name AS key FROM ${this.state} AS s JOIN pg_stat_activity AS a ON ${this.locks.isHeld}`,
    );
    return rows.map(({ key }) => String(key));
  }

  /**
   * Locks the lock's row, so no new holder can be recorded after the row is compared and before the session is
   * terminated.
   */
  async kill(control: SqlConnection, key: string, { owner, token, session }: KnownState): Promise<boolean> {
    const { rows: killed } = await control.run(
      `WITH meant AS (SELECT session, transaction FROM ${this.state} WHERE lock_name = $1 AND owner = $2 AND token = $3 FOR UPDATE)
       SELECT pg_terminate_backend(a.pid) FROM meant AS s JOIN pg_stat_activity AS a ON ${this.locks.isHeld}`,
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
}

/** @throws UnsuitableServer when the server is too old */
export function checkPostgresVersion(version: number, oldest: number, title: string): void {
  if (version >= oldest) return;
  const message = `${title} need PostgreSQL ${numberOf(oldest)} or later, but this server is PostgreSQL ${numberOf(version)}`;
  throw new UnsuitableServer(message);
}

/** Since PostgreSQL 10, the second number is the minor version. */
function numberOf(version: number): string {
  const [major, minor] = [Math.floor(version / 10_000), Math.floor(version / 100) % 100];
  return major < 10 ? `${major}.${minor}` : String(major);
}

/** An error handler that ignores the failure of a statement, unless the connection was lost. */
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
