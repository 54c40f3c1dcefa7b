import type { ConnectionContext } from '../connection-context.js';
import type { Link, SentCommand, SubscriberConnection } from '../link.js';
import type { Topology, TopologyEvents } from '../topology.js';
import { type ClientFactory, type Endpoint, endpointText, isSame } from './node-redis-client.js';
import { NodeRedisLink } from './node-redis-link.js';
import { NodeRedisSubscriber } from './node-redis-subscriber.js';

/** How long after a move a Sentinel that names the old master is ignored, in milliseconds. */
const STALE_ADVICE = 10_000;

/** A master that was replaced, and its successor. */
export interface Move {
  readonly from: Endpoint;
  readonly to: Endpoint;
}

/** One server, or the master behind Sentinels, and how to connect to it. */
export interface SingleSource {
  readonly description: string;
  /** The options of the client. */
  readonly settings: object;
  readonly address: string;
  readonly database: number;
  readonly usesTls: boolean;
  readonly createClient: ClientFactory;
  /** Returns the current address of the server. */
  readonly locate: () => Promise<Endpoint>;
  /** Calls back when the master has moved, until it is closed. */
  readonly watch?: (moved: (move: Move) => void) => { close(): void };
}

/** One server, or the master behind Sentinels, through node-redis clients. */
export class SingleTopology implements Topology {
  readonly library = 'node-redis';
  readonly isCluster = false;
  /** All connections are ours, because only the settings of the user's client are read. */
  readonly owned = true;
  readonly replacesSilentConnections = true;
  readonly description: string;
  readonly database: number;
  readonly usesTls: boolean;
  ended = false;
  private link: NodeRedisLink;
  private events: TopologyEvents = { ready: () => {}, failed: () => {} };
  private replaced: { readonly endpoint: Endpoint; readonly until: number } | undefined;
  private readonly subscribers = new Set<NodeRedisSubscriber>();
  private watching: { close(): void } | undefined;

  constructor(
    private readonly source: SingleSource,
    private readonly context: ConnectionContext,
  ) {
    const { description, database, usesTls, address, createClient } = source;
    this.description = description;
    this.database = database;
    this.usesTls = usesTls;
    this.link = new NodeRedisLink({
      address,
      createClient,
      locate: this.locate,
      context,
      ready: () => this.events.ready(),
      failed: (error) => this.events.failed(error),
    });
  }

  get settings(): unknown {
    return { client: 'node-redis', ...this.source.settings };
  }

  get connectionError(): Error | undefined {
    return this.link.connectionError;
  }

  endedError(): Error {
    return new Error('the connection was closed');
  }

  connect(events: TopologyEvents): void {
    this.events = events;
    this.context.runtime.detached(() => {
      this.link.open();
      this.watching = this.source.watch?.((move) => this.moved(move));
    });
  }

  send(name: string, args: readonly string[]): SentCommand {
    return this.link.send(name, args);
  }

  nodeOfSlot(): string {
    return '';
  }

  has(): boolean {
    return !this.ended;
  }

  refresh(): void {}

  master(): Link {
    return this.link;
  }

  masters(): readonly Link[] {
    return [this.link];
  }

  unreachableMasters(): readonly string[] {
    return [];
  }

  masterOn(): Link {
    return this.link;
  }

  subscriber(): SubscriberConnection {
    const { address, createClient } = this.source;
    const subscriber = new NodeRedisSubscriber(address, this.locate, createClient, this.context, () =>
      this.subscribers.delete(subscriber),
    );
    this.subscribers.add(subscriber);
    return subscriber;
  }

  duplicate(): Topology {
    return new SingleTopology(this.source, this.context);
  }

  leaveReplica(): void {
    // A single server has no successor, but a proxy or a DNS name may now lead
    // elsewhere.
    this.link.reconnect();
  }

  async close(): Promise<void> {
    this.ended = true;
    this.watching?.close();
    this.link.close();
  }

  private readonly locate = async (): Promise<Endpoint> => {
    const endpoint = await this.source.locate();
    const { replaced } = this;
    if (replaced && performance.now() < replaced.until && isSame(endpoint, replaced.endpoint))
      throw new Error(`${endpointText(endpoint)} is not the master any more, and its successor is not known yet`);
    return endpoint;
  };

  private moved({ from, to }: Move): void {
    this.replaced = { endpoint: from, until: performance.now() + STALE_ADVICE };
    this.link.leaveUnlessAt(to);
    for (const subscriber of [...this.subscribers]) subscriber.leaveUnlessAt(to);
  }
}
