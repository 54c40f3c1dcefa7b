import { setTimeout as sleep } from 'node:timers/promises';
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
  const spend = async (work: () => Promise<unknown>) => {
    const [atServer, clients] = [await readCpu(redis), process.cpuUsage()];
    for (let message = 0; message < MESSAGES; message++) {
      await work();
      await sleep(APART);
    }
    const { user, system } = process.cpuUsage(clients);
    return { write: (await readCpu(redis)) - atServer, read: (user + system) / 1e3 };
  };
  const nothing = await spend(() => redis.publish('nobody', ''));
  const messages = await spend(() => redis.publish('calibrate', ''));
  for (const client of [redis, ...listeners]) client.disconnect();
  const share = (of: (costs: MessageCosts) => number) => (of(messages) - of(nothing)) / heard;
  return { write: share(({ write }) => write), read: share(({ read }) => read) };
}

/**
 * How much CPU time a script call, a message and a PING take on this machine. Computed from the costs of a message and
 * from a real crowd.
 *
 * @param roundTrip of a PING, in milliseconds
 */
export function costsOf({ steady }: CrowdFigures, { write, read }: MessageCosts, roundTrip: number): Costs {
  const { each } = steady;
  // A script call is executed and answered. A PING costs one write for its execution and one for its answer.
  const writes = ({ commands, messages, pings }: Spent) => commands + messages + 2 * pings;
  const reads = ({ messages, pings }: Spent) => messages + pings;
  return {
    latency: Math.max(0, roundTrip / 2 - write),
    command: (each.server - write * writes(each)) / each.commands,
    write,
    message: read,
    answer: (each.clients - read * reads(each)) / each.commands,
  };
}
