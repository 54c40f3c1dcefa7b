import type { Timer } from '../../../runtime.js';
import type { ConnectionContext } from '../connection-context.js';
import { ConnectionError } from '../connection-error.js';
import { checkDatabaseNumber } from '../database-number.js';
import type { NodeRedisModule } from '../load-client.js';
import { checkHost } from '../url-settings.js';
import {
  connectionOptionsOf,
  connectWithin,
  destroy,
  type Endpoint,
  endpointText,
  isUnreadable,
  type NodeAddressMap,
  type NodeRedisClient,
  type NodeRedisOptions,
  ownClient,
  translated,
} from './node-redis-client.js';
import type { Move, SingleSource } from './single-topology.js';

/** The options of node-redis's `createSentinel()` that are used here. */
export interface SentinelOptions {
  readonly name: string;
  readonly sentinelRootNodes: readonly { readonly host: string; readonly port: number }[];
  readonly nodeClientOptions?: NodeRedisOptions;
  readonly sentinelClientOptions?: NodeRedisOptions;
  readonly nodeAddressMap?: NodeAddressMap;
  readonly keyPrefix?: string;
}

/** The pauses before another attempt to connect to a Sentinel that is down, in milliseconds. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 10_000;

/** @throws ConnectionError that names the option */
export function sentinelSource(
  options: SentinelOptions,
  { createClient }: NodeRedisModule,
  context: ConnectionContext,
): SingleSource {
  const { name, sentinelRootNodes, nodeClientOptions = {}, sentinelClientOptions = {}, nodeAddressMap } = options;
  if (typeof name !== 'string' || name === '')
    throw new ConnectionError("The connection has sentinelRootNodes, but no name: give that of the master's group");
  if (!Array.isArray(sentinelRootNodes) || sentinelRootNodes.length === 0)
    throw new ConnectionError('The connection has no sentinelRootNodes: give the host and port of each Sentinel');
  for (const { host } of sentinelRootNodes) checkHost(host, 'The host of a Sentinel of the connection');
  const { database = 0 } = nodeClientOptions;
  checkDatabaseNumber(database, 'database in the nodeClientOptions of the connection');
  const sentinels = new Sentinels(options, createClient, context);
  return {
    description: `redis ${name} through sentinels ${sentinelRootNodes.map(endpointText).join(',')}/${database}`,
    settings: {
      name,
      sentinelRootNodes,
      nodeClientOptions: connectionOptionsOf(nodeClientOptions),
      sentinelClientOptions: connectionOptionsOf(sentinelClientOptions),
      nodeAddressMap,
    },
    address: name,
    database,
    usesTls: Boolean(nodeClientOptions.socket?.tls ?? sentinelClientOptions.socket?.tls),
    createClient: (endpoint) =>
      ownClient(nodeClientOptions, endpoint, (own) => createClient({ ...nodeClientOptions, ...own })),
    locate: async () => translated(await sentinels.master(), nodeAddressMap),
    watch: (moved) =>
      sentinels.watch(({ from, to }) =>
        moved({ from: translated(from, nodeAddressMap), to: translated(to, nodeAddressMap) }),
      ),
  };
}

/** The Sentinels of a master, which know its address and report when it changes. */
class Sentinels {
  /** The Sentinel that has answered last is asked first. */
  private readonly nodes: Endpoint[];
  private readonly followers = new Set<(move: Move) => void>();
  private watches: readonly SentinelWatch[] = [];

  constructor(
    private readonly options: SentinelOptions,
    private readonly createClient: NodeRedisModule['createClient'],
    private readonly context: ConnectionContext,
  ) {
    this.nodes = [...options.sentinelRootNodes];
  }

  /** Asks them one after the other. Rejects with all reasons if none of them knows. */
  async master(): Promise<Endpoint> {
    const failures: string[] = [];
    for (const node of [...this.nodes]) {
      try {
        const master = await this.ask(node);
        this.nodes.splice(this.nodes.indexOf(node), 1);
        this.nodes.unshift(node);
        return master;
      } catch (error) {
        failures.push(`${endpointText(node)}: ${(error as Error).message}`);
      }
    }
    throw new Error(`no Sentinel knows the master '${this.options.name}': ${failures.join('; ')}`);
  }

  /** Reports each move at least once, until it is closed. All watchers share one connection to each Sentinel. */
  watch(moved: (move: Move) => void): { close(): void } {
    this.followers.add(moved);
    if (this.followers.size === 1) {
      this.watches = this.options.sentinelRootNodes.map(
        (node) => new SentinelWatch(() => this.connectionTo(node), this.context, this.heard),
      );
    }
    return {
      close: () => {
        if (!this.followers.delete(moved) || this.followers.size > 0) return;
        for (const watch of this.watches) watch.close();
        this.watches = [];
      },
    };
  }

  private readonly heard = (message: string): void => {
    const [name, oldHost, oldPort, host, port] = message.split(' ');
    if (name !== this.options.name) return;
    const move = { from: { host: oldHost, port: Number(oldPort) }, to: { host, port: Number(port) } };
    for (const follower of [...this.followers]) follower(move);
  };

  private async ask(node: Endpoint): Promise<Endpoint> {
    const { runtime, commandTimeout } = this.context;
    const client = this.connectionTo(node);
    let late = false;
    let unreadable: Error | undefined;
    client.on('error', (error: Error) => {
      if (isUnreadable(error)) unreadable = error;
    });
    const timer = runtime.timer(commandTimeout, () => {
      late = true;
      destroy(client);
    });
    try {
      await client.connect();
      const reply = await client.sendCommand(['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.options.name]);
      const [host, port] = Array.isArray(reply) ? (reply as string[]) : [];
      if (host === undefined || !(Number(port) > 0)) throw new Error('it does not watch a master of this name');
      return { host, port: Number(port) };
    } catch (error) {
      throw unreadable ?? (late ? new Error(`no answer within ${commandTimeout} ms`) : error);
    } finally {
      timer.cancel();
      destroy(client);
    }
  }

  private connectionTo(node: Endpoint): NodeRedisClient {
    const { sentinelClientOptions = {} } = this.options;
    const client = ownClient(sentinelClientOptions, node, (own) =>
      this.createClient({ ...sentinelClientOptions, ...own, database: 0 }),
    );
    client.on('error', () => {}); // other Sentinels remain, and a link reports it when none answers
    return client;
  }
}

/** Listens to one Sentinel, and reconnects after it was down. */
class SentinelWatch {
  private client: NodeRedisClient | undefined;
  private timer: Timer | undefined;
  private attempts = 0;
  private closed = false;

  constructor(
    private readonly connection: () => NodeRedisClient,
    private readonly context: ConnectionContext,
    private readonly heard: (message: string) => void,
  ) {
    this.open();
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
    if (this.client !== undefined) destroy(this.client);
  }

  private open(): void {
    const client = this.connection();
    this.client = client;
    client.on('end', () => {
      destroy(client);
      this.openLater(client);
    });
    connectWithin(client, this.context)
      .then(() => (this.closed ? destroy(client) : client.subscribe(['+switch-master'], this.heard)))
      .then(() => {
        this.attempts = 0;
      })
      .catch(() => {
        destroy(client);
        this.openLater(client);
      });
  }

  private openLater(client: NodeRedisClient): void {
    if (this.closed || this.client !== client || this.timer !== undefined) return;
    const pause = Math.min(FIRST_PAUSE * 2 ** this.attempts++, LONGEST_PAUSE);
    this.timer = this.context.runtime.timer(pause, () => {
      this.timer = undefined;
      this.open();
    });
  }
}
