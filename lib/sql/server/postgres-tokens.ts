import type { SqlConnection, SqlRow } from '../driver/sql-connection.js';
import type { HolderEntry, TokenRange } from '../session-locks/session-locks.js';
import { MAX_LEAD } from './lock-server.js';
import { durably, micros, SOON } from './postgres-statements.js';
import type { TableNames } from './table-name.js';

/** How far the limit is raised each time, in µs. */
const RAISE = 20_000_000;
/** The limit is raised when less than this is left, in µs. */
const LOW = 10_000_000;
/** The first tokens after a crash are at least this far ahead of the clock, in µs. */
const AHEAD = 150_000;

/** The next token of the lock `s`. */
const NEXT = 'greatest(s.token + s.reserved + 1, source.time)';

/**
 * Fencing tokens that are committed without waiting for the disk, so that a crash of the server loses the last ones.
 * The unlogged table `epoch` is empty after a crash. All tokens are below the limit that `floor` keeps on the disk. A
 * client that finds `epoch` empty raises the limit, and tokens continue from the previous limit. See
 * docs/internals/decisions/sql-tokens.md.
 *
 * Statements that issue a token have the form `WITH ${source} … UPDATE state AS s SET ${assignments(…)} FROM source
 * WHERE … AND ${areLeft} RETURNING ${returned}`; {@link noteOne} is such an UPDATE. {@link read} reads each row. If
 * there is none, {@link provideFor} returns whether to try again.
 */
export class PostgresTokens {
  /** Statements that fail if a table or a permission is missing, and otherwise change nothing. */
  readonly probes: readonly string[];
  /**
   * A CTE with one row, or without rows if {@link open} must be called first. The commit does not wait for the disk.
   */
  readonly source: string;
  /** A condition on `s` and `source`: the requested tokens are below the limit. */
  readonly areLeft = `${NEXT} < source.token_limit`;
  readonly returned = 's.token, s.reserved, source.token_limit - s.token - s.reserved AS tokens_left';

  private readonly state: string;
  private readonly epoch: string;
  private readonly floor: string;
  /** Raises the limit. */
  private control: SqlConnection | undefined;
  private isRaising = false;

  constructor({ state, epoch, floor }: TableNames) {
    this.state = state;
    this.epoch = epoch;
    this.floor = floor;
    this.probes = [
      `INSERT INTO ${epoch} (base) SELECT base FROM ${epoch} WHERE 1 = 0`,
      `SELECT token_limit FROM ${floor} WHERE 1 = 0 FOR UPDATE`,
      `INSERT INTO ${floor} (token_limit) SELECT token_limit FROM ${floor} WHERE 1 = 0`,
    ];
    // Without LIMIT, the planner expects thousands of rows in a table that was never analyzed, and compiles the
    // statement.
    const only = (table: string) => `(SELECT * FROM ${table} LIMIT 1)`;
    this.source = `source AS (SELECT greatest(${micros('clock_timestamp()')}, e.base) AS time, f.token_limit, ${SOON} FROM ${only(epoch)} AS e, ${only(floor)} AS f)`;
  }

  /** @param reserve an SQL expression for the number of tokens to reserve for hand-offs */
  assignments(reserve: string): string {
    const room = `least(source.time + ${MAX_LEAD}, source.token_limit - 1) - ${NEXT}`;
    return `token = ${NEXT}, reserved = greatest(0, least(${reserve}, ${room}))`;
  }

  /**
   * An UPDATE that records one holder and issues its token. Its parameters are {@link holderValues}, the first ones of
   * the statement.
   *
   * @param only a further CTE, whose column `ok` must be true
   */
  noteOne(only?: string): string {
    const [from, condition] = only === undefined ? ['', ''] : [`, ${only}`, ` AND ${only}.ok`];
    return `UPDATE ${this.state} AS s SET ${this.assignments('$2::bigint')}, owner = $3, mode = $4, session = $5::bigint,
         transaction = $6::bigint, lease = $7::bigint, since = clock_timestamp()
       FROM source${from} WHERE s.lock_name = $1 AND ${this.areLeft}${condition} RETURNING ${this.returned}`;
  }

  /** Raises the limit in the background when few tokens are left. @param row a result of {@link returned} */
  read(row: SqlRow): TokenRange {
    const range = { token: Number(row.token), reserved: Number(row.reserved) };
    if (Number(row.tokens_left) < LOW && !this.isRaising && this.control !== undefined) {
      this.isRaising = true;
      this.raise(this.control, range.token + range.reserved)
        .catch(() => {}) // the next token tries again
        .finally(() => {
          this.isRaising = false;
        });
    }
    return range;
  }

  /** Begins a new epoch if a crash, or the promotion of a replica, has ended the previous one. */
  async open(control: SqlConnection): Promise<void> {
    if (this.control === undefined || this.control.ended !== undefined) this.control = control;
    const { rows } = await control.run(`SELECT 1 FROM ${this.epoch}`);
    if (rows.length > 0) return;
    // If several clients find it empty, they lock the row of the limit in turn, and only the first one raises the
    // limit.
    await control.run(
      durably(
        `SELECT 1 FROM ${this.floor} FOR UPDATE;
         WITH clock AS (SELECT ${micros('clock_timestamp()')} AS now),
         raised AS (
           INSERT INTO ${this.floor} AS f (token_limit) SELECT now + ${RAISE} FROM clock WHERE NOT EXISTS (SELECT 1 FROM ${this.epoch})
           ON CONFLICT (only_row) DO UPDATE SET token_limit = greatest(f.token_limit + ${RAISE}, excluded.token_limit)
           RETURNING token_limit - ${RAISE} AS before)
         INSERT INTO ${this.epoch} (base) SELECT greatest(before, now + ${AHEAD}) FROM raised, clock ON CONFLICT DO NOTHING`,
      ),
    );
  }

  /**
   * Call this for locks that got no token although their rows exist.
   *
   * @returns whether it made tokens available; false if they already were
   */
  async provideFor(control: SqlConnection, keys: readonly string[]): Promise<boolean> {
    const { rows } = await control.run(
      `WITH ${this.source} SELECT token_limit, greatest(time, (SELECT max(token + reserved) + 1 FROM ${this.state} WHERE lock_name = ANY($1::text[]))) AS wanted FROM source`,
      [keys],
    );
    if (rows.length === 0) await this.open(control);
    else if (Number(rows[0].wanted) >= Number(rows[0].token_limit)) await this.raise(control, Number(rows[0].wanted));
    else return false;
    return true;
  }

  /** Makes sure that there are tokens above the clock and above this token. */
  private async raise(control: SqlConnection, token: number): Promise<void> {
    const used = `greatest(${micros('clock_timestamp()')}, ${token})`;
    await control.run(
      durably(
        `UPDATE ${this.floor} SET token_limit = greatest(token_limit, ${used}) + ${RAISE} WHERE token_limit < ${used} + ${LOW}`,
      ),
    );
  }
}

/** The values of {@link PostgresTokens.noteOne}. */
export function holderValues({ key, reserve, owner, mode, session, transaction, leaseTime }: HolderEntry): unknown[] {
  return [key, reserve, owner, mode, session, transaction, Math.ceil(leaseTime)];
}
