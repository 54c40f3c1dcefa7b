import { Cluster, type ClusterOptions, type Redis } from 'ioredis';
import { until } from '../until.js';
import { type ClusterNode, parseClusterNodes, serves } from './cluster-nodes.js';
import { type RedisServer, startRedis } from './redis-server.js';

const SLOTS = 16_384;
const NODE_TIMEOUT = 1_000;

/**
 * Three masters with a replica each. A master that is down for a second is replaced by its replica.
 *
 *     const cluster = await startCluster();
 *     afterAll(() => cluster.stop());
 *     const client = cluster.client();
 *     await cluster.moveSlot(await cluster.slotOf('lock:{a}'));
 *
 * @param settings further arguments of every server
 */
export async function startCluster(settings: readonly string[] = []): Promise<RedisCluster> {
  const membership = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(NODE_TIMEOUT)];
  const replication = ['--repl-diskless-sync', 'yes', '--repl-diskless-sync-delay', '0'];
  const args = [...membership, ...replication, ...settings];
  const starts = Array.from({ length: 6 }, () => startRedis({ args }));
  const started = (await Promise.allSettled(starts)).flatMap((it) => (it.status === 'fulfilled' ? [it.value] : []));
  const cluster = new RedisCluster(started);
  try {
    await Promise.all(starts);
    await cluster.form();
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** A slot in migration. Both nodes have some of its keys. Clients get ASK, and TRYAGAIN for several keys. */
export interface SlotMove {
  readonly from: RedisServer;
  readonly to: RedisServer;
  /** Moves these keys, or all remaining ones. */
  migrate(...keys: string[]): Promise<void>;
  /** Moves the remaining keys, and hands the slot over. From now on, clients get MOVED. */
  finish(): Promise<void>;
}

export class RedisCluster {
  readonly #clients = new Set<Cluster>();
  readonly #links = new Map<RedisServer, Redis>();

  /** @internal see {@link startCluster} */
  constructor(readonly servers: readonly RedisServer[]) {}

  /** The addresses of the nodes for ioredis. */
  get nodes(): { host: string; port: number }[] {
    return this.servers.map(({ port }) => ({ host: '127.0.0.1', port }));
  }

  /** A new cluster client, closed by {@link stop}. */
  client(options: ClusterOptions = {}): Cluster {
    const client = new Cluster(this.nodes, {
      ...options,
      redisOptions: { disconnectTimeout: 100, ...options.redisOptions },
    });
    client.on('error', () => {});
    this.#clients.add(client);
    return client;
  }

  async slotOf(key: string): Promise<number> {
    return this.#link(this.#running()[0]!).cluster('KEYSLOT', key);
  }

  /** The master that serves a slot. */
  async masterOf(slot: number): Promise<RedisServer> {
    return (await this.#masterOf(slot)).server;
  }

  /** The replica of the master that serves a slot. */
  async replicaOf(slot: number): Promise<RedisServer> {
    const { id } = await this.#masterOf(slot);
    const replica = (await this.#view()).find((node) => node.masterId === id && !node.failed);
    if (!replica) {
      throw new Error(`the master of slot ${slot} has no replica that runs`);
    }
    return replica.server;
  }

  /** Moves a slot with its keys to another master (default: any). @returns the new master */
  async moveSlot(slot: number, to?: RedisServer): Promise<RedisServer> {
    const move = await this.beginMove(slot, to);
    await move.finish();
    return move.to;
  }

  /** Opens the migration of a slot and leaves it open. */
  async beginMove(slot: number, to?: RedisServer): Promise<SlotMove> {
    const masters = (await this.#view()).filter((node) => node.master && !node.failed);
    const source = await this.#masterOf(slot);
    const target = masters.find((node) => (to ? node.server === to : node.id !== source.id));
    if (!target) {
      throw new Error('the slot can only move to a master that runs');
    }
    const [sender, receiver] = [this.#link(source.server), this.#link(target.server)];
    await receiver.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', source.id);
    await sender.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', target.id);
    const migrate = async (...keys: string[]) => {
      const moving = keys.length > 0 ? keys : await sender.cluster('GETKEYSINSLOT', slot, 10_000);
      if (moving.length > 0) {
        await sender.call('MIGRATE', '127.0.0.1', target.server.port, '', 0, 5000, 'KEYS', ...moving);
      }
    };
    const finish = async () => {
      await migrate();
      await receiver.call('CLUSTER', 'SETSLOT', slot, 'NODE', target.id);
      await sender.call('CLUSTER', 'SETSLOT', slot, 'NODE', target.id);
      await this.#agreed((view) => serves(view, slot)?.id === target.id);
    };
    return { from: source.server, to: target.server, migrate, finish };
  }

  /** Makes a regular failover of the master that serves a slot. @returns the new master */
  async failover(slot: number): Promise<RedisServer> {
    const [master, replica] = [await this.masterOf(slot), await this.replicaOf(slot)];
    await this.#link(replica).call('CLUSTER', 'FAILOVER');
    await this.#agreed((view) => {
      const successor = serves(view, slot);
      return (
        successor?.server === replica && view.some((node) => node.server === master && node.masterId === successor.id)
      );
    });
    return replica;
  }

  /** Kills the master that serves a slot, and waits until its replica replaces it. @returns the new master */
  async killMaster(slot: number): Promise<RedisServer> {
    const [master, replica] = [await this.masterOf(slot), await this.replicaOf(slot)];
    await master.kill();
    await this.#agreed((view) => serves(view, slot)?.server === replica);
    return replica;
  }

  /** Waits until a restarted server is a working replica. */
  async joined(server: RedisServer): Promise<void> {
    await this.#agreed((view) => view.some((node) => node.server === server && !node.master && !node.failed));
    await this.#synced(server);
  }

  /** Ends servers and clients. */
  async stop(): Promise<void> {
    for (const client of this.#clients) {
      client.disconnect();
    }
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  /** @internal Creates a cluster of servers that do not know each other yet. */
  async form(): Promise<void> {
    const masters = this.servers.slice(0, 3);
    const share = Math.ceil(SLOTS / masters.length);
    // This must happen before nodes meet, because a node that knows another one accepts no epoch.
    await Promise.all(
      this.servers.map((server, index) => this.#link(server).call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)),
    );
    await Promise.all(
      this.servers.map(async (server, index) => {
        const link = this.#link(server);
        // Each node meets all others, because gossip would take seconds.
        await Promise.all(
          this.servers.slice(index + 1).map(({ port }) => link.call('CLUSTER', 'MEET', '127.0.0.1', port)),
        );
        const first = index * share;
        const slots = index < masters.length ? Math.min(share, SLOTS - first) : 0;
        if (slots > 0) {
          await link.call('CLUSTER', 'ADDSLOTS', ...Array.from({ length: slots }, (_, slot) => first + slot));
        }
      }),
    );
    await this.#agreed((view) => view.length === this.servers.length);
    await Promise.all(
      this.servers.slice(3).map(async (server, index) => {
        const id = await this.#link(masters[index]!).call('CLUSTER', 'MYID');
        await this.#link(server).call('CLUSTER', 'REPLICATE', id as string);
      }),
    );
    await this.#agreed((view) => view.filter((node) => !node.master).length === 3);
    await Promise.all(this.servers.slice(3).map((server) => this.#synced(server)));
  }

  /** Waits until the view of every running node is right, and every node accepts commands. */
  async #agreed(right: (view: readonly ClusterNode[]) => unknown): Promise<void> {
    for (const server of this.#running()) {
      await until(async () => {
        const info = await this.#link(server).cluster('INFO');
        return info.includes('cluster_state:ok') && right(await this.#view(server));
      });
    }
  }

  async #synced(replica: RedisServer): Promise<void> {
    await until(async () => (await this.#link(replica).info('replication')).includes('master_link_status:up'));
  }

  async #masterOf(slot: number): Promise<ClusterNode> {
    const master = serves(await this.#view(), slot);
    if (!master) {
      throw new Error(`nobody serves slot ${slot}`);
    }
    return master;
  }

  /** The cluster from the view of one node. */
  async #view(server = this.#running()[0]!): Promise<ClusterNode[]> {
    return parseClusterNodes((await this.#link(server).cluster('NODES')) as string, this.servers);
  }

  #running(): RedisServer[] {
    return this.servers.filter((server) => server.running);
  }

  #link(server: RedisServer): Redis {
    const link = this.#links.get(server) ?? server.client();
    this.#links.set(server, link);
    return link;
  }
}
