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

const CHANNELS = 'redisson_lock__channel*';
const logger = { warn() {}, error() {} };

/** The same crowd with a real server: as many lock services in this process, each with its own connections. */
export async function measureCrowd(server: RedisServer, processes: number, plan: CrowdPlan): Promise<CrowdFigures> {
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
  const world: World = { now: () => performance.now(), sleep, spent: spending(redis) };
  const figures = await new WaitingCrowd(services, world, plan).run(victim);
  await Promise.all([victim, ...services].map((locks) => locks.close()));
  redis.disconnect();
  return figures;
}

/** Redis does not count messages. Each PUBLISH sends one to each process that is subscribed. */
function spending(redis: Redis): () => Promise<Spent> {
  let published = 0;
  let messages = 0;
  return async () => {
    const clients = process.cpuUsage();
    const [cpu, stats, channels] = await Promise.all([
      redis.info('cpu'),
      redis.info('commandstats'),
      redis.pubsub('CHANNELS', CHANNELS) as Promise<string[]>,
    ]);
    const listeners = channels.length === 0 ? 0 : Number((await redis.pubsub('NUMSUB', ...channels))[1]);
    const calls = (command: string) =>
      Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
    const total = calls('publish');
    messages += (total - published) * listeners;
    published = total;
    const seconds = (name: string) => Number(new RegExp(`^${name}:(\\S+)`, 'm').exec(cpu)?.[1]);
    return {
      commands: calls('evalsha') + calls('eval'),
      pings: calls('ping'),
      attempts: undefined,
      messages,
      server: (seconds('used_cpu_sys') + seconds('used_cpu_user')) * 1e3,
      clients: (clients.user + clients.system) / 1e3,
    };
  };
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
