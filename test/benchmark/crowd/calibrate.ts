import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { ownerId, toClientId } from '../../../lib/backends/owner-ids.js';
import { RedisBackend } from '../../../lib/backends/redis/redis-backend.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import type { Costs } from '../../chaos/simulation/crowd/modelled-server.js';
import type { CrowdFigures, Spent } from '../../chaos/simulation/crowd/waiting-crowd.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { readCpu } from './real-crowd.js';

/** Connections that listen, and messages to all of them. */
const LISTENERS = 500;
const MESSAGES = 200;
/** Milliseconds between two messages, as between two releases. */
const APART = 10;

/** Milliseconds of CPU time for one message to one connection. */
export interface MessageCosts {
  readonly write: number;
  readonly read: number;
}

/** Publishes to many connections of this process. */
export async function measureMessages(server: RedisServer): Promise<MessageCosts> {
  const redis = server.client();
  const listeners = Array.from({ length: LISTENERS }, () => server.client());
  let heard = 0;
  await Promise.all(
    listeners.map((listener) => {
      listener.on('message', () => heard++);
      return listener.subscribe('calibrate');
    }),
  );
  const publish = (channel: string) => spend(redis, MESSAGES, APART, () => redis.publish(channel, ''));
  const nothing = await publish('nobody');
  const messages = await publish('calibrate');
  for (const client of [redis, ...listeners]) client.disconnect();
  const share = (of: (spent: CpuTime) => number) => (of(messages) - of(nothing)) / heard;
  return { write: share(({ server }) => server), read: share(({ clients }) => clients) };
}

/** Milliseconds of the CPU time of the server, and of this process with its clients. */
type CpuTime = Pick<Spent, 'server' | 'clients'>;

/** Does something `times` times, `apart` milliseconds from one another. */
async function spend(
  redis: Redis,
  times: number,
  apart: number,
  work: (turn: number) => Promise<unknown>,
): Promise<CpuTime> {
  const [atServer, clients] = [await readCpu(redis), process.cpuUsage()];
  for (let turn = 0; turn < times; turn++) {
    await work(turn);
    await sleep(apart);
  }
  const { user, system } = process.cpuUsage(clients);
  return { server: (await readCpu(redis)) - atServer, clients: (user + system) / 1e3 };
}

/** Places in the line, as many as in a large fleet, and how often they are kept. */
const PLACES = 1_000;
const REFRESHES = 500;
/** Milliseconds between two of them, so that the server is as cold as between two processes that keep their places. */
const REFRESHES_APART = 2;

/** Milliseconds of the server's CPU time for keeping one place, without its answer: see {@link Costs.place}. */
export async function measurePlaces(server: RedisServer): Promise<number> {
  const redis = server.client();
  const clientId = toClientId(randomUUID());
  const backend = new RedisBackend({
    connection: server.url,
    commandTimeout: 2_000,
    runtime: nodeRuntime,
    shardedPubSub: 'auto',
    minReplicas: 0,
    onError: () => {},
  });
  const key = 'calibrate';
  const type = 'reentrant';
  const owners = Array.from({ length: PLACES + 1 }, (_, place) => ownerId(clientId, place));
  for (const owner of owners)
    await backend.acquire({ key, type, owner, leaseTime: 60_000, reserve: 0, waiterTimeout: 60_000, pastLine: false });
  const place = await moreThanPing(redis, async (turn) => {
    const [isKept] = await backend.refreshWaiters([{ key, type, owner: owners[1 + turn] }], 60_000);
    if (!isKept) throw new Error(`The place of ${owners[1 + turn]} was lost`);
  });
  await backend.close();
  await redis.flushall();
  redis.disconnect();
  return place;
}

/** By how many milliseconds the server's CPU time for something exceeds that for a PING. */
async function moreThanPing(redis: Redis, work: (turn: number) => Promise<unknown>): Promise<number> {
  const ping = await spend(redis, REFRESHES, REFRESHES_APART, () => redis.ping());
  const spent = await spend(redis, REFRESHES, REFRESHES_APART, work);
  return (spent.server - ping.server) / REFRESHES;
}

/**
 * Milliseconds of the server's CPU time for a subscription or its end, without its answer: see
 * {@link Costs.subscription}.
 */
export async function measureSubscriptions(server: RedisServer): Promise<number> {
  const redis = server.client();
  const listener = server.client();
  const change = await moreThanPing(redis, (turn) =>
    turn % 2 === 0 ? listener.subscribe(`calibrate:${turn}`) : listener.unsubscribe(`calibrate:${turn - 1}`),
  );
  for (const client of [redis, listener]) client.disconnect();
  return change;
}

/**
 * How much CPU time a script call, a message and a PING take on this machine. Computed from the costs of a message and
 * from a real crowd.
 *
 * @param place what {@link measurePlaces} has returned: how much more than a PING it takes to keep a place
 * @param subscription what {@link measureSubscriptions} has returned
 * @param roundTrip of a PING, in milliseconds
 */
export function costsOf(
  { steady }: CrowdFigures,
  { write, read }: MessageCosts,
  place: number,
  subscription: number,
  roundTrip: number,
): Costs {
  const { each } = steady;
  // A script call is executed and answered. A PING costs one write for its execution and one for its answer.
  const writes = ({ commands, messages, pings }: Spent) => commands + messages + 2 * pings;
  const reads = ({ messages, pings }: Spent) => messages + pings;
  return {
    latency: Math.max(0, roundTrip / 2 - write),
    // Nearly all script calls of a small crowd are about the lock.
    command: (each.server - write * writes(each)) / each.commands,
    place: place + write,
    subscription: subscription + write,
    write,
    message: read,
    answer: (each.clients - read * reads(each)) / each.commands,
  };
}
