import type { RedisServer } from './redis-server.js';

/** One line of CLUSTER NODES. */
export interface ClusterNode {
  readonly id: string;
  readonly server: RedisServer;
  readonly master: boolean;
  /** The id of the master of a replica. */
  readonly masterId: string;
  /** The node that answered considers this one down. */
  readonly failed: boolean;
  readonly slots: readonly { readonly from: number; readonly to: number }[];
}

/** Reads the reply of CLUSTER NODES. Omits nodes that are still in the handshake. */
export function parseClusterNodes(reply: string, servers: readonly RedisServer[]): ClusterNode[] {
  return reply.split('\n').flatMap((line) => {
    const [id = '', address = '', flags = '', masterId = '', , , , , ...slots] = line.split(' ');
    const port = Number(/:(\d+)@/.exec(address)?.[1]);
    const server = servers.find((it) => it.port === port);
    if (!server || flags.includes('handshake')) {
      return [];
    }
    const [master, failed] = [flags.includes('master'), flags.includes('fail')];
    return [{ id, server, master, masterId, failed, slots: slots.filter(isRange).map(parseRange) }];
  });
}

/** The node that serves a slot. */
export function serves(nodes: readonly ClusterNode[], slot: number): ClusterNode | undefined {
  return nodes.find((node) => node.master && node.slots.some(({ from, to }) => from <= slot && slot <= to));
}

/** Entries like `[93-<-292f8b…]` are migrations. */
function isRange(text: string): boolean {
  return !text.startsWith('[');
}

function parseRange(text: string): { from: number; to: number } {
  const [from = 0, to = from] = text.split('-').map(Number);
  return { from, to };
}
