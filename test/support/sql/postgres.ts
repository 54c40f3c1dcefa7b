import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { asNobody, PASSWORD, runToEnd, type SqlServerProgram } from './sql-server.js';

/** Debian keeps the programs of each version in a folder that is not on the PATH. */
const DEBIAN = '/usr/lib/postgresql';

/** Crash safety is not tested here: without it, tests run ten times as fast. A killed server still recovers. */
const SETTINGS = [
  'listen_addresses=127.0.0.1',
  'max_connections=600',
  'fsync=off',
  'full_page_writes=off',
  'shared_buffers=32MB',
  'logging_collector=off',
];

export const program: SqlServerProgram = {
  scheme: 'postgres',
  ready: /ready to accept connections/,
  // The postmaster's children end when they notice that it is gone.
  kill: 'SIGKILL',
  async setUp(folder) {
    await runToEnd(
      asNobody(
        find('initdb'),
        ['-D', join(folder, 'data'), '-U', 'admin', '-A', 'trust', '-E', 'UTF8', '--locale=C'],
        folder,
      ),
    );
  },
  command: async (folder, port) => [
    find('postgres'),
    ...['-D', join(folder, 'data'), '-p', String(port), '-k', folder],
    ...SETTINGS.flatMap((setting) => ['-c', setting]),
  ],
  async fill(_folder, port) {
    const admin = new pg.Client({ host: '127.0.0.1', port, user: 'admin', database: 'postgres' });
    await admin.connect();
    await admin.query(`CREATE ROLE locks LOGIN PASSWORD '${PASSWORD}'`);
    await admin.query('CREATE DATABASE locks OWNER locks');
    await admin.end();
  },
};

function find(name: string): string {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const paths = versions.map((version) => join(DEBIAN, version, 'bin', name));
  return paths.find((path) => existsSync(path)) ?? name;
}
