import { Redis, type RedisOptions } from 'ioredis';
import { until } from '../until.js';
import { type RedisServer, type RedisServerOptions, startRedis } from './redis-server.js';

const NAME = 'mymaster';
const DOWN_AFTER = 1_000;

/**
 * A master with two replicas, and three Sentinels that consider the master down after a second.
 *
 *     const sentinel = await startSentinel();
 *     afterAll(() => sentinel.stop());
 *     const client = sentinel.client();
 *     await sentinel.killMaster();
 */
export async function startSentinel(): Promise<RedisSentinel> {
  const started: RedisServer[] = [];
  const start = async (options: RedisServerOptions) => {
    const server = await startRedis(options);
    started.push(server);
    return server;
  };
  try {
    const master = await start({ args: replication() });
    const replicas = await Promise.all([1, 2].map(() => start({ args: replication(master) })));
    const config = sentinelConfig(master, replicas);
    const sentinels = await Promise.all(
      [1, 2, 3].map(() => start({ config, args: ['--sentinel'], ready: /\+monitor/ })),
    );
    const group = new RedisSentinel([master, ...replicas], sentinels);
    await group.ready();
    return group;
  } catch (error) {
    await Promise.all(started.map((server) => server.stop()));
    throw error;
  }
}

function replication(master?: RedisServer): string[] {
  // Without this setting, a replica that joins waits five seconds for others to join.
  const args = ['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0', '--repl-timeout', '5'];
  return master ? [...args, '--replicaof', '127.0.0.1', String(master.port)] : args;
}

function sentinelConfig(master: RedisServer, replicas: readonly RedisServer[]): string {
  return [
    `sentinel monitor ${NAME} 127.0.0.1 ${master.port} 2`,
    `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER}`,
    `sentinel failover-timeout ${NAME} 5000`,
    `sentinel parallel-syncs ${NAME} 2`,
    ...replicas.map((replica) => `sentinel known-replica ${NAME} 127.0.0.1 ${replica.port}`),
    '',
  ].join('\n');
}

export class RedisSentinel {
  readonly #clients = new Set<Redis>();

  /** @internal see {@link startSentinel} */
  constructor(
    /** Master and replicas. After a failover, they are in any order. */
    readonly servers: readonly RedisServer[],
    readonly sentinels: readonly RedisServer[],
  ) {}

  /** The options with which ioredis finds the master. */
  get options(): RedisOptions {
    return { name: NAME, sentinels: this.sentinels.map(({ port }) => ({ host: '127.0.0.1', port })) };
  }

  /** A new connection to the master, closed by {@link stop}. */
  client(options: RedisOptions = {}): Redis {
    const client = new Redis({ ...this.options, maxRetriesPerRequest: null, disconnectTimeout: 100, ...options });
    client.on('error', () => {});
    this.#clients.add(client);
    return client;
  }

  /** Waits until all running Sentinels agree on a master that accepts writes. @returns this master */
  async master(): Promise<RedisServer> {
    let master: RedisServer | undefined;
    await until(async () => {
      const ports = new Set(await Promise.all(this.#running(this.sentinels).map(masterPort)));
      master = this.servers.find((server) => ports.has(server.port));
      return ports.size === 1 && master?.running && (await role(master)) === 'master';
    });
    return master!;
  }

  /** The running servers other than the master. */
  async replicas(): Promise<RedisServer[]> {
    const master = await this.master();
    return this.#running(this.servers).filter((server) => server !== master);
  }

  /** Makes a regular failover. @returns the new master */
  async failover(): Promise<RedisServer> {
    const old = await this.master();
    const [sentinel] = this.#running(this.sentinels);
    // This is refused until the Sentinel has found a suitable replica.
    await until(() => ask(sentinel!, (client) => client.call('SENTINEL', 'FAILOVER', NAME)).catch(() => false));
    return this.#successor(old);
  }

  /** Kills the master, and waits until a replica replaces it. @returns the new master */
  async killMaster(): Promise<RedisServer> {
    const old = await this.master();
    await old.kill();
    return this.#successor(old);
  }

  /** Ends servers, Sentinels and clients. */
  async stop(): Promise<void> {
    for (const client of this.#clients) {
      client.disconnect();
    }
    await Promise.all([...this.servers, ...this.sentinels].map((server) => server.stop()));
  }

  /**
   * Waits until replicas follow and the Sentinels know of each other, because otherwise they could not elect a leader.
   */
  async ready(): Promise<void> {
    const master = await this.master();
    await until(async () => {
      const replication = await ask(master, (client) => client.info('replication'));
      return replication.match(/state=online/g)?.length === 2;
    });
    await Promise.all(this.sentinels.map((sentinel) => until(() => knowsAll(sentinel))));
  }

  async #successor(old: RedisServer): Promise<RedisServer> {
    await until(async () => (await this.master()) !== old, 30_000);
    return this.master();
  }

  #running(servers: readonly RedisServer[]): RedisServer[] {
    return servers.filter((server) => server.running);
  }
}

/** Sends one request on a separate connection. */
async function ask<T>(server: RedisServer, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = server.client();
  try {
    return await question(client);
  } finally {
    client.disconnect();
  }
}

async function masterPort(sentinel: RedisServer): Promise<number> {
  const address = await ask(sentinel, (client) => client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME));
  return Number((address as string[])[1]);
}

async function role(server: RedisServer): Promise<unknown> {
  const [kind] = (await ask(server, (client) => client.call('ROLE'))) as unknown[];
  return kind;
}

async function knowsAll(sentinel: RedisServer): Promise<boolean> {
  const info = await ask(sentinel, (client) => client.info('sentinel'));
  return /status=ok,.*slaves=2,sentinels=3/.test(info);
}
