import type { TableNames } from './table-name.js';

/**
 * Statements that fail if a table, a column or a permission is missing, and otherwise change nothing.
 *
 * @param newest the most recently added column of the state table
 */
export function probesOf({ rows, state, clients }: TableNames, newest: string): readonly string[] {
  const none = 'WHERE 1 = 0';
  return [
    `SELECT lock_name FROM ${rows} ${none} FOR UPDATE`,
    `INSERT INTO ${rows} (lock_name) SELECT lock_name FROM ${rows} ${none}`,
    `SELECT lock_name, token, reserved, owner, mode, session, lease, since, ${newest} FROM ${state} ${none}`,
    `INSERT INTO ${state} (lock_name) SELECT lock_name FROM ${state} ${none}`,
    `UPDATE ${state} SET token = token ${none}`,
    `SELECT client_id, record, written, expires FROM ${clients} ${none}`,
    `INSERT INTO ${clients} (client_id, record, written, expires) SELECT client_id, record, written, expires FROM ${clients} ${none}`,
    `UPDATE ${clients} SET record = record ${none}`,
    `DELETE FROM ${clients} ${none}`,
  ];
}
