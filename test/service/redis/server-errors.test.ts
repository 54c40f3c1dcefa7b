import { setTimeout as delay } from 'node:timers/promises';
import { createLockService, type LockService } from '../../../lib/core.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

const WAITER_TIMEOUT = 1_000;
/** Long enough for places to be kept, and for the second waiter to give up. */
const HOLD = 1_000;
const GIVES_UP = 600;

const KINDS = ['reentrant', 'fenced', 'fair', 'read after write', 'write after read', 'permits', 'newest'] as const;
type Kind = (typeof KINDS)[number];

describe('what the server counts as errors', () => {
  let redis: RedisServer;
  let services: LockService[];

  beforeAll(async () => {
    redis = await startRedis();
    services = Array.from({ length: 3 }, () =>
      createLockService({ connection: redis.url, fairWaitTimeout: WAITER_TIMEOUT, logger: { warn() {}, error() {} } }),
    );
  });

  afterAll(async () => {
    await Promise.all(services.map((locks) => locks.close()));
    await redis.stop();
  });

  const take = (locks: LockService, kind: Kind, waitTime: number, isFirst: boolean) => {
    const options = { waitTime };
    if (kind === 'permits') return locks.acquire(kind, { ...options, permits: 1 });
    if (kind === 'newest') return locks.acquire(kind, { ...options, newest: true });
    if (kind === 'read after write') return locks.acquire(kind, { ...options, type: isFirst ? 'write' : 'read' });
    if (kind === 'write after read') return locks.acquire(kind, { ...options, type: isFirst ? 'read' : 'write' });
    return locks.acquire(kind, { ...options, type: kind });
  };

  /** One service holds the lock, one waits for it, and one gives up. @returns how many of the two were served */
  async function contend(kind: Kind): Promise<number> {
    const [holder, patient, leaving] = services;
    const lease = await take(holder, kind, 10_000, true);
    const waiting = [take(patient, kind, 10_000, false), take(leaving, kind, GIVES_UP, false)];
    const ended = Promise.allSettled(waiting.map(async (next) => (await next).release()));
    await delay(HOLD);
    await lease.release();
    const served = (await ended).filter(({ status }) => status === 'fulfilled');
    await holder.isLocked(kind); // what was sent in the background has arrived
    return served.length;
  }

  it.each(KINDS)('are none while callers wait for a lock, give up and get it: %s', async (kind) => {
    await contend(kind); // connects, and sends the scripts
    const client = redis.client();
    await client.config('RESETSTAT');
    // With `newest`, the caller that gives up came last, so it has taken the place of the other one.
    expect(await contend(kind)).toBe(kind === 'newest' ? 0 : 1);
    // A script that the first round did not need is sent after a NOSCRIPT. This happens once for each script.
    expect((await client.info('errorstats')).match(/errorstat_(?!NOSCRIPT)\w+/g) ?? []).toEqual([]);
  });
});
