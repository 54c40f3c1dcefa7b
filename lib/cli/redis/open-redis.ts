import { setTimeout as sleep } from 'node:timers/promises';
import { BackendError } from '../../backends/lock-backend.js';
import {
  adviceFor,
  type Connection,
  checkDatabaseExists,
  type Link,
  messageOf,
  openTopology,
  type Topology,
} from '../../backends/redis/diagnostics.js';
import { nodeRuntime } from '../../engine/node-runtime.js';
import { CommandError } from '../command-error.js';
import { diagnosticConnection } from './diagnostic-connection.js';
import type { RedisPlace } from './redis-place.js';
import { Server, TIMEOUT, within } from './server.js';
import { type ReplicaOf, refuseOtherKinds, replicaOf } from './wrong-server.js';

const SLOTS = 16_384;
/** Less than {@link TIMEOUT}, so that the client's own error, which gives the reason, comes first. */
const CONNECT_TIMEOUT = TIMEOUT - 500;
/** How long to wait for masters that are slower than the first one or down, and between two checks, in milliseconds. */
const OTHER_MASTERS = 1_000;
const POLL = 10;

/** Connections of this program, to one server or to the nodes of a cluster. */
export interface OpenRedis {
  /** For a separate lock service. */
  readonly connection: Connection;
  /** The number of the database. */
  readonly database: number;
  /** The server of the URL. */
  readonly server: Server;
  /** The master of the server. Undefined if the server is a master or a cluster, or does not report it. */
  readonly replicaOf?: ReplicaOf;
  /** The masters of a cluster, or the server. */
  masters(): readonly Server[];
  close(): Promise<unknown>;
}

interface Opened {
  readonly connection: Connection;
  readonly topology: Topology;
  readonly server: Server;
  close(): Promise<void>;
}

/**
 * Connects. If the first connection fails, the error is thrown immediately. A connection that breaks later is opened
 * again.
 *
 * @throws CommandError that gives the reason and says what to do
 */
export async function openRedis(place: RedisPlace): Promise<OpenRedis> {
  const opened = await connectTo(place);
  const { server } = opened;
  try {
    const info = await server.text('info').catch(() => ''); // it may be denied
    refuseOtherKinds(info, place);
    if (place.isCluster) return await openCluster(place, opened);
    return { ...opened, database: opened.topology.database, replicaOf: replicaOf(info), masters: () => [server] };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Connects to the server of the URL. */
async function connectTo(place: RedisPlace): Promise<Opened> {
  const connection = diagnosticConnection(place.url, { isCluster: false, connectTimeout: CONNECT_TIMEOUT });
  const opened = await open(connection, place);
  const { topology, server } = opened;
  try {
    // Servers accept every connection. The first command shows whether the user is known. A server that cannot save its
    // data answers it by MISCONF, although it can be read.
    await server.ask('ping').catch((error: unknown) => {
      if (!/^(NOPERM|MISCONF)/.test(messageOf(error))) throw noConnection(place, error);
    });
    await checkDatabaseExists(topology, (name, args) => server.ask(name, ...args));
    return opened;
  } catch (error) {
    await topology.close();
    if (error instanceof CommandError) throw error;
    throw new CommandError('unavailable', messageOf(error), { cause: error });
  }
}

async function openCluster(place: RedisPlace, first: Opened): Promise<OpenRedis> {
  const slots = await first.server.ask('cluster', 'slots').catch(() => undefined);
  // Without slots there are no nodes to connect to. The check of the cluster reports that it is down.
  if (Array.isArray(slots) && slots.length === 0) return { ...first, database: 0, masters: () => [first.server] };
  const cluster = await open(
    diagnosticConnection(place.url, { isCluster: true, connectTimeout: CONNECT_TIMEOUT }),
    place,
  );
  const { topology } = cluster;
  const firstSlotOf = (address: string) => {
    for (let slot = 0; slot < SLOTS; slot++) if (topology.nodeOfSlot(slot) === address) return slot;
    return undefined;
  };
  return {
    connection: cluster.connection,
    database: topology.database,
    server: first.server,
    masters: () => reachable(topology).map((link) => new Server(link, topology, firstSlotOf(link.address))),
    close: () => Promise.all([topology.close(), first.close()]),
  };
}

function reachable(topology: Topology): Link[] {
  const unreachable = topology.unreachableMasters();
  return topology.masters().filter(({ address }) => !unreachable.includes(address));
}

/** Connects, or fails with the first error. */
async function open(connection: Connection, place: RedisPlace): Promise<Opened> {
  const topology = openTopology(connection, {
    runtime: nodeRuntime,
    commandTimeout: TIMEOUT,
    onError: () => {},
    onWarning: () => {},
  });
  try {
    await connected(topology);
  } catch (error) {
    await topology.close();
    // The server may have refused the database.
    await checkDatabaseExists(topology, () => Promise.reject(error)).catch((denied: unknown) => {
      if (denied instanceof BackendError) throw new CommandError('unavailable', denied.message, { cause: error });
    });
    throw noConnection(place, error);
  }
  const server = new Server(topology.master(undefined, 0) as Link, topology);
  return { connection, topology, server, close: () => topology.close() };
}

async function connected(topology: Topology): Promise<void> {
  let last: unknown;
  const ready = new Promise<void>((resolve, reject) => {
    topology.connect({
      ready: resolve,
      failed: (error) => {
        last = error;
        // Other masters of the cluster may be reachable.
        if (!topology.isCluster || topology.masters().length === 0) reject(error);
      },
    });
  });
  await within(ready).catch((error) => {
    throw last ?? error;
  });
  const patience = performance.now() + OTHER_MASTERS;
  while (topology.unreachableMasters().length > 0 && performance.now() < patience) await sleep(POLL);
}

function noConnection({ description, url }: RedisPlace, error: unknown): CommandError {
  const reason = messageOf(error);
  return new CommandError(
    'unavailable',
    `${description}: ${reason}: ${adviceFor(error, url.startsWith('rediss:')) ?? 'check the URL, and the log of Redis'}`,
  );
}
