import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis, type RedisOptions } from 'ioredis';
import { guard } from '../process-guard.js';
import { freePort } from './free-port.js';

export interface RedisServerOptions {
  /** Further command line arguments, which override ours: `['--maxmemory', '2mb']`. */
  readonly args?: readonly string[];
  /** Text of a configuration file, for settings that arguments cannot express. */
  readonly config?: string;
  /** Default: a free port. */
  readonly port?: number;
  /** The line of its log that reports that it is ready. `--sentinel` has another one than a server. */
  readonly ready?: RegExp;
  /** Variables of its environment, in addition to those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * The program that the tests start, also as Sentinel and as cluster node. See .ci/run-tests.mjs. Default: redis-server
 * from the PATH.
 */
const PROGRAM = process.env.REDIS_SERVER ?? 'redis-server';

/**
 * A separate redis-server on a free loopback port, without persistence, in a temporary folder. It ends with the test
 * process at the latest, even if that is killed.
 *
 *     const redis = await startRedis();
 *     afterAll(() => redis.stop());
 *     await redis.client().get('key');
 *
 * @throws Error with the log's last lines when it does not start
 */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'redis-'));
  const server = new RedisServer(folder, options);
  try {
    await server.start();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

type Process = ChildProcessByStdio<null, Readable, Readable>;

export class RedisServer {
  readonly #clients = new Set<Redis>();
  #process: Process | undefined;
  #exited: Promise<void> = Promise.resolve();
  #log = '';
  #port = 0;

  /** @internal see {@link startRedis} */
  constructor(
    readonly folder: string,
    private readonly options: RedisServerOptions,
  ) {}

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#port}`;
  }

  get running(): boolean {
    return this.#process !== undefined;
  }

  /** The id of the running process, which changes with {@link restart}. */
  get pid(): number {
    if (!this.#process?.pid) {
      throw new Error('this redis-server is not running');
    }
    return this.#process.pid;
  }

  /** The output of the server since it was first started. */
  get log(): string {
    return this.#log;
  }

  /**
   * A new connection, closed by {@link stop}. Connection errors are ignored. It reconnects when the server is back.
   */
  client(options: RedisOptions = {}): Redis {
    const client = new Redis({
      host: '127.0.0.1',
      port: this.#port,
      maxRetriesPerRequest: null,
      disconnectTimeout: 100,
      ...options,
    });
    client.on('error', () => {});
    client.once('end', () => this.#clients.delete(client));
    this.#clients.add(client);
    return client;
  }

  /** Starts the server after {@link kill}, on the same port and without the data. */
  async start(): Promise<void> {
    const wanted = this.#port || this.options.port;
    for (let attempt = 1; ; attempt++) {
      const port = wanted ?? (await freePort());
      if (await this.#launch(port)) {
        this.#port = port;
        return;
      }
      if (attempt === 50) {
        throw new Error(`port ${port} is taken`);
      }
      if (wanted !== undefined) {
        await sleep(100); // no event reports when another process frees a port
      }
    }
  }

  /** Stops the server permanently, closes its clients, and removes its folder. May be called repeatedly. */
  async stop(): Promise<void> {
    for (const client of this.#clients) {
      client.disconnect();
    }
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Sends SIGKILL. The clients keep trying to reconnect. */
  async kill(): Promise<void> {
    this.#process?.ref();
    this.#process?.kill('SIGKILL');
    await this.#exited;
  }

  /** Sends SIGSTOP. Connections stay open, and the kernel accepts new ones, but no answer arrives. */
  pause(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  /** Sends SIGCONT. */
  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  /** Kills the server and restarts it on the same port, without the data. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** False: the port is taken. */
  async #launch(port: number): Promise<boolean> {
    const child = spawn(PROGRAM, [...(await this.#configFile()), ...this.#settings(port)], {
      cwd: this.folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...this.options.env },
    });
    this.#exited = new Promise((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    const start = this.#log.length;
    const ready = await new Promise<boolean>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', () => resolve(false));
      child.stderr.on('data', (chunk) => {
        this.#log += chunk;
      });
      child.stdout.on('data', (chunk) => {
        this.#log += chunk;
        if ((this.options.ready ?? /Ready to accept connections/).test(this.#log.slice(start))) {
          resolve(true);
        }
      });
      if (child.pid) {
        this.#adopt(child);
      }
    });
    if (!ready && !/Address already in use|Failed listening on port/.test(this.#log.slice(start))) {
      throw new Error(`redis-server did not start:\n${this.#log.slice(start).slice(-2000)}`);
    }
    for (const handle of [child, child.stdout, child.stderr] as unknown as { unref(): void }[]) {
      handle.unref(); // a test that forgets stop() still ends, and the server ends with it
    }
    return ready;
  }

  #settings(port: number): string[] {
    const ours = [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
      '--daemonize',
      'no',
    ];
    return [...ours, ...(this.options.args ?? [])];
  }

  /** Written only once, because Sentinels and cluster nodes store their state in it. */
  async #configFile(): Promise<string[]> {
    const { config } = this.options;
    if (config === undefined) {
      return [];
    }
    const path = join(this.folder, 'redis.conf');
    if (!existsSync(path)) {
      await writeFile(path, config);
    }
    return [path];
  }

  #adopt(child: Process): void {
    this.#process = child;
    guard(child, this.folder);
    child.once('exit', () => {
      if (this.#process === child) {
        this.#process = undefined;
      }
    });
  }
}
