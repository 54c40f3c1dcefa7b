import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { guard } from '../../process-guard.js';
import { freePort } from '../free-port.js';

export type SqlServerKind = keyof typeof PROGRAMS;

const PROGRAMS = {
  PostgreSQL: () => import('./postgres.js'),
  MariaDB: () => import('./mariadb.js'),
  MySQL: () => import('./mysql.js'),
};

/**
 * `POSTGRESQL_ROOT`, `MARIADB_ROOT` and `MYSQL_ROOT` are folders like `/` with servers to test instead of the installed
 * ones. Only such a folder has Oracle's MySQL.
 */
export const SQL_SERVERS: readonly SqlServerKind[] = [
  'PostgreSQL',
  'MariaDB',
  ...(process.env.MYSQL_ROOT === undefined ? [] : (['MySQL'] as const)),
];

/** The password of the database user, which no message may contain. */
export const PASSWORD = 's3cret-of-the-tests';

/** `'fast'`: the server does not wait for the disk, so tests run faster. `'durable'`: the server's default. */
export type Durability = 'fast' | 'durable';

/** How one kind of database server is set up and started. */
export interface SqlServerProgram {
  readonly scheme: 'postgres' | 'mysql';
  /** Creates the data folder. */
  setUp(folder: string, port: number): Promise<void>;
  /** The program and its arguments. */
  command(
    folder: string,
    port: number,
    durability: Durability,
    settings: readonly string[],
  ): Promise<readonly string[]>;
  /** Creates the user and the database of the tests. */
  fill(folder: string, port: number): Promise<void>;
  /** Runs statements in the tests' database with all rights. */
  asAdmin(folder: string, port: number, statements: readonly string[]): Promise<void>;
  /** The output that shows that it is ready. */
  readonly ready: RegExp;
  /** The signal that ends it without closing its connections first. */
  readonly kill: NodeJS.Signals;
}

/** A separate database server on a loopback port. Its processes belong to a user without privileges. */
export class SqlServer {
  private process: ChildProcess | undefined;
  private exited = Promise.resolve();
  private output = '';

  constructor(
    readonly kind: SqlServerKind,
    private readonly program: SqlServerProgram,
    readonly folder: string,
    readonly port: number,
    private readonly durability: Durability,
    private readonly settings: readonly string[] = [],
  ) {}

  get url(): string {
    return this.urlAt(this.port);
  }

  /** The URL of the same server behind another port, such as that of a proxy. */
  urlAt(port: number): string {
    return `${this.program.scheme}://locks:${PASSWORD}@127.0.0.1:${port}/locks`;
  }

  /** The output of the server since it was started. */
  get log(): string {
    return this.output;
  }

  /** Runs statements in the tests' database with all rights. */
  asAdmin(...statements: string[]): Promise<void> {
    return this.program.asAdmin(this.folder, this.port, statements);
  }

  async start(): Promise<void> {
    const [command, ...parameters] = await this.program.command(this.folder, this.port, this.durability, this.settings);
    const child = asNobody(command, parameters, this.folder);
    this.process = child;
    guard(child);
    this.output = '';
    this.exited = new Promise((resolve) => child.once('exit', () => resolve()));
    await new Promise<void>((resolve, reject) => {
      const hear = (text: Buffer) => {
        this.output += text;
        if (this.program.ready.test(this.output)) resolve();
      };
      child.stdout?.on('data', hear);
      child.stderr?.on('data', hear);
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`${this.kind} ended with ${code}:\n${this.output.slice(-2_000)}`)));
    });
    for (const handle of [child, child.stdout, child.stderr] as unknown as { unref(): void }[]) handle.unref();
  }

  /** Kills the server. It does not close its connections, and recovers when it is restarted. */
  async kill(): Promise<void> {
    this.process?.kill(this.program.kill);
    await this.exited;
  }

  async stop(): Promise<void> {
    await this.kill();
    // The children of a killed server end a little later.
    for (let attempt = 1; attempt <= 20; attempt++) {
      try {
        return await rm(this.folder, { recursive: true, force: true });
      } catch {
        await sleep(250);
      }
    }
  }
}

/**
 * Starts a server with an empty database.
 *
 * @param settings further arguments of the server
 */
export async function startSqlServer(
  kind: SqlServerKind,
  durability: Durability = 'fast',
  settings: readonly string[] = [],
): Promise<SqlServer> {
  const { program } = await PROGRAMS[kind]();
  const folder = await mkdtemp(join('/tmp', 'sql-'));
  const port = await freePort();
  await giveToNobody(folder);
  await program.setUp(folder, port);
  const server = new SqlServer(kind, program, folder, port, durability, settings);
  await server.start();
  await program.fill(folder, port);
  return server;
}

/** Root runs the servers as `nobody`, because PostgreSQL refuses to run as root, and MariaDB warns about it. */
export function asNobody(command: string, parameters: readonly string[], cwd: string): ChildProcess {
  const isRoot = userInfo().uid === 0;
  return isRoot
    ? spawn('setpriv', ['--reuid=nobody', '--regid=nogroup', '--clear-groups', command, ...parameters], {
        cwd,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, HOME: cwd },
      })
    : spawn(command, [...parameters], { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Waits until a program has ended. Rejects with its output if it fails. */
export async function runToEnd(child: ChildProcess): Promise<string> {
  let output = '';
  child.stdout?.on('data', (text) => {
    output += text;
  });
  child.stderr?.on('data', (text) => {
    output += text;
  });
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`${child.spawnargs.join(' ')} ended with ${code}:\n${output.slice(-2_000)}`);
  return output;
}

export async function giveToNobody(folder: string): Promise<void> {
  if (userInfo().uid === 0) await runToEnd(spawn('chown', ['nobody:nogroup', folder]));
}
