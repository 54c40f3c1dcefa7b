import { join } from 'node:path';
import { program as mariadb } from './mariadb.js';
import { asNobody, runToEnd, type SqlServerProgram } from './sql-server.js';

/** Oracle's server. No free distribution installs it beside MariaDB, so its program is given. */
const MYSQLD = process.env.MYSQLD ?? 'mysqld';

const SETTINGS = [
  '--no-defaults',
  '--bind-address=127.0.0.1',
  '--max-connections=600',
  '--innodb-buffer-pool-size=32M',
  '--skip-name-resolve',
  '--default-time-zone=+02:00',
  '--skip-log-bin',
  '--mysqlx=OFF',
  // Otherwise it looks for a folder of its package.
  '--secure-file-priv=NULL',
];

export const program: SqlServerProgram = {
  ...mariadb,
  async setUp(folder) {
    const options = [
      '--no-defaults',
      '--initialize-insecure',
      '--secure-file-priv=NULL',
      `--datadir=${join(folder, 'data')}`,
    ];
    await runToEnd(asNobody(MYSQLD, options, folder));
  },
  command: async (folder, port, durability, settings) => [
    MYSQLD,
    ...SETTINGS,
    `--innodb-flush-log-at-trx-commit=${durability === 'durable' ? 1 : 0}`,
    `--datadir=${join(folder, 'data')}`,
    `--tmpdir=${folder}`,
    `--socket=${join(folder, 'sock')}`,
    `--pid-file=${join(folder, 'pid')}`,
    `--port=${port}`,
    ...settings,
  ],
};
