import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { createLockService } from '../../../lib/core.js';
import {
  type CrowdFigures,
  type CrowdPlan,
  type Spent,
  WaitingCrowd,
  type World,
} from '../../chaos/simulation/crowd/waiting-crowd.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { countMessages, received } from '../worker/sent-commands.js';

const logger = { warn() {}, error() {} };

/** The same crowd with a real server: as many lock services in this process, each with its own connections. */
export async function measureCrowd(server: RedisServer, processes: number, plan: CrowdPlan): Promise<CrowdFigures> {
  countMessages();
  const redis = server.client();
  const open = async () => {
    const locks = createLockService({ connection: server.url, logger });
    await locks.isLocked('crowd');
    return locks;
  };
  const victim = await open();
  const services = [];
  while (services.length < processes)
    services.push(...(await Promise.all(Array.from({ length: Math.min(50, processes - services.length) }, open))));
  const world: World = { now: () => performance.now(), sleep, random: Math.random, spent: spending(redis) };
  const figures = await new WaitingCrowd(services, world, plan).run(victim);
  await Promise.all([victim, ...services].map((locks) => locks.close()));
  redis.disconnect();
  return figures;
}

function spending(redis: Redis): () => Promise<Spent> {
  return async () => {
    const clients = process.cpuUsage();
    const [server, stats] = await Promise.all([readCpu(redis), redis.info('commandstats')]);
    const calls = (command: string) =>
      Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
    return {
      commands: calls('evalsha') + calls('eval'),
      pings: calls('ping'),
      attempts: undefined,
      messages: received.messages,
      server,
      clients: (clients.user + clients.system) / 1e3,
    };
  };
}

/** The CPU time that the server has used so far, in milliseconds. */
export async function readCpu(redis: Redis): Promise<number> {
  const cpu = await redis.info('cpu');
  const seconds = (name: string) => Number(new RegExp(`^${name}:(\\S+)`, 'm').exec(cpu)?.[1]);
  return (seconds('used_cpu_sys') + seconds('used_cpu_user')) * 1e3;
}

/** The median round trip of a PING on an idle connection, in milliseconds. */
export async function roundTrip(server: RedisServer): Promise<number> {
  const redis = server.client();
  const times: number[] = [];
  for (let i = 0; i < 2_000; i++) {
    const start = performance.now();
    await redis.ping();
    times.push(performance.now() - start);
  }
  redis.disconnect();
  return times.sort((a, b) => a - b)[1_000];
}
