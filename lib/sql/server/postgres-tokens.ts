import type { SqlConnection, SqlRow } from '../driver/sql-connection.js';
import { MAX_LEAD, type TokenRange } from './lock-server.js';
import { durably, micros, SOON } from './postgres-statements.js';
import type { TableNames } from './table-name.js';

/** By how much the limit is raised, in µs. */
const RAISE = 20_000_000;
/** It is raised when less than this is left, in µs. */
const LOW = 10_000_000;
/** How far, in µs, the first tokens after a crash are ahead of the clock at least. */
const AHEAD = 150_000;

/** The next token of the lock `s`. */
const NEXT = 'greatest(s.token + s.reserved + 1, source.time)';

/**
 * Fencing tokens that are committed without waiting for the disk, so that a crash of the server loses the last ones. A
 * crash shows in the unlogged table `epoch`, which is empty after it. All tokens are below the limit that `floor` keeps
 * on the disk: who finds `epoch` empty raises the limit, and tokens go on from where the limit was. See
 * docs/decisions/sql-tokens.md.
 *
 * For statements that give a token: `WITH ${source} … UPDATE state AS s SET ${assignments(…)} FROM source WHERE … AND
 * ${areLeft} RETURNING ${returned}`. {@link read} reads each row. If
 * there is none, {@link provideFor} says whether to try again.
 */
export class PostgresTokens {
  readonly tableStatements: readonly string[];
  /** Statements that fail if a table or a right is missing, and otherwise change nothing. */
  readonly probes: readonly string[];
  /** A CTE with one row, or with none where no token can be given before {@link open}. The commit does not wait. */
  readonly source: string;
  /** Whether the tokens that are wanted are below the limit: a condition on `s` and `source`. */
  readonly areLeft = `${NEXT} < source.token_limit`;
  readonly returned = 's.token, s.reserved, source.token_limit - s.token - s.reserved AS tokens_left';

  private readonly state: string;
  private readonly epoch: string;
  private readonly floor: string;
  private isRaising = false;

  constructor({ state, epoch, floor }: TableNames) {
    this.state = state;
    this.epoch = epoch;
    this.floor = floor;
    const onlyRow = 'only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row)';
    this.tableStatements = [
      `CREATE UNLOGGED TABLE IF NOT EXISTS ${epoch} (${onlyRow}, base bigint NOT NULL)`,
      `CREATE TABLE IF NOT EXISTS ${floor} (${onlyRow}, token_limit bigint NOT NULL)`,
    ];
    this.probes = [
      `INSERT INTO ${epoch} (base) SELECT base FROM ${epoch} WHERE 1 = 0`,
      `SELECT token_limit FROM ${floor} WHERE 1 = 0 FOR UPDATE`,
      `INSERT INTO ${floor} (token_limit) SELECT token_limit FROM ${floor} WHERE 1 = 0`,
    ];
    // LIMIT is for the planner. It expects thousands of rows in a table that nobody has analyzed, and compiles the statement.
    const only = (table: string) => `(SELECT * FROM ${table} LIMIT 1)`;
    this.source = `source AS (SELECT greatest(${micros('clock_timestamp()')}, e.base) AS time, f.token_limit, ${SOON} FROM ${only(epoch)} AS e, ${only(floor)} AS f)`;
  }

  /** @param reserve an expression: how many tokens to reserve for hand-offs */
  assignments(reserve: string): string {
    const room = `least(source.time + ${MAX_LEAD}, source.token_limit - 1) - ${NEXT}`;
    return `token = ${NEXT}, reserved = greatest(0, least(${reserve}, ${room}))`;
  }

  /** Raises the limit in the background when it comes near. @param row what {@link returned} gave */
  read(control: SqlConnection, row: SqlRow): TokenRange {
    const range = { token: Number(row.token), reserved: Number(row.reserved) };
    if (Number(row.tokens_left) < LOW && !this.isRaising) {
      this.isRaising = true;
      this.raise(control, range.token + range.reserved)
        .catch(() => {}) // the next token tries again
        .finally(() => {
          this.isRaising = false;
        });
    }
    return range;
  }

  /** Begins a new epoch where a crash, or the promotion of a replica, has ended the one before. */
  async open(control: SqlConnection): Promise<void> {
    const { rows } = await control.run(`SELECT 1 FROM ${this.epoch}`);
    if (rows.length > 0) return;
    // Of many that find it empty, one raises the limit, after the others have waited for the row that it locks.
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
   * For locks that got no token though their rows are there.
   *
   * @returns whether it made tokens available; false: they were
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

  /** Makes sure that there are tokens above the clock and this one. */
  private async raise(control: SqlConnection, token: number): Promise<void> {
    const used = `greatest(${micros('clock_timestamp()')}, ${token})`;
    await control.run(
      durably(
        `UPDATE ${this.floor} SET token_limit = greatest(token_limit, ${used}) + ${RAISE} WHERE token_limit < ${used} + ${LOW}`,
      ),
    );
  }
}
