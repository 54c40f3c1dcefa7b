import type { Timer } from '../../../runtime.js';
import { messageOf } from '../../connection/redis-errors.js';
import { slotOf } from '../../hash-slot.js';
import type { ConnectionContext } from '../connection-context.js';
import type { Link, SentCommand, SubscriberConnection } from '../link.js';
import type { Topology, TopologyEvents } from '../topology.js';
import type { ClientFactory, Endpoint } from './node-redis-client.js';
import { NodeRedisLink } from './node-redis-link.js';
import { NodeRedisSubscriber } from './node-redis-subscriber.js';
import { NodeRedisCommand, refusalOf } from './sent-command.js';

const SLOTS = 16_384;
/** A command that is redirected more often than this fails with the last redirection. */
const MOST_REDIRECTIONS = 16;
/**
 * The pause before a command whose slot is in migration is repeated, and before the slots are requested again, in
 * milliseconds.
 */
const RETRY_DELAY = 100;

/** Some nodes of a cluster, and how to connect to each node. */
export interface ClusterSource {
  readonly description: string;
  /** The options of the cluster client. */
  readonly settings: object;
  readonly database: number;
  readonly usesTls: boolean;
  /** The configured nodes, which know the others, and a factory for each with its own settings. */
  readonly roots: readonly { readonly endpoint: Endpoint; readonly createClient: ClientFactory }[];
  /** The factory for discovered nodes. */
  readonly createClient: ClientFactory;
  /** Translates the address that the cluster reports into the one for this process. Needed behind NAT. */
  readonly translate: (address: string) => Endpoint | undefined;
}

/**
 * A cluster through node-redis clients, with one connection for each node. Slots and redirections are handled here and
 * not by the cluster client of node-redis, which would hide what happened to a command.
 */
export class ClusterTopology implements Topology {
  readonly library = 'node-redis';
  readonly isCluster = true;
  readonly owned = true;
  readonly database: number;
  readonly usesTls: boolean;
  readonly replacesSilentConnections = true;
  readonly description: string;
  ended = false;
  /** The address of the master of each slot. */
  private slots: (string | undefined)[] = new Array(SLOTS).fill(undefined);
  private readonly links = new Map<string, NodeRedisLink>();
  /** Commands that wait until the slots are known, or until one of the masters is connected. */
  private readonly waiting = new Set<{ readonly command: NodeRedisCommand; readonly start: () => void }>();
  /** Nodes that were missing in the last reply. */
  private readonly leftOut = new Set<string>();
  private known = false;
  private lastError: Error | undefined;
  private discovering: Promise<void> | undefined;
  private retryTimer: Timer | undefined;
  private rootIndex = 0;
  private events: TopologyEvents = { ready: () => {}, failed: () => {} };

  constructor(
    private readonly source: ClusterSource,
    private readonly context: ConnectionContext,
  ) {
    this.description = source.description;
    this.database = source.database;
    this.usesTls = source.usesTls;
  }

  get settings(): unknown {
    return { client: 'node-redis', ...this.source.settings };
  }

  get connectionError(): Error | undefined {
    if (this.known && [...this.links.values()].some(({ isReady }) => isReady)) return undefined;
    return this.lastError ?? new Error('node-redis has not connected to the cluster yet');
  }

  endedError(): Error {
    return new Error('the connection was closed');
  }

  connect(events: TopologyEvents): void {
    this.events = events;
    this.context.runtime.detached(() => this.refresh());
  }

  send(name: string, args: readonly string[], key?: string, failOnTryAgain = false): SentCommand {
    const command = new NodeRedisCommand([name].concat(args));
    const slot = key === undefined ? undefined : slotOf(key);
    let redirections = 0;
    const start = (): void => {
      const address = slot === undefined ? this.connected()[0] : this.slots[slot];
      if (address !== undefined) return this.linkAt(address).dispatch(command, redirect);
      this.waiting.add({ command, start });
      if (!this.known || slot !== undefined) this.refresh();
    };
    const redirect = (error: Error): boolean => {
      const [code, , address] = error.message.split(' ');
      if (code === 'CLUSTERDOWN') this.refresh();
      if (++redirections > MOST_REDIRECTIONS || this.ended) return false;
      if (code === 'MOVED' && address !== undefined) {
        if (slot !== undefined) this.slots[slot] = address;
        this.refresh();
        this.linkAt(address).dispatch(command, redirect);
        return true;
      }
      if (code === 'ASK' && address !== undefined) {
        const link = this.linkAt(address);
        // Both are sent on one connection, one directly after the other.
        link.send('ASKING', []).reply.catch(() => {});
        link.dispatch(command, redirect);
        return true;
      }
      if (code !== 'TRYAGAIN' || failOnTryAgain) return false;
      this.context.runtime.timer(RETRY_DELAY, start);
      return true;
    };
    if (this.ended) command.fail(this.endedError());
    else start();
    return command;
  }

  nodeOfSlot(slot: number | undefined): string {
    return slot === undefined ? '' : (this.slots[slot] ?? '');
  }

  has(address: string): boolean {
    return !this.ended && this.slots.includes(address);
  }

  refresh(): void {
    if (this.ended || this.discovering !== undefined) return;
    this.discovering = this.discover()
      .catch((error: unknown) => {
        this.refused(error);
        this.failed(error as Error);
      })
      .finally(() => {
        this.discovering = undefined;
      });
  }

  master(slot: number | undefined, random: number): Link | undefined {
    const address = this.addressFor(slot, random);
    return address === undefined ? undefined : this.linkAt(address);
  }

