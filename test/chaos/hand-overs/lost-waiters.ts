import { setTimeout as sleep } from 'node:timers/promises';
import { createLockService, type RedisLockOptions } from '../../../lib/core.js';
import { startTcpProxy } from '../../support/network/tcp-proxy.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { machineTime } from '../history.js';
import { RecordingProcess } from '../recording-process.js';
import type { CrowdSpec } from './crowd-program.js';

/** What happens to the processes in front of the one that lives. */
export const FATES = ['nothing', 'killed', 'stopped', 'blocked', 'half-open'] as const;
export type Fate = (typeof FATES)[number];

export interface LostWaiters {
  readonly fate: Fate;
  /** How many wait in front of the one that lives. `nothing`: none does. */
  readonly count: number;
  /** For how many ms before the release. */
  readonly since: number;
  /** The watchdogTimeout of all, in ms. */
  readonly lease: number;
  /** For how long their places are kept, in ms. They are refreshed three times in it. */
  readonly kept: number;
}

/** So many services share a process, as on one machine. */
const IN_A_PROCESS = 100;

/**
 * A lock is held, and lost processes and a living one wait for it in this order.
 *
 * @returns how many ms after the release the living one holds the lock
 */
export async function measureLostWaiters(redis: RedisServer, lost: LostWaiters): Promise<number> {
  const { fate, count, since, lease, kept } = lost;
  const lock = `lost:${fate}:${count}:${since}`;
  const line = `nestjs_redis_lock_turns:{lock:${lock}}`;
  const admin = redis.client();
  const inLine = (places: number) => until(async () => (await admin.zcard(line)) === places, 120_000);
  const proxy = await startTcpProxy(redis.port);
  const options: RedisLockOptions = {
    connection: redis.url,
    watchdogTimeout: lease,
    waiterTimeout: kept,
    waitTime: Number.POSITIVE_INFINITY,
  };
  const [holder, living] = [0, 1].map(() => createLockService({ ...options, watchdogTimeout: 60_000 }));
  const crowd: RecordingProcess<CrowdSpec, { at: number }>[] = [];
  try {
    const held = await holder.acquire(lock);
    const places = fate === 'nothing' ? 0 : count;
    for (let started = 0; started < places; started += IN_A_PROCESS) {
      const services = Math.min(IN_A_PROCESS, places - started);
      const behind = fate === 'half-open' ? { ...options, connection: proxy.url } : options;
      const spec = { process: `crowd ${crowd.length}`, options: behind, services, lock };
      crowd.push(
        new RecordingProcess(spec, {
          program: 'test/chaos/hand-overs/crowd-program.ts',
          record: () => {},
          crashed: () => {},
          endsWithin: 20_000,
        }),
      );
    }
    await inLine(places);
    const next = living.acquire(lock);
    await inLine(places + 1);
    for (const process of crowd) {
      if (fate === 'killed') await process.kill();
      if (fate === 'stopped') process.freeze();
      if (fate === 'blocked') process.tell(String(since + 10 * lease));
    }
    if (fate === 'half-open') proxy.cutHalfOpen();
    await sleep(since);
    const start = machineTime();
    await held.release();
    const granted = await next;
    const took = machineTime() - start;
    await granted.release();
    return took;
  } finally {
    // What they hold or wait for is of no interest any more.
    for (const process of crowd) await process.kill();
    await Promise.all([holder.close(), living.close()]);
    await proxy.stop();
    admin.disconnect();
  }
}
