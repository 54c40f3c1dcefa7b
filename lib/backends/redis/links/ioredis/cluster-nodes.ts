import type { Redis } from 'ioredis';
import { slotOf } from '../../hash-slot.js';
import { type Client, isCluster } from './client.js';

/**
 * Which node of a cluster has which slot, as far as the client knows. Without a cluster there is one node, named ''.
 */
export class ClusterNodes {
  constructor(private readonly client: Client) {}

  /** The name of the node that has a slot; '' when it is not known, or when no slot is given. */
  ofSlot(slot: number | undefined): string {
    const { client } = this;
    return slot !== undefined && isCluster(client) ? (client.slots[slot]?.[0] ?? '') : '';
  }

  /** Like {@link ofSlot}, for the slot of a key. */
  ofKey(key: string | undefined): string {
    return key !== undefined && isCluster(this.client) ? this.ofSlot(slotOf(key)) : '';
  }

  /** Whether the cluster has a node with this `host:port`. Always false after the client has ended. */
  has(address: string): boolean {
    const { client } = this;
    if (client.status === 'end') return false;
    return !isCluster(client) || client.nodes().some((node) => addressOf(node) === address);
  }

  /** Asks the cluster again which node has which slot. */
  refresh(): void {
    if (isCluster(this.client)) this.client.refreshSlotsCache();
  }

  /**
   * The client of the master that has a slot, or of any master when no slot is given; undefined when it is not known.
   *
   * @param random chooses among the masters: a number in [0, 1)
   */
  master(slot: number | undefined, random: number): Redis | undefined {
    const { client } = this;
    if (!isCluster(client)) return client;
    const masters = client.nodes('master');
    if (slot === undefined) return masters[Math.floor(random * masters.length)];
    const address = this.ofSlot(slot);
    return masters.find((node) => addressOf(node) === address);
  }

  /** The clients of all masters, in the order of their addresses. */
  masters(): Redis[] {
    const { client } = this;
    if (!isCluster(client)) return [client];
    return client.nodes('master').sort((one, other) => (addressOf(one) < addressOf(other) ? -1 : 1));
  }

  /** The masters that have slots, but no client, because they could not be reached. */
  unreachableMasters(): string[] {
    const { client } = this;
    if (!isCluster(client)) return [];
    const known = new Set(client.nodes('master').map(addressOf));
    const serving = new Set(client.slots.flatMap((names) => names?.[0] ?? []));
    return [...serving].filter((address) => !known.has(address));
  }

  /** The client of the master that a socket is connected to; undefined when there is none any more. */
  masterOn(socket: object | undefined): Redis | undefined {
    const { client } = this;
    return isCluster(client) ? client.nodes('master').find(({ stream }) => stream === socket) : client;
  }
}

/** `host:port`, which is also how ioredis names the node of a slot. */
export function addressOf({ options }: Redis): string {
  return `${options.host}:${options.port}`;
}
