import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { addressOf, ClusterNodes } from '../../backends/redis/client/cluster-nodes.js';
import { checkDatabase } from '../../backends/redis/connection/check-database.js';
import { connectionAdvice } from '../../backends/redis/connection/connection-advice.js';
import { messageOf } from '../../backends/redis/connection/redis-errors.js';
import { sendOn } from '../../backends/redis/connection/script-command.js';
import { CommandError } from '../command-error.js';
import type { RedisPlace } from './redis-place.js';

/** For a connection, and for each answer, in milliseconds. */
const TIMEOUT = 5_000;
const RETRY_DELAY = 1_000;
const TIMEOUTS = { connectTimeout: TIMEOUT, commandTimeout: TIMEOUT, disconnectTimeout: 100 };

/** Connections of this program, to one server or to the nodes of a cluster. */
export interface OpenRedis {
  readonly client: Redis | Cluster;
  /** The server that the URL names. */
  readonly server: Redis;
  /** Whom the server follows; undefined where it is a master, a cluster, or does not say. */
  readonly replicaOf?: ReplicaOf;
  /** The masters of a cluster; else the server. */
  masters(): readonly Redis[];
  /** A slot that a master of a cluster serves; undefined where there is no cluster. */
  slotOf(master: Redis): number | undefined;
  close(): void;
}

/** The master of a replica. */
export interface ReplicaOf {
  /** `host:port` */
  readonly master: string;
  /** Whether the replica is connected to it. */
  readonly isLinked: boolean;
}

/**
 * Connects. What fails at first fails at once; a connection that breaks later comes back by itself.
 *
 * @throws CommandError that says why there is no connection, and what to do
 */
export async function openRedis(place: RedisPlace): Promise<OpenRedis> {
  const server = await connectTo(place);
  try {
    const info = await server.info().catch(() => ''); // it may be denied
    refuseOtherKinds(info, place);
    if (place.isCluster) return await openCluster(place, server);
    return {
      client: server,
      server,
      replicaOf: replicaOf(info),
      masters: () => [server],
      slotOf: () => undefined,
      close: () => server.disconnect(),
    };
  } catch (error) {
    server.disconnect();
    throw error;
  }
}

/** @throws CommandError where the server has no locks, or only a part of them */
function refuseOtherKinds(info: string, { description, isCluster }: RedisPlace): void {
  const field = (name: RegExp) => name.exec(info)?.[1];
  if (field(/^(?:redis|server)_mode:(\w+)/m) === 'sentinel') {
    const masters = [...info.matchAll(/^master\d+:name=(.*?),.*?address=(.*?),/gm)];
    const named = masters.map(([, name, address]) => `${address} ('${name}')`).join(', ');
    throw new CommandError(
      'usage',
      `${description} is a Sentinel, and has no locks: give the URL of the master that it watches: ${named || 'there is none'}`,
    );
  }
  const enabled = field(/^cluster_enabled:(\d)/m);
  if (enabled === undefined || isCluster === (enabled === '1')) return;
  throw new CommandError(
    'usage',
    isCluster
      ? `${description} is not a node of a cluster: leave out --cluster`
      : `${description} is a node of a cluster, and knows only a part of the locks: add --cluster`,
  );
}

function replicaOf(info: string): ReplicaOf | undefined {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
  if (field('role') !== 'slave') return undefined;
  return { master: `${field('master_host')}:${field('master_port')}`, isLinked: field('master_link_status') === 'up' };
}

async function connectTo(place: RedisPlace): Promise<Redis> {
  const { url } = place;
  let hadConnection = false;
  const client = new Redis(
    url,
    settings(() => hadConnection),
  );
  const failure = lastErrorOf(client, 'error');
  client.once('ready', () => {
    hadConnection = true;
  });
  try {
    await client.connect();
    // Servers let anybody connect: that the user is unknown comes out with the first command.
    await client.ping().catch((error: unknown) => {
      if (!/^NOPERM/.test(messageOf(error))) throw error;
    });
  } catch (error) {
    client.disconnect();
    throw noConnection(place, failure() ?? error);
  }
  try {
    const source = { client, owned: true, description: place.description };
    await checkDatabase(source, (command) => sendOn(client, command));
    return client;
  } catch (error) {
    client.disconnect();
    throw new CommandError('unavailable', messageOf(error), { cause: error });
  }
}

async function openCluster(place: RedisPlace, server: Redis): Promise<OpenRedis> {
  const slots = await server.cluster('SLOTS').catch(() => undefined);
  // Without any slot there are no nodes, and ioredis has nothing to connect to: the server itself says that it is down.
  if (slots?.length === 0) {
    const masters = () => [server];
    return { client: server, server, masters, slotOf: () => undefined, close: () => server.disconnect() };
  }
  const { hostname, port, username, password, protocol } = new URL(place.url);
  const redisOptions: Partial<RedisOptions> = {
    ...TIMEOUTS,
    username: decodeURIComponent(username) || undefined,
    password: decodeURIComponent(password) || undefined,
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  };
  let hadConnection = false;
  const start = [{ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || 6379 }];
  const client = new Cluster(start, {
    redisOptions,
    lazyConnect: true,
    // It would give up a cluster that fails. Commands fail then, and say why; doctor examines it.
    enableReadyCheck: false,
    clusterRetryStrategy: () => (hadConnection ? RETRY_DELAY : null),
  });
  const failure = lastErrorOf(client, 'node error');
  client.on('error', () => {});
  try {
    await client.connect();
    hadConnection = true;
    const nodes = new ClusterNodes(client);
    const slotOf = (master: Redis) => client.slots.findIndex((names) => names?.[0] === addressOf(master));
    const close = () => {
      client.disconnect();
      server.disconnect();
    };
    return { client, server, masters: () => nodes.masters(), slotOf, close };
  } catch (error) {
    client.disconnect();
    throw noConnection(place, failure() ?? error);
  }
}

function settings(mayRetry: () => boolean): RedisOptions {
  return {
    lazyConnect: true,
    ...TIMEOUTS,
    // INFO, which the check asks, may be denied; doctor says so.
    enableReadyCheck: false,
    retryStrategy: () => (mayRetry() ? RETRY_DELAY : null),
  };
}

/** ioredis tells a failed connect() only that it is closed: why comes as an event. */
function lastErrorOf(client: Redis | Cluster, event: string): () => unknown {
  let last: unknown;
  client.on(event, (error: unknown) => {
    last = error;
  });
  return () => last;
}

function noConnection({ description, url }: RedisPlace, error: unknown): CommandError {
  const reason = messageOf(error);
  return new CommandError(
    'unavailable',
    `${description}: ${reason}: ${connectionAdvice(error, url.startsWith('rediss:')) ?? 'check the URL, and the log of Redis'}`,
  );
}
