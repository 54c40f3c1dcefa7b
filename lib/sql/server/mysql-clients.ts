import type { SqlConnection } from '../driver/sql-connection.js';
import type { ClientTable, WrittenRecord } from './lock-server.js';

/** Milliseconds since 1970, by the database's clock. */
const NOW = 'CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)';

export class MysqlClients implements ClientTable {
  /** @param table the quoted name */
  constructor(private readonly table: string) {}

  async write(control: SqlConnection, id: string, record: string, lifetime: number): Promise<void> {
    await control.run(
      `REPLACE INTO ${this.table} (client_id, record, written, expires) VALUES (?, ?, ${NOW}, ${NOW} + ?)`,
      [id, record, Math.ceil(lifetime)],
    );
    const { rows } = await control.run(`SELECT client_id AS id FROM ${this.table} WHERE expires < ${NOW} LIMIT 100`);
    for (const { id: old } of rows) await this.remove(control, String(old));
  }

  async remove(control: SqlConnection, id: string): Promise<void> {
    await control.run(`DELETE FROM ${this.table} WHERE client_id = ?`, [id]);
  }

  async read(control: SqlConnection, id?: string): Promise<readonly WrittenRecord[]> {
    const one = id === undefined ? '' : ' AND client_id = ?';
    const { rows } = await control.run(
      `SELECT record, ${NOW} - written AS age FROM ${this.table} WHERE expires >= ${NOW}${one}`,
      id === undefined ? [] : [id],
    );
    return rows.map(({ record, age }) => ({ record: String(record), age: Number(age) }));
  }
}
