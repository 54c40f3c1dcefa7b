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
  /** Further command line arguments; they win over ours: `['--maxmemory', '2mb']`. */
  readonly args?: readonly string[];
  /** Text of a configuration file, for what arguments cannot say. */
  readonly config?: string;
  /** Default: a free one. */
  readonly port?: number;
  /** The line of its log that says it is ready; for `--sentinel` another one than for a server. */
  readonly ready?: RegExp;
  /** Variables of its environment, beside those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * The program that the tests start, also as Sentinel and as cluster node; see .ci/servers.mjs. Default: redis-server of
 * the PATH.
 */
const PROGRAM = process.env.REDIS_SERVER ?? 'redis-server';

/**
 * A redis-server of this test's own on a free loopback port, without persistence, in a temporary folder. It ends with
 * the test process at the latest, even if that is killed.
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

  /** Of the process that runs now: another one after {@link restart}. */
  get pid(): number {
    if (!this.#process?.pid) {
      throw new Error('this redis-server is not running');
    }
    return this.#process.pid;
  }

  /** What the server has printed since it was first started. */
  get log(): string {
    return this.#log;
  }

  /**
   * A new connection, closed by {@link stop}. Connection errors are swallowed: it reconnects when the server is back.
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

  /** Starts it after {@link kill}, on the same port and without the data. */
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

  /** Ends it permanently: server, clients and folder are gone. Harmless when repeated. */
  async stop(): Promise<void> {
    for (const client of this.#clients) {
      client.disconnect();
    }
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** SIGKILL. Its clients keep trying to reconnect. */
  async kill(): Promise<void> {
    this.#process?.ref();
    this.#process?.kill('SIGKILL');
    await this.#exited;
  }

  /** SIGSTOP: connections stay open, the kernel accepts new ones, no answer comes. */
  pause(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  /** SIGCONT */
  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  /** Kills it and starts it again on the same port, without the data. */
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
      handle.unref(); // a test that forgot stop() ends all the same, and the server with it
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

  /** Written once: Sentinel and cluster nodes keep what they know in it. */
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
