import type { Redis, RedisOptions } from 'ioredis';
import type { ConnectionContext } from '../connection-context.js';
import type { Link, SentCommand, SubscriberConnection } from '../link.js';
import type { Topology, TopologyEvents } from '../topology.js';
import { blockingCommandOf } from './blocking-command.js';
import { type Client, isCluster } from './client.js';
import { ClientLifecycle } from './client-lifecycle.js';
import { clientDefaults, SUBSCRIBER_OPTIONS } from './client-options.js';
import { type ClientSource, startupNodesOf } from './client-source.js';
import { addressOf, ClusterNodes } from './cluster-nodes.js';
import { FailoverWatch } from './failover-watch.js';
import { IoredisSubscriber } from './ioredis-subscriber.js';
import { refusalAfterSelect } from './selected-database.js';
import { type CommandClass, commandsFor, type IoredisCommand, sendOn } from './sent-command.js';
import { SocketTimeout } from './socket-timeout.js';

/** Redis through an ioredis client, with any topology. Its commands record repetitions and redirections. */
export class IoredisTopology implements Topology {
  readonly library = 'ioredis';
  readonly description: string;
  readonly owned: boolean;
  readonly usesTls: boolean;
  readonly isCluster: boolean;
  private readonly client: Client;
  private readonly Command: CommandClass;
  private readonly nodes: ClusterNodes;
  private readonly lifecycle: ClientLifecycle;
  private readonly socketTimeout: SocketTimeout;
  private readonly ownWatch: FailoverWatch | undefined;
  private readonly watch: FailoverWatch | undefined;

  /** @param watch belongs to the topology of which this is a copy, and is closed by it */
  constructor(
    source: ClientSource,
    private readonly context: ConnectionContext,
    watch?: FailoverWatch,
  ) {
    const { client, description, owned, needsFailoverWatch } = source;
    this.client = client;
    this.Command = commandsFor(client);
    this.description = description;
    this.owned = owned;
    this.isCluster = isCluster(client);
    const { tls, sentinelTLS } = isCluster(client)
      ? ((client.options.redisOptions ?? {}) as RedisOptions)
      : client.options;
    this.usesTls = Boolean(tls ?? sentinelTLS);
    this.nodes = new ClusterNodes(client);
    this.lifecycle = new ClientLifecycle(source, context);
    this.socketTimeout = new SocketTimeout(source, context);
    if (needsFailoverWatch) this.ownWatch = context.runtime.detached(() => new FailoverWatch(client.options));
    this.watch = this.ownWatch ?? watch;
  }

  get settings(): unknown {
    const { client } = this;
    if (!isCluster(client)) return client.options;
    return { nodes: startupNodesOf(client), options: client.options };
  }

  get user(): string | undefined {
    const { client } = this;
    const options = isCluster(client) ? (client.options.redisOptions as RedisOptions | undefined) : client.options;
    return options?.username || undefined; // ioredis has null where no user is given
  }

  get database(): number {
    const { client } = this;
    const { db } = isCluster(client) ? ((client.options.redisOptions ?? {}) as RedisOptions) : client.options;
    return Number(db ?? 0);
  }

  get replacesSilentConnections(): boolean {
    return this.socketTimeout.isReplaced;
  }

  get connectionError(): Error | undefined {
    return this.lifecycle.connectionError;
  }

  blockedBy(socket: object): string | undefined {
    const master = this.owned ? undefined : this.nodes.masterOn(socket);
    return master && blockingCommandOf(master);
  }

  get ended(): boolean {
    return this.client.status === 'end';
  }

  endedError(): Error {
    return this.lifecycle.endedError();
  }

  connect(events: TopologyEvents): void {
    this.lifecycle.connect(events, this.socketTimeout, this.watch);
  }

  /** ioredis finds the slot, because it knows which arguments of a command are keys. */
  send(name: string, args: readonly string[], _key?: string, failOnTryAgain = false): SentCommand {
    const command = new this.Command(name, args);
    if (failOnTryAgain && this.isCluster) command.failOnTryAgain();
    return this.write(this.client, command);
  }

  nodeOfSlot(slot: number | undefined): string {
    return this.nodes.ofSlot(slot);
  }

  has(address: string): boolean {
    return this.nodes.has(address);
  }

  refresh(): void {
    this.nodes.refresh();
  }

  master(slot: number | undefined, random: number): Link | undefined {
    const master = this.nodes.master(slot, random);
    return master && new IoredisLink(master, this);
  }

  masters(): readonly Link[] {
    return this.nodes.masters().map((master) => new IoredisLink(master, this));
  }

  unreachableMasters(): readonly string[] {
    return this.nodes.unreachableMasters();
  }

  masterOn(socket: object | undefined): Link | undefined {
    const master = this.nodes.masterOn(socket);
    return master && new IoredisLink(master, this);
  }

  subscriber(slot: number | undefined): SubscriberConnection | undefined {
    const node = this.nodes.master(slot, this.context.runtime.random());
    const client = node?.duplicate({ ...SUBSCRIBER_OPTIONS, ...this.socketTimeout.options });
    if (client === undefined) return undefined;
    this.watch?.follow(client);
    this.socketTimeout.suspend(client);
    return new IoredisSubscriber(client);
  }

  duplicate(): Topology {
    const { client, description, watch, context } = this;
    const copy = context.runtime.detached(() =>
      isCluster(client)
        ? client.duplicate([], { lazyConnect: true })
        : client.duplicate({ ...clientDefaults(context), lazyConnect: true }),
    );
    return new IoredisTopology({ client: copy, owned: true, description }, context, watch);
  }

  leaveReplica(): void {
    this.lifecycle.leaveReplica();
  }

  async close(): Promise<void> {
    this.ownWatch?.close();
    await this.lifecycle.close();
  }

  /** Sends a command, unless the application has called `select()` on a client that it has lent. */
  write(client: Client, command: IoredisCommand): SentCommand {
    const refusal = this.owned || isCluster(client) ? undefined : refusalAfterSelect(client, this);
    if (refusal === undefined) return sendOn(client, command);
    command.reject(refusal);
    return command;
  }
}

class IoredisLink implements Link {
  constructor(
    private readonly client: Redis,
    private readonly topology: IoredisTopology,
  ) {}

  get address(): string {
    return addressOf(this.client);
  }

  send(name: string, args: readonly string[]): SentCommand {
    const { client, topology } = this;
    return topology.write(client, new (commandsFor(client))(name, args));
  }
}
