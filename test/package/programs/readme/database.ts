import { PGlite } from '@electric-sql/pglite';
import { STATEMENTS } from './statements.js';

/**
 * A PostgreSQL inside the process, with the interface of `pg`'s client, and README's table in it. It takes seconds to
 * start: see POSTGRES.
 */
class Database {
  private opened: Promise<PGlite> | undefined;

  async query(sql: string, parameters: unknown[] = []): Promise<{ rowCount: number }> {
    if (!process.env.POSTGRES) return { rowCount: 1 };
    this.opened ??= this.open();
    const { affectedRows } = await (await this.opened).query(sql, parameters);
    return { rowCount: affectedRows ?? 0 };
  }

  /** Otherwise PGlite keeps the process for ten seconds. */
  async close(): Promise<void> {
    await (await this.opened)?.close();
  }

  private async open(): Promise<PGlite> {
    const postgres = await PGlite.create();
    await postgres.exec('create table stock (sku text primary key, quantity int not null)');
    for (const statement of STATEMENTS) await postgres.exec(statement);
    await postgres.exec("insert into stock (sku, quantity) values ('lamp', 40)");
    return postgres;
  }
}

export const database = new Database();
