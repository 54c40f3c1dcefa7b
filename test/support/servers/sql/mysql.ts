import { join } from 'node:path';
import { program as mariadb, settingsOf } from './mariadb.js';
import { asNobody, runToEnd, type SqlServerProgram } from './sql-server.js';

/** Oracle's server. No distribution installs it beside MariaDB, so it is somewhere else. */
const MYSQLD = join(process.env.MYSQL_ROOT ?? '/', 'usr/sbin/mysqld');

// Otherwise it looks for a folder of its package.
const NO_FOLDER = '--secure-file-priv=NULL';

export const program: SqlServerProgram = {
  ...mariadb,
  async setUp(folder) {
    const options = ['--no-defaults', '--initialize-insecure', NO_FOLDER, `--datadir=${join(folder, 'data')}`];
    await runToEnd(asNobody(MYSQLD, options, folder));
  },
  command: async (folder, port, durability, settings) => [
    MYSQLD,
    ...settingsOf(folder, port, durability),
    '--skip-log-bin',
    '--mysqlx=OFF',
    NO_FOLDER,
    ...settings,
  ],
};
