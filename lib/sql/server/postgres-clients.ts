import type { SqlConnection } from '../driver/sql-connection.js';
import type { ClientTable, WrittenRecord } from './lock-server.js';
import { SOON } from './postgres-statements.js';

/** Milliseconds since 1970, by the database's clock. */
const NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

export class PostgresClients implements ClientTable {
  /** @param table quoted */
  constructor(private readonly table: string) {}

  async write(control: SqlConnection, id: string, record: string, lifetime: number): Promise<void> {
    await control.run(
      `WITH setting AS (SELECT ${SOON})
       INSERT INTO ${this.table} (client_id, record, written, expires) SELECT $1, $2, ${NOW}, ${NOW} + $3::bigint FROM setting
       ON CONFLICT (client_id) DO UPDATE SET record = excluded.record, written = excluded.written, expires = excluded.expires`,
      [id, record, Math.ceil(lifetime)],
    );
    await control.run(`DELETE FROM ${this.table} WHERE expires < ${NOW}`);
  }

  async remove(control: SqlConnection, id: string): Promise<void> {
    await control.run(`DELETE FROM ${this.table} WHERE client_id = $1`, [id]);
  }

  async read(control: SqlConnection, id?: string): Promise<readonly WrittenRecord[]> {
    const { rows } = await control.run(
      `SELECT record, ${NOW} - written AS age FROM ${this.table} WHERE expires >= ${NOW} AND client_id = coalesce($1, client_id)`,
      [id ?? null],
    );
    return rows.map(({ record, age }) => ({ record: String(record), age: Number(age) }));
  }
}
