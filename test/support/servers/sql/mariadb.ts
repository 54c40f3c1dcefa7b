import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { asNobody, type Durability, PASSWORD, runToEnd, type SqlServerProgram } from './sql-server.js';

/** A MariaDB that is not installed looks for its files from a folder that it is given. */
const ROOT = process.env.MARIADB_ROOT;
const BASE = ROOT === undefined ? [] : [`--basedir=${join(ROOT, 'usr')}`];
const DEBIAN = join(ROOT ?? '/', 'usr/sbin/mariadbd');

/** The test server settings shared by MariaDB and Oracle's MySQL. */
export function settingsOf(folder: string, port: number, durability: Durability): string[] {
  return [
    '--no-defaults',
    '--bind-address=127.0.0.1',
    '--max-connections=600',
    '--innodb-buffer-pool-size=32M',
    '--skip-name-resolve',
    '--default-time-zone=+02:00',
    // With 2, a killed server still recovers. With 0, it can lose the user that was just created.
    `--innodb-flush-log-at-trx-commit=${durability === 'durable' ? 1 : 2}`,
    `--datadir=${join(folder, 'data')}`,
    // All servers use the same names for temporary tables, so each needs a separate folder.
    `--tmpdir=${folder}`,
    `--socket=${join(folder, 'sock')}`,
    `--pid-file=${join(folder, 'pid')}`,
    `--port=${port}`,
  ];
}

export const program: SqlServerProgram = {
  scheme: 'mysql',
  ready: /ready for connections/,
  kill: 'SIGKILL',
  async setUp(folder) {
    const options = [
      '--no-defaults',
      `--datadir=${join(folder, 'data')}`,
      `--tmpdir=${folder}`,
      '--auth-root-authentication-method=normal',
    ];
    const install = ROOT === undefined ? 'mariadb-install-db' : join(ROOT, 'usr/bin/mariadb-install-db');
    await runToEnd(asNobody(install, [...options, ...BASE, '--skip-test-db'], folder));
  },
  command: async (folder, port, durability, settings) => [
    existsSync(DEBIAN) ? DEBIAN : 'mariadbd',
    ...settingsOf(folder, port, durability),
    ...BASE,
    ...settings,
  ],
  async fill(folder) {
    await run(folder, [
      'CREATE DATABASE IF NOT EXISTS locks',
      `CREATE USER IF NOT EXISTS locks@'%' IDENTIFIED BY '${PASSWORD}'`,
      'GRANT ALL ON locks.* TO locks',
    ]);
  },
  asAdmin: (folder, _port, statements) => run(folder, ['USE locks', ...statements]),
};

/** Retries, because a node that is joining a Galera cluster answers that it is not prepared yet. */
async function untilJoined(work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      await work();
      return;
    } catch (error) {
      if (attempt === 100 || (error as { errno?: number }).errno !== 1047) throw error;
      await sleep(250);
    }
}

async function run(folder: string, statements: readonly string[]): Promise<void> {
  const admin = await mysql.createConnection({ socketPath: join(folder, 'sock'), user: 'root' });
  for (const statement of statements) await untilJoined(() => admin.query(statement));
  await admin.end();
}
