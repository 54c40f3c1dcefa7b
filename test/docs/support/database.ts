import { PGlite } from '@electric-sql/pglite';

/** A PostgreSQL inside the process, with the interface of `pg`'s client. */
export class Database {
  private opened: PGlite | undefined;

  /** Starts with the first statement. */
  private get postgres(): PGlite {
    this.opened ??= new PGlite();
    return this.opened;
  }

  /** Runs statements that take no parameters. */
  async exec(sql: string): Promise<void> {
    await this.postgres.exec(sql);
  }

  async query(sql: string, parameters: unknown[] = []): Promise<{ rowCount: number; rows: Record<string, unknown>[] }> {
    const { rows, affectedRows } = await this.postgres.query<Record<string, unknown>>(sql, parameters);
    return { rows, rowCount: affectedRows ?? rows.length };
  }

  async close(): Promise<void> {
    await this.opened?.close();
    this.opened = undefined;
  }
}

/** The database that blocks use. A test creates their table in it. */
export const database = new Database();
