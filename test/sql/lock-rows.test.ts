import { setTimeout as sleep } from 'node:timers/promises';
import knex, { type Knex } from 'knex';
import { DataSource } from 'typeorm';
import { LockBusyError, LockConfigurationError, LockKeyError } from '../../lib/engine/errors.js';
import { codesOf, rowsOf } from '../../lib/sql/lock-rows/rows-of.js';
import { type LockRowsOptions, lockRows, makeLockRows, type RowQuery } from '../../lib/sql.js';
import { SQL_SERVERS } from '../support/servers/sql/sql-server.js';
import { openSqlWorld, type SqlWorld } from './sql-world.js';

/** A library with which applications use a database. */
interface Recipe {
  readonly query: RowQuery;
  transaction<T>(body: (query: RowQuery) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const RECIPES = {
  async TypeORM({ server }: SqlWorld): Promise<Recipe> {
    const type = server.kind === 'PostgreSQL' ? 'postgres' : 'mariadb';
    const dataSource = await new DataSource({ type, url: server.url.replace('mysql:', 'mariadb:') }).initialize();
    return {
      query: (sql, params) => dataSource.query(sql, params),
      transaction: (body) => dataSource.transaction((manager) => body((sql, params) => manager.query(sql, params))),
      close: () => dataSource.destroy(),
    };
  },
  async Knex({ server }: SqlWorld): Promise<Recipe> {
    const db = knex({ client: server.kind === 'PostgreSQL' ? 'pg' : 'mysql2', connection: server.url });
    // Knex has its own placeholders, which are the same for every database.
    const on =
      (executor: Knex): RowQuery =>
      (sql, params) =>
        Promise.resolve(executor.raw(sql.replace(/\$\d+/g, '?'), params as Knex.RawBinding[]));
    return {
      query: on(db),
      transaction: (body) => db.transaction((trx) => body(on(trx))),
      close: () => db.destroy(),
    };
  },
};

describe.each(SQL_SERVERS)('lockRows, %s', (kind) => {
  const world = openSqlWorld(kind);
  // The tables are made by rowLocks.
  beforeAll(async () => {
    const locks = world.service();
    await (await locks.acquire(world.name())).release();
  }, 60_000);

  describe.each(['TypeORM', 'Knex'] as const)('with %s', (library) => {
    let recipe: Recipe;
    const locked = async <T>(
      names: string | string[],
      options: LockRowsOptions,
      body: (query: RowQuery) => Promise<T>,
    ): Promise<T> => {
      await makeLockRows(recipe.query, names);
      return recipe.transaction(async (query) => {
        await lockRows(query, names, options);
        return body(query);
      });
    };
    const nothing = async () => {};
    beforeAll(async () => {
      recipe = await RECIPES[library](world);
    }, 60_000);
    afterAll(() => recipe?.close());

    it('serializes transactions that read, decide and write', async () => {
      const [name, table] = [world.name(), `stock_${library.toLowerCase()}`];
      await recipe.query(`DROP TABLE IF EXISTS ${table}`, []);
      await recipe.query(`CREATE TABLE ${table} (amount integer NOT NULL)`, []);
      await recipe.query(`INSERT INTO ${table} VALUES (0)`, []);
      const read = async (query: RowQuery) => {
        const answer = (await query(`SELECT amount FROM ${table}`, [])) as { rows?: unknown[] } & unknown[][];
        const list = (answer.rows ?? (Array.isArray(answer[0]) ? answer[0] : answer)) as { amount: number }[];
        return Number(list[0].amount);
      };
      const increment = () =>
        locked(name, {}, async (query) => {
          const amount = await read(query);
          await sleep(5);
          await query(`UPDATE ${table} SET amount = ${amount + 1}`, []);
        });
      await Promise.all(Array.from({ length: 12 }, increment));
      expect(await read(recipe.query)).toBe(12);
    });

    it('excludes the decorator and the service, which hold the same row', async () => {
      const [locks, name] = [world.service(), world.name()];
      await locked(name, {}, async () => {
        expect(await locks.tryAcquire(name)).toBeNull();
      });
      await locks.withLock(name, async () => {
        const attempt = locked(name, { waitTime: 0 }, nothing);
        await expect(attempt).rejects.toThrow(LockBusyError);
        const patient = locked(name, { waitTime: 1_000 }, nothing);
        await expect(patient).rejects.toThrow(LockBusyError);
      });
      await locked(name, { waitTime: 0 }, nothing);
    });

    it('shares a lock among readers, and keeps a writer out', async () => {
      const name = world.name();
      await locked(name, { mode: 'share' }, async () => {
        await locked(name, { mode: 'share', waitTime: 0 }, nothing);
        const writer = locked(name, { waitTime: 0 }, nothing);
        await expect(writer).rejects.toThrow(LockBusyError);
      });
    });

    it('locks several names, in one order for all', async () => {
      const names = [world.name(), world.name(), world.name()];
      const done = await Promise.all(
        [names, [...names].reverse(), names].map((list, n) => locked(list, {}, async () => n)),
      );
      expect(done).toEqual([0, 1, 2]);
    });

    it('refuses a query function that runs outside of a transaction', async () => {
      const names = [world.name(), world.name()];
      await makeLockRows(recipe.query, names);
      for (const options of [{}, { mode: 'share' }, { waitTime: 0 }] as const) {
        const attempt = lockRows(recipe.query, names, options);
        await expect(attempt).rejects.toThrow(LockConfigurationError);
        await expect(attempt).rejects.toThrow(/outside of a transaction, so that nothing is locked/);
        await locked(names, options, nothing);
      }
    });

    it('accepts a query function that returns nothing but rows', async () => {
      const name = world.name();
      await makeLockRows(recipe.query, name);
      await recipe.transaction((query) => lockRows(async (...statement) => rowsOf(await query(...statement)), name));
    });

    it('has the statement that creates a missing table in its error', async () => {
      const [name, table] = [world.name(), `missing_${library.toLowerCase()}`];
      const make = () => makeLockRows(recipe.query, name, { table });
      const lock = () => recipe.transaction((query) => lockRows(query, name, { table, waitTime: 1_000 }));
      for (const call of [make, lock]) {
        const error = await call().catch((thrown: unknown) => thrown as Error);
        expect(error).toBeInstanceOf(LockConfigurationError);
        expect(error).toHaveProperty(
          'message',
          expect.stringMatching(/ockRows\(\): there is no table missing_\w+, .*alone:\nCREATE TABLE/),
        );
        expect(error).toHaveProperty('cause', expect.any(Error));
      }
      await lock().catch(({ message }: Error) => recipe.query(statementsOf(message)[0] ?? '', []));
      await make();
      await lock();
    });

    it('says what to do about a row that is missing, and about bad names', async () => {
      const attempt = (names: string | string[]) => recipe.transaction((query) => lockRows(query, names));
      await expect(attempt(world.name())).rejects.toThrow(LockConfigurationError);
      await expect(attempt(world.name())).rejects.toThrow(/call makeLockRows/);
      await expect(attempt([])).rejects.toThrow(LockKeyError);
    });
  });
});

describe("lockRows by: 'advisory'", () => {
  const world = openSqlWorld('PostgreSQL', 'advisoryLocks');
  let recipe: Recipe;
  beforeAll(async () => {
    recipe = await RECIPES.TypeORM(world);
    const locks = world.service();
    await (await locks.acquire(world.name())).release();
  }, 60_000);
  afterAll(() => recipe?.close());

  const locked = <T>(names: string | string[], options: LockRowsOptions, body: () => Promise<T>): Promise<T> =>
    recipe.transaction(async (query) => {
      await lockRows(query, names, { by: 'advisory', ...options });
      return body();
    });
  const nothing = async () => {};

  it('excludes advisoryLocks until the transaction ends', async () => {
    const [locks, names] = [world.service(), [world.name(), world.name()]];
    await locked(names, {}, async () => {
      for (const name of names) expect(await locks.tryAcquire(name)).toBeNull();
    });
    for (const name of names)
      await locks.withLock(name, async () => {
        await expect(locked(names, { waitTime: 0 }, nothing)).rejects.toThrow(LockBusyError);
        await expect(locked(names, { waitTime: 300 }, nothing)).rejects.toThrow(LockBusyError);
      });
    await locked(names, { waitTime: 0 }, nothing);
  });

  it('shares a lock among readers', async () => {
    const name = world.name();
    await locked(name, { mode: 'share' }, async () => {
      await locked(name, { mode: 'share', waitTime: 0 }, nothing);
      await expect(locked(name, { waitTime: 0 }, nothing)).rejects.toThrow(LockBusyError);
    });
  });

  it('refuses to run outside of a transaction, for another table, and with a wrong option', async () => {
    const outside = (options: object) => lockRows(recipe.query, world.name(), { by: 'advisory', ...options });
    await expect(outside({})).rejects.toThrow(/outside of a transaction, so that nothing is locked/);
    await expect(outside({ table: 'nowhere' })).rejects.toThrow(/there is no table nowhere_state.*advisoryLocks\(\)/);
    await expect(outside({ by: 'table' })).rejects.toThrow(/by is 'table'; it must be 'row' or 'advisory'/);
  });
});

describe("a missing table of lockRows by: 'advisory'", () => {
  const world = openSqlWorld('PostgreSQL', 'advisoryLocks');

  it('is created, with those of advisoryLocks, by the statements of the error', async () => {
    const [recipe, table] = [await RECIPES.TypeORM(world), 'missing'];
    const lock = () => recipe.transaction((query) => lockRows(query, world.name(), { by: 'advisory', table }));
    const error = await lock().catch((thrown: Error) => thrown);
    expect(error).toBeInstanceOf(LockConfigurationError);
    for (const statement of statementsOf((error as Error).message)) await recipe.query(statement, []);
    await lock();
    const lease = await world.service({ table, createTable: false }).acquire(world.name());
    await lease.release();
    await recipe.close();
  });
});

function statementsOf(message: string): string[] {
  return message.split('\n').slice(1);
}

describe('the options of lockRows and makeLockRows', () => {
  const asked = async () => {
    throw new Error('the database was asked');
  };

  it.each([
    ['half a character', 'app\ud83d', 'keyPrefix has half a character (a lone surrogate)'],
    ['half a brace', '{app', 'keyPrefix must be a string whose braces are balanced'],
    ['no string', 5 as unknown as string, 'keyPrefix must be a string whose braces are balanced'],
    [
      'reserved',
      'nestjs_redis_lock_orders:',
      "keyPrefix begins with 'nestjs_redis_lock_', as the keys that this library keeps beside locks do, so that list() would miss all locks. Choose another one",
    ],
    ['too long', 'p'.repeat(513), 'keyPrefix has 513 bytes; it may have at most 512'],
  ])('keyPrefix is refused if the module would refuse it: %s', async (_, keyPrefix, says) => {
    for (const call of [lockRows, makeLockRows]) {
      const error = await call(asked, 'order:42', { keyPrefix }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect((error as Error).message).toBe(`${call.name}(): ${says}`);
    }
  });

  it('table is refused by the function that was called, before the database is asked', async () => {
    for (const call of [lockRows, makeLockRows]) {
      const error = await call(asked, 'order:42', { table: 'lock-table' }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect((error as Error).message).toMatch(new RegExp(`^${call.name}\\(\\): table must be a name`));
    }
  });
});

describe("lockRows by: 'advisory' on MariaDB", () => {
  const world = openSqlWorld('MariaDB');

  it('is refused with the reason', async () => {
    const recipe = await RECIPES.TypeORM(world);
    const attempt = recipe.transaction((query) => lockRows(query, world.name(), { by: 'advisory' }));
    await expect(attempt).rejects.toThrow(/needs PostgreSQL: locks of GET_LOCK do not end with a transaction/);
    await recipe.close();
  });
});

describe('the code of a database error', () => {
  const postgres = { name: 'error', severity: 'ERROR', code: '55P03' };
  const mariadb = { name: 'Error', sqlState: 'HY000', code: 'ER_LOCK_WAIT_TIMEOUT', errno: 1205 };
  const prisma = (cause: object) => ({ code: 'P2010', meta: { driverAdapterError: { cause } } });

  it.each([
    ['TypeORM', '55P03', { driverError: postgres }],
    ['Sequelize', '55P03', { name: 'SequelizeDatabaseError', parent: postgres, original: postgres }],
    ['Sequelize', 1205, { name: 'SequelizeDatabaseError', parent: mariadb, original: mariadb }],
    ['Prisma', '55P03', { code: 'P2010', meta: { code: '55P03', message: 'ERROR: could not obtain lock' } }],
    ['an adapter of Prisma', '55P03', prisma({ kind: 'postgres', originalCode: '55P03', code: '55P03' })],
    ['an adapter of Prisma', 1205, prisma({ kind: 'mysql', originalCode: '1205', code: 1205 })],
  ])('is found in what %s throws: %s', (_library, code, error) => {
    expect(codesOf(error)).toContain(code);
  });
});
