import { slotOf } from '../../../../lib/backends/redis/hash-slot.js';
import type { Link, SentCommand, SubscriberConnection } from '../../../../lib/backends/redis/links/link.js';
import type { Topology, TopologyEvents } from '../../../../lib/backends/redis/links/topology.js';
import type { Cable } from './cable.js';
import { type ClientLibrary, SimulatedLink } from './simulated-link.js';
import type { SimulatedServer } from './simulated-server.js';
import { SimulatedSubscriber } from './simulated-subscriber.js';

const SLOTS = 16_384;

/** The servers as one process reaches them: one server, or a cluster whose nodes have the same number of slots. */
export class SimulatedTopology implements Topology {
  readonly description = 'simulated';
  readonly usesTls = false;
  readonly owned = true;
  readonly database = 0;
  readonly replacesSilentConnections = true;
  readonly isCluster: boolean;
  ended = false;
  private readonly links: readonly SimulatedLink[];

  constructor(
    private readonly cable: Cable,
    private readonly servers: readonly SimulatedServer[],
    readonly library: ClientLibrary,
  ) {
    this.isCluster = servers.length > 1;
    this.links = servers.map((server) => new SimulatedLink(cable, server, library));
  }

  get connectionError(): Error | undefined {
    return this.links.map(({ connectionError }) => connectionError).find((error) => error !== undefined);
  }

  endedError(): Error {
    return new Error('the connection was closed');
  }

  connect(events: TopologyEvents): void {
    for (const link of this.links) link.open(events);
  }

  send(name: string, args: readonly string[], key?: string): SentCommand {
    return this.linkOf(key === undefined ? undefined : slotOf(key)).send(name, args);
  }

  nodeOfSlot(slot: number | undefined): string {
    return this.isCluster && slot !== undefined ? this.linkOf(slot).address : '';
  }

  has(address: string): boolean {
    return !this.ended && this.servers.some(({ name }) => name === address);
  }

  refresh(): void {}

  master(slot: number | undefined): Link {
    return this.linkOf(slot);
  }

  masters(): readonly Link[] {
    return this.links;
  }

  unreachableMasters(): readonly string[] {
    return [];
  }

  masterOn(socket: object | undefined): Link | undefined {
    return this.links.find((link) => socket !== undefined && link.socket === socket);
  }

  subscriber(slot: number | undefined): SubscriberConnection {
    return new SimulatedSubscriber(this.cable, this.linkOf(slot).server);
  }

  duplicate(): Topology {
    return new SimulatedTopology(this.cable, this.servers, this.library);
  }

  leaveReplica(): void {
    for (const link of this.links) link.leave();
  }

  async close(): Promise<void> {
    this.ended = true;
    for (const link of this.links) link.close();
  }

  /** The first one, if no slot is given. */
  private linkOf(slot: number | undefined): SimulatedLink {
    return this.links[Math.floor(((slot ?? 0) * this.links.length) / SLOTS)];
  }
}
