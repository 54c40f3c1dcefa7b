import { PGlite } from '@electric-sql/pglite';
import { LockConfigurationError, LockKeyError } from '../../lib/engine/errors.js';
import { nodeRuntime } from '../../lib/engine/node-runtime.js';
import { type DriverConnection, SqlConnection, type SqlResult } from '../../lib/sql/driver/sql-connection.js';
import { MAX_LEAD } from '../../lib/sql/server/lock-server.js';
import { PostgresServer } from '../../lib/sql/server/postgres-server.js';
import { PostgresTokens } from '../../lib/sql/server/postgres-tokens.js';
import { quoteTable } from '../../lib/sql/server/table-name.js';
import { PostgresRowLocks } from '../../lib/sql/session-locks/postgres-row-locks.js';
import { lockRows, makeLockRows, type RowQuery } from '../../lib/sql.js';
import { until } from '../support/until.js';

/**
 * The one session that PGlite has: everything that takes two sessions is tested on servers, by `npm run suite -- sql`.
 */
class OnlySession implements DriverConnection {
  readonly announced = 1;

  constructor(private readonly postgres: PGlite) {}

  async run(sql: string, parameters?: readonly unknown[]): Promise<SqlResult> {
    // Only a text without parameters may consist of several statements.
    const results =
      parameters === undefined
        ? await this.postgres.exec(sql)
        : [await this.postgres.query<Record<string, unknown>>(sql, [...parameters])];
    const { rows = [], affectedRows = 0 } = results.at(-1) ?? {};
    return { rows, changed: affectedRows, lastId: 0 };
  }

  onEnd(): void {}
  close(): void {}
  destroy(): void {}
  unref(): void {}
}

