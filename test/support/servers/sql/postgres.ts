import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { asNobody, PASSWORD, runToEnd, type SqlServerProgram } from './sql-server.js';

/** Debian keeps the programs of each version in a folder that is not on the PATH. */
const DEBIAN = join(process.env.POSTGRESQL_ROOT ?? '/', 'usr/lib/postgresql');

/**
 * Tests run ten times as fast without protection against a crash of the machine. A killed server still recovers.
 */
const FAST = ['fsync=off', 'full_page_writes=off'];
const SETTINGS = ['listen_addresses=127.0.0.1', 'max_connections=600', 'shared_buffers=32MB', 'logging_collector=off'];

export const program: SqlServerProgram = {
  scheme: 'postgres',
  ready: /ready to accept connections/,
  // The children of the postmaster end when they notice that it has ended.
  kill: 'SIGKILL',
  async setUp(folder) {
    await runToEnd(
      asNobody(
        find('initdb'),
        [
          '-D',
          join(folder, 'data'),
          '-U',
          'admin',
          '--auth-local=trust',
          '--auth-host=password',
          '-E',
          'UTF8',
          '--locale=C',
        ],
        folder,
      ),
    );
  },
  command: async (folder, port, durability, settings) => [
    find('postgres'),
    ...['-D', join(folder, 'data'), '-p', String(port), '-k', folder],
    ...[...SETTINGS, ...(durability === 'fast' ? FAST : []), ...settings].flatMap((setting) => ['-c', setting]),
  ],
  async fill(folder, port) {
    await run(folder, port, 'postgres', [
      `CREATE ROLE locks LOGIN PASSWORD '${PASSWORD}'`,
      'CREATE DATABASE locks OWNER locks',
    ]);
  },
  asAdmin: (folder, port, statements) => run(folder, port, 'locks', statements),
};

async function run(folder: string, port: number, database: string, statements: readonly string[]): Promise<void> {
  const admin = new pg.Client({ host: folder, port, user: 'admin', database });
  await admin.connect();
  for (const statement of statements) await admin.query(statement);
  await admin.end();
}

/** The path of a program of the newest PostgreSQL that is there. */
export function find(name: string): string {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const paths = versions.map((version) => join(DEBIAN, version, 'bin', name));
  return paths.find((path) => existsSync(path)) ?? name;
}
