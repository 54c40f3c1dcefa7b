import { execFile } from 'node:child_process';
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import createKnex from 'knex';
import mysql from 'mysql2/promise';
import { createLockService, type LockService } from 'nestjs-redis-lock';
import pg from 'pg';
import { DataSource } from 'typeorm';
import { errorOf } from '../support/section.js';
import { type SqlServer, startSqlServer } from '../support/servers/sql/sql-server.js';
import { BLOCKS, compile } from './support/compile.js';
import { type CodeBlock, ROOT, readPages } from './support/markdown.js';
import { toModule } from './support/typescript-blocks.js';

const folder = join(BLOCKS, 'recipes');

/** The blocks with the recipes, as the page shows them. */
const recipes: readonly CodeBlock[] = readPages()
  .filter(({ path }) => path === 'docs/locks-and-transactions.md')
  .flatMap(({ blocks }) => blocks)
  .filter(({ code }) => code.includes('export async function sellWith'));

type Exports = Readonly<Record<string, never>>;

async function load(name: string): Promise<Exports> {
  const block = recipes.find(({ code }) => code.includes(`export async function ${name}(`));
  if (block === undefined) throw new Error(`there is no recipe ${name}`);
  return await import(join(folder, toModule(block).file));
}

type Sell = (sku: string, count: number) => Promise<void>;

/** Opens what a recipe needs on a server. */
interface Opened {
  readonly sell: Sell;
  close(): Promise<unknown>;
}

const OPENERS: Readonly<Record<string, (url: string) => Promise<Opened>>> = {
  sellWithPg: async (url) => {
    const { sellWithPg } = await load('sellWithPg');
    const pool = new pg.Pool({ connectionString: url });
    return { sell: (...args) => (sellWithPg as Recipe)(pool, ...args), close: () => pool.end() };
  },
  sellWithTypeOrm: async (url) => {
    const { sellWithTypeOrm, Stock } = await load('sellWithTypeOrm');
    const dataSource = await new DataSource({ type: 'postgres', url, entities: [Stock] }).initialize();
    return { sell: (...args) => (sellWithTypeOrm as Recipe)(dataSource, ...args), close: () => dataSource.destroy() };
  },
  sellWithPrisma: async (url) => {
    const { sellWithPrisma } = await load('sellWithPrisma');
    const { PrismaClient } = await import(join(folder, 'generated/client.ts'));
    const { PrismaPg } = await import(join(ROOT, 'test/docs/node_modules/@prisma/adapter-pg/dist/index.mjs'));
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
    return { sell: (...args) => (sellWithPrisma as Recipe)(prisma, ...args), close: () => prisma.$disconnect() };
  },
  sellWithKnex: async (url) => {
    const { sellWithKnex } = await load('sellWithKnex');
    const knex = createKnex({ client: 'pg', connection: url });
    return { sell: (...args) => (sellWithKnex as Recipe)(knex, ...args), close: () => knex.destroy() };
  },
  sellWithMysql: async (url) => {
    const { sellWithMysql } = await load('sellWithMysql');
    const pool = mysql.createPool(url);
    return { sell: (...args) => (sellWithMysql as Recipe)(pool, ...args), close: () => pool.end() };
  },
};

type Recipe = (database: unknown, sku: string, count: number) => Promise<void>;

/** Generates the client from the schema. Prisma would download an engine that only its migrations use. */
async function generatePrismaClient(): Promise<void> {
  const schema = join(folder, 'schema.prisma');
  await copyFile(join(ROOT, 'test/docs/prisma/schema.prisma'), schema);
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' };
  const prisma = join(ROOT, 'test/docs/node_modules/prisma/build/index.js');
  await promisify(execFile)(process.execPath, [prisma, 'generate', '--schema', schema], { env });
}

describe('the recipes for fencing in a transaction', () => {
  const servers = new Map<string, SqlServer>();
  let locks: LockService;
  beforeAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    const tsconfig = { extends: '../../../../tsconfig.json', include: ['./*.ts'], exclude: [] };
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
    for (const block of recipes) {
      const { file, source } = toModule(block);
      await writeFile(join(folder, file), source);
    }
    await generatePrismaClient();
    for (const kind of ['PostgreSQL', 'MariaDB'] as const) servers.set(kind, await startSqlServer(kind));
    locks = createLockService({ backend: 'memory', logger: { warn: () => {}, error: () => {} } });
  }, 120_000);
  afterAll(async () => {
    await locks?.close();
    await Promise.all([...servers.values()].map((server) => server.stop()));
    await rm(folder, { recursive: true, force: true });
  });

  it('are five, and compile', async () => {
    expect(recipes.length).toBe(Object.keys(OPENERS).length);
    expect(await compile(recipes.map(toModule), folder)).toEqual([]);
  }, 60_000);

  describe.each(Object.keys(OPENERS))('%s', (name) => {
    const isMysql = name === 'sellWithMysql';
    let opened: Opened;
    let query: (sql: string) => Promise<Record<string, unknown>[]>;
    let end: () => Promise<unknown>;
    beforeAll(async () => {
      const { url } = servers.get(isMysql ? 'MariaDB' : 'PostgreSQL') as SqlServer;
      if (isMysql) {
        const pool = mysql.createPool(url);
        query = async (sql) => (await pool.query(sql))[0] as Record<string, unknown>[];
        end = () => pool.end();
      } else {
        const pool = new pg.Pool({ connectionString: url });
        query = async (sql) => (await pool.query(sql)).rows;
        end = () => pool.end();
      }
      await query('drop table if exists stock');
      await query(
        'create table stock (sku varchar(40) primary key, quantity int not null, fence bigint not null default 0)',
      );
      opened = await OPENERS[name](url);
    }, 60_000);
    afterAll(async () => {
      await opened?.close();
      await end?.();
    });
    beforeEach(async () => {
      await query('delete from stock');
      await query("insert into stock (sku, quantity) values ('lamp', 40)");
    });

    /** Sells under the lock. @returns the token */
    const sell = (count: number, before: (token: number) => Promise<unknown> = async () => {}, sku = 'lamp') =>
      locks.withLock(`sku:${sku}`, async (lease) => {
        await before(lease.fencingToken);
        await opened.sell(sku, count);
        return lease.fencingToken;
      });
    const row = async () => {
      const [{ quantity, fence }] = await query("select quantity, fence from stock where sku = 'lamp'");
      return { quantity, fence: Number(fence) };
    };

    it('writes with the current token, more than once', async () => {
      const token = await sell(2, () => opened.sell('lamp', 1));
      expect(await row()).toEqual({ quantity: 37, fence: token });
    });

    it('refuses an older token, and writes nothing', async () => {
      let later = 0;
      const refused = sell(2, (token) => {
        later = token + 1;
        return query(`update stock set fence = ${later} where sku = 'lamp'`);
      });
      expect(String(await errorOf(refused))).toContain('belongs to a later holder of the lock');
      expect(await row()).toEqual({ quantity: 40, fence: later });
    });

    it('fences in its transaction: a failure afterwards takes the token back as well', async () => {
      expect(String(await errorOf(sell(41)))).toContain('There is not enough');
      expect(await row()).toEqual({ quantity: 40, fence: 0 });
    });

    it('refuses a row that does not exist', async () => {
      expect(String(await errorOf(sell(1, undefined, 'ghost')))).toContain('is unknown');
    });
  });
});
