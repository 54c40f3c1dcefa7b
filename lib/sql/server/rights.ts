import type { TableNames } from './table-name.js';

const NONE = 'WHERE 1 = 0';

/** Like {@link probesOf}, for the table whose rows are locked. */
export function probesOfRows(rows: string): readonly string[] {
  return [
    `SELECT lock_name FROM ${rows} ${NONE} FOR UPDATE`,
    `INSERT INTO ${rows} (lock_name) SELECT lock_name FROM ${rows} ${NONE}`,
  ];
}

/**
 * Statements that fail if a table, a column or a permission is missing, and otherwise change nothing.
 *
 * @param newest the most recently added column of the state table
 */
export function probesOf({ state, clients }: TableNames, newest: string): readonly string[] {
  return [
    `SELECT lock_name, token, reserved, owner, mode, session, lease, since, ${newest} FROM ${state} ${NONE}`,
    `INSERT INTO ${state} (lock_name) SELECT lock_name FROM ${state} ${NONE}`,
    `UPDATE ${state} SET token = token ${NONE}`,
    `SELECT client_id, record, written, expires FROM ${clients} ${NONE}`,
    `INSERT INTO ${clients} (client_id, record, written, expires) SELECT client_id, record, written, expires FROM ${clients} ${NONE}`,
    `UPDATE ${clients} SET record = record ${NONE}`,
    `DELETE FROM ${clients} ${NONE}`,
  ];
}
