import { type ChildProcess, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { guard } from '../../process-guard.js';
import { freePort } from '../free-port.js';
import { asNobody, giveToNobody, PASSWORD, type SqlServer } from './sql-server.js';

const DEBIAN = '/usr/sbin/pgbouncer';

/** Whether this machine has PgBouncer. Otherwise its tests are skipped. */
export const hasPgbouncer = [DEBIAN, 'pgbouncer'].some((program) => spawnSync(program, ['--version']).status === 0);

export interface Pgbouncer {
  readonly url: string;
  stop(): Promise<void>;
}

/** A pooler in front of a PostgreSQL server. */
export async function startPgbouncer(
  server: SqlServer,
  mode: 'session' | 'transaction',
  settings: readonly string[] = [],
): Promise<Pgbouncer> {
  const folder = await mkdtemp(join('/tmp', 'pgbouncer-'));
  const port = await freePort();
  const users = join(folder, 'users.txt');
  await writeFile(users, `"locks" "${PASSWORD}"\n`, { mode: 0o644 });
  const config = [
    '[databases]',
    `locks = host=127.0.0.1 port=${server.port} dbname=locks`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = plain',
    `auth_file = ${users}`,
    `pool_mode = ${mode}`,
    ...settings,
  ];
  const path = join(folder, 'pgbouncer.ini');
  await writeFile(path, `${config.join('\n')}\n`, { mode: 0o644 });
  await giveToNobody(folder);
  const program = spawnSync(DEBIAN, ['--version']).status === 0 ? DEBIAN : 'pgbouncer';
  const child: ChildProcess = asNobody(program, [path], folder);
  guard(child);
  let output = '';
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    const hear = (text: Buffer) => {
      output += text;
      if (/process up/.test(output)) resolve();
    };
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    child.once('exit', (code) => reject(new Error(`pgbouncer ended with ${code}:\n${output}`)));
  });
  for (const handle of [child, child.stdout, child.stderr] as unknown as { unref(): void }[]) handle.unref();
  return {
    url: server.urlAt(port),
    async stop() {
      child.kill('SIGKILL');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
