import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { addressOf, ClusterNodes } from '../../backends/redis/client/cluster-nodes.js';
import { connectionAdvice } from '../../backends/redis/connection/connection-advice.js';
import { messageOf } from '../../backends/redis/connection/redis-errors.js';
import { CommandError } from '../command-error.js';
import type { RedisPlace } from './redis-place.js';

/** For a connection, and for each answer, in milliseconds. */
const TIMEOUT = 5_000;
const RETRY_DELAY = 1_000;
const TIMEOUTS = { connectTimeout: TIMEOUT, commandTimeout: TIMEOUT, disconnectTimeout: 100 };

/** Connections of this program, to one server or to the nodes of a cluster. */
export interface OpenRedis {
  readonly client: Redis | Cluster;
  /** The masters of a cluster; else the server. */
  masters(): readonly Redis[];
  /** A slot that a master of a cluster serves; undefined where there is no cluster. */
  slotOf(master: Redis): number | undefined;
  close(): void;
}

/**
 * Connects. What fails at first fails at once; a connection that breaks later comes back by itself.
 *
 * @throws CommandError that says why there is no connection, and what to do
 */
export async function openRedis(place: RedisPlace): Promise<OpenRedis> {
  const first = await connectTo(place);
  const isCluster = await asksForCluster(first);
  if (isCluster === place.isCluster || isCluster === undefined) {
    if (!place.isCluster) return single(first);
    first.disconnect();
    return openCluster(place);
  }
  first.disconnect();
  throw new CommandError(
    'usage',
    isCluster
      ? `${place.description} is a node of a cluster, and knows only a part of the locks: add --cluster`
      : `${place.description} is not a node of a cluster: leave out --cluster`,
  );
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
    return client;
  } catch (error) {
    client.disconnect();
    throw noConnection(place, failure() ?? error);
  }
}

async function openCluster(place: RedisPlace): Promise<OpenRedis> {
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
    clusterRetryStrategy: () => (hadConnection ? RETRY_DELAY : null),
  });
  const failure = lastErrorOf(client, 'node error');
  client.on('error', () => {});
  try {
    await client.connect();
    hadConnection = true;
    const nodes = new ClusterNodes(client);
    const slotOf = (master: Redis) => client.slots.findIndex((names) => names?.[0] === addressOf(master));
    return { client, masters: () => nodes.masters(), slotOf, close: () => client.disconnect() };
  } catch (error) {
    client.disconnect();
    throw noConnection(place, failure() ?? error);
  }
}

function single(client: Redis): OpenRedis {
  return { client, masters: () => [client], slotOf: () => undefined, close: () => client.disconnect() };
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

/** Whether the server belongs to a cluster; undefined where it does not tell. */
async function asksForCluster(client: Redis): Promise<boolean | undefined> {
  const info = await client.info('cluster').catch(() => '');
  const enabled = /^cluster_enabled:(\d)/m.exec(info)?.[1];
  return enabled === undefined ? undefined : enabled === '1';
}

/** ioredis tells a failed connect() only that it is closed: why comes as an event. */
function lastErrorOf(client: Redis | Cluster, event: string): () => unknown {
  let last: unknown;
  client.on(event, (error: unknown) => {
    last = error;
  });
  return () => last;
}

function noConnection({ description }: RedisPlace, error: unknown): CommandError {
  const reason = messageOf(error);
  return new CommandError(
    'unavailable',
    `${description}: ${reason}: ${connectionAdvice(error) ?? 'check the URL, and the log of Redis'}`,
  );
}