  masters(): readonly Link[] {
    return this.addresses().map((address) => this.linkAt(address));
  }

  unreachableMasters(): readonly string[] {
    return this.addresses().filter((address) => !this.links.get(address)?.isReady);
  }

  masterOn(socket: object | undefined): Link | undefined {
    return [...this.links.values()].find((link) => link.socket === socket);
  }

  subscriber(slot: number | undefined): SubscriberConnection | undefined {
    const address = this.addressFor(slot, this.context.runtime.random());
    if (address === undefined) return undefined;
    return new NodeRedisSubscriber(
      address,
      async () => this.endpointOf(address),
      this.source.createClient,
      this.context,
    );
  }

  duplicate(): Topology {
    return new ClusterTopology(this.source, this.context);
  }

  leaveReplica(): void {
    this.refresh();
  }

  async close(): Promise<void> {
    this.ended = true;
    this.retryTimer?.cancel();
    for (const link of this.links.values()) link.close();
    for (const { command } of this.waiting) command.fail(this.endedError());
    this.waiting.clear();
  }

  private addresses(): string[] {
    return [...new Set(this.slots.filter((address) => address !== undefined))].sort();
  }

  /**
   * The master that has a slot. Without a slot, it is one of those that are connected, because a command for any
   * master must not wait for one that is down.
   */
  private addressFor(slot: number | undefined, random: number): string | undefined {
    if (slot !== undefined) return this.slots[slot];
    const connected = this.connected();
    const candidates = connected.length > 0 ? connected : this.addresses();
    return candidates[Math.floor(random * candidates.length)];
  }

  /** The addresses of the masters that are connected. */
  private connected(): string[] {
    return this.addresses().filter((address) => this.links.get(address)?.isReady);
  }

  private linkAt(address: string): NodeRedisLink {
    let link = this.links.get(address);
    if (link === undefined) {
      link = this.context.runtime.detached(() =>
        this.open(address, this.source.createClient, this.endpointOf(address), () => {
          this.events.ready();
          this.startWaiting();
        }),
      );
      this.links.set(address, link);
    }
    return link;
  }

  private open(address: string, createClient: ClientFactory, endpoint: Endpoint, ready = () => {}): NodeRedisLink {
    const link = new NodeRedisLink({
      address,
      createClient,
      locate: () => Promise.resolve(endpoint),
      context: this.context,
      ready,
      failed: (error) => this.failed(error),
    });
    link.open();
    return link;
  }

  private endpointOf(address: string): Endpoint {
    const end = address.lastIndexOf(':');
    return this.source.translate(address) ?? { host: address.slice(0, end), port: Number(address.slice(end + 1)) };
  }

  /** Asks a connected node, or the next configured one, which node has which slot. */
  private async discover(): Promise<void> {
    const ready = [...this.links.values()].filter(({ isReady }) => isReady);
    const { roots } = this.source;
    const root = roots[this.rootIndex++ % roots.length];
    const link = ready[0] ?? this.open('root', root.createClient, root.endpoint);
    try {
      const asked = link.send('CLUSTER', ['SLOTS']);
      const ranges = (await this.answered(asked)) as [from: number, to: number, master: [host: string, port: number]][];
      this.learn(ranges, root.endpoint.host ?? '127.0.0.1');
    } catch (error) {
      throw refusalOf(error) ?? link.connectionError ?? error;
    } finally {
      if (ready.length === 0) link.close();
    }
  }

  private learn(
    ranges: readonly [from: number, to: number, master: [host: string, port: number]][],
    rootHost: string,
  ): void {
    const slots: (string | undefined)[] = new Array(SLOTS).fill(undefined);
    // A node that does not know its own host sends an empty one.
    for (const [from, to, [host, port]] of ranges) slots.fill(`${host || rootHost}:${port}`, from, to + 1);
    this.slots = slots;
    if (this.ended) return;
    const addresses = this.addresses();
    for (const [address, link] of this.links) {
      if (addresses.includes(address)) this.leftOut.delete(address);
      // The reply of one node may be out of date, and closing a link makes its pending commands fail.
      else if (!this.leftOut.has(address)) this.leftOut.add(address);
      else {
        link.close();
        this.links.delete(address);
        this.leftOut.delete(address);
      }
    }
    for (const address of addresses) this.linkAt(address);
    this.known = addresses.length > 0;
    if (this.known) this.lastError = undefined;
    this.startWaiting();
  }

  private startWaiting(): void {
    const waiting = [...this.waiting];
    this.waiting.clear();
    for (const { command, start } of waiting) if (!command.aborted) start();
  }

  /** Called when the nodes refuse the settings of the connection, so that waiting for a connection would not help. */
  private refused(error: unknown): void {
    const refusal = refusalOf(error);
    if (refusal === undefined) return;
    for (const { command } of this.waiting) command.fail(refusal);
    this.waiting.clear();
  }

  private async answered(command: SentCommand): Promise<unknown> {
    const { runtime, commandTimeout } = this.context;
    let timer: Timer | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = runtime.timer(commandTimeout, () => reject(new Error(`no answer within ${commandTimeout} ms`)));
    });
    return Promise.race([command.reply, late]).finally(() => timer?.cancel());
  }

  private failed(error: Error): void {
    if (this.ended) return;
    this.lastError = new Error(messageOf(error));
    this.events.failed(error);
    const retry = () => {
      this.retryTimer = undefined;
      this.refresh();
    };
    this.retryTimer ??= this.context.runtime.timer(RETRY_DELAY, retry);
  }
}