describe('row locks in a PostgreSQL inside the process', () => {
  const tables = quoteTable('distributed_lock', '"');
  const locks = new PostgresRowLocks(tables.rows);
  const server = new PostgresServer(
    { factory: 'rowLocks()', title: 'row locks' },
    tables,
    new PostgresTokens(tables),
    locks,
  );
  let postgres: PGlite;
  let session: SqlConnection;
  let count = 0;
  const newKey = () => `lock:order:${++count}`;
  const entry = (key: string, reserve = 0) =>
    ({ key, owner: 'client:1', mode: 'exclusive', session: 1, transaction: 7, leaseTime: 30_000, reserve }) as const;

  const note = async (noted: ReturnType<typeof entry>) => (await server.note(session, [noted]))[0];

  beforeAll(async () => {
    postgres = await PGlite.create();
    session = new SqlConnection(new OnlySession(postgres), nodeRuntime, { limit: 30_000 });
  }, 60_000);
  afterAll(() => postgres?.close());

  it('needs its tables, which can be made again', async () => {
    await server.checkServer(session);
    await server.prepareControl(session);
    await expect(server.checkTables(session)).rejects.toMatchObject({ code: '42P01' });
    await postgres.exec('ROLLBACK');
    for (const statement of [...server.tableStatements, ...server.tableStatements]) await session.run(statement);
    await server.checkTables(session);
    await locks.prepareSession();
    await server.prepareTokens(session);
  });

  describe('with its tables', () => {
    it('makes the rows of a lock once', async () => {
      const key = newKey();
      expect(await locks.provide(session, key)).toBe(true);
      expect(await locks.provide(session, key)).toBe(false);
      await server.makeState(session, key);
      await server.makeState(session, key);
      expect(await note(entry(key))).toBeDefined();
    });

    it.each(['try', 'wait'] as const)('%s locks a row that is there, in a transaction', async (lock) => {
      const key = newKey();
      expect(await locks.begin(session, key, 30_000)).toBeUndefined();
      expect(await locks[lock](session, key)).toBeUndefined();
      await locks.undo(session);
      await locks.provide(session, key);
      expect(await locks.begin(session, key, 1_234)).toMatchObject({
        transaction: expect.any(Number),
      });
      const { rows } = await session.run('SHOW idle_in_transaction_session_timeout');
      expect(rows).toEqual([{ idle_in_transaction_session_timeout: '1234ms' }]);
      const microseconds = Date.now() * 1_000;
      const { transaction } = (await locks[lock](session, key)) as { transaction: number };
      expect(Math.abs(transaction - microseconds)).toBeLessThan(60_000_000);
      await locks.setLease(session, 2_345);
      expect((await session.run('SHOW idle_in_transaction_session_timeout')).rows).toEqual([
        { idle_in_transaction_session_timeout: '2345ms' },
      ]);
      await locks.undo(session);
    });

    /** As a clock that was ahead would leave it. */
    const advance = (key: string, token: number) =>
      session.run(`UPDATE distributed_lock_state SET token = ${token}, reserved = 0 WHERE lock_name = '${key}'`);

    it('gives tokens that grow, of holders, of those reserved for hand-offs, and of tokens from elsewhere', async () => {
      const key = newKey();
      expect(await note(entry(key))).toBeUndefined();
      await server.makeState(session, key);
      // More than the clock advances until the next statement.
      const first = await note(entry(key, 90_000));
      const second = await note(entry(key));
      if (first === undefined || second === undefined) throw new Error('there is no row');
      expect(first.reserved).toBe(90_000);
      expect(second.token).toBeGreaterThan(first.token + first.reserved);
      expect(second.reserved).toBe(0);
      const far = second.token + 3_600_000_000;
      await advance(key, far);
      expect(await note(entry(key, 10))).toEqual({ token: far + 1, reserved: 0 });
    });

    it('notes several holders in one statement, and says whose row is missing', async () => {
      const [a, b, missing] = [newKey(), newKey(), newKey()];
      for (const key of [a, b]) await server.makeState(session, key);
      const noted = await server.note(session, [entry(b, 5), entry(missing), entry(a)]);
      expect(noted).toEqual([
        { token: expect.any(Number), reserved: 5 },
        undefined,
        { token: expect.any(Number), reserved: 0 },
      ]);
      expect((await note(entry(b)))?.token).toBeGreaterThan((noted[0]?.token ?? 0) + 5);
    });

    describe('with a limit of its tokens on the disk', () => {
      const limit = async () => {
        const { rows } = await session.run('SELECT token_limit FROM distributed_lock_floor');
        return Number(rows[0].token_limit);
      };
      const now = () => Date.now() * 1_000;
      const lowered = async (to: number) => {
        const key = newKey();
        await server.makeState(session, key);
        await session.run(`UPDATE distributed_lock_floor SET token_limit = ${to}`);
        return key;
      };

      it('raises it when it comes near', async () => {
        const key = await lowered(now() + 5_000_000);
        const range = await note(entry(key));
        await until(async () => (await limit()) > now() + 15_000_000);
        expect(range?.token).toBeLessThan(now() + 5_000_000);
      });

      it('is planned as what it is, one row, in tables that nobody has analyzed', async () => {
        const { source } = new PostgresTokens(quoteTable('distributed_lock', '"'));
        const { rows } = await session.run(`EXPLAIN (FORMAT JSON) WITH ${source} SELECT * FROM source`);
        const [{ Plan: plan }] = rows[0]['QUERY PLAN'] as [{ Plan: Record<string, number> }];
        // From a cost of 100,000 the server compiles a statement, which takes longer than a lock.
        expect(plan['Total Cost']).toBeLessThan(1_000);
      });

      it('does not raise it otherwise', async () => {
        const to = now() + 15_000_000;
        const key = await lowered(to);
        await note(entry(key));
        expect(await limit()).toBe(to);
      });

      it('gives none beyond it, reserved ones included', async () => {
        const near = await lowered(now() + 2_000_000);
        // Ahead of the clock, and just below the limit.
        await advance(near, (await limit()) - 5);
        const range = await note(entry(near, 90_000));
        expect((range?.token ?? 0) + (range?.reserved ?? 0)).toBeLessThan(await limit());
        const over = await lowered(1);
        const second = await note(entry(over, 10));
        expect((second?.token ?? 0) + (second?.reserved ?? 0)).toBeLessThan(await limit());
      });

      it('gives none before a crash is noticed, and those after it exceed the limit before', async () => {
        const key = await lowered(now() + 3_600_000_000);
        const before = await limit();
        await session.run('TRUNCATE distributed_lock_epoch');
        const range = await note(entry(key, 10));
        expect(range?.token).toBeGreaterThanOrEqual(before);
        expect(range?.reserved).toBe(10);
        expect(await limit()).toBe(before + 20_000_000);
      });
    });

    it('reserves tokens no further ahead of the clock than a tenth of a second', async () => {
      const key = newKey();
      await server.makeState(session, key);
      const range = await note(entry(key, 1_000_000));
      expect(range?.reserved).toBeLessThanOrEqual(MAX_LEAD);
      expect(range?.reserved).toBeGreaterThan(0);
    });

    it('keeps the record of a client until it expires or is removed', async () => {
      const { clients } = server;
      await clients.write(session, 'one', 'old', 60_000);
      await clients.write(session, 'one', 'new', 60_000);
      await clients.write(session, 'two', 'other', 60_000);
      await clients.write(session, 'gone', 'expired', 0);
      expect(await clients.read(session, 'one')).toEqual([{ record: 'new', age: expect.any(Number) }]);
      expect((await clients.read(session)).map(({ record }) => record).sort()).toEqual(['new', 'other']);
      await clients.remove(session, 'one');
      expect(await clients.read(session, 'one')).toEqual([]);
    });
  });

  describe('with lockRows', () => {
    const on =
      (executor: Pick<PGlite, 'query'>): RowQuery =>
      (sql, parameters) =>
        executor.query(sql, [...parameters]);
    const inTransaction = <T>(body: (query: RowQuery) => Promise<T>): Promise<T> =>
      postgres.transaction((transaction) => body(on(transaction)));
    const refused = (names: string | string[]) => inTransaction((query) => lockRows(query, names));

    it.each([{}, { mode: 'share' }, { waitTime: 0 }, { waitTime: '2s' }] as const)(
      'locks the rows of several names: %p',
      async (options) => {
        const names = [newKey(), newKey()];
        await makeLockRows(on(postgres), names);
        await makeLockRows(on(postgres), names);
        expect(
          await inTransaction(async (query) => {
            await lockRows(query, names, options);
            return 'locked';
          }),
        ).toBe('locked');
        const outside = lockRows(on(postgres), names, options);
        await expect(outside).rejects.toThrow(LockConfigurationError);
        await expect(outside).rejects.toThrow(/outside of a transaction, so that nothing is locked/);
      },
    );

    it('says what to do about a row that is missing, and about bad names', async () => {
      await expect(refused(newKey())).rejects.toThrow(LockConfigurationError);
      await expect(refused(newKey())).rejects.toThrow(/call makeLockRows/);
      await expect(refused([])).rejects.toThrow(LockKeyError);
      await expect(refused('')).rejects.toThrow(LockKeyError);
    });
  });
});
