import { setTimeout as delay } from 'node:timers/promises';
import { createLockService, type LockOptions, type LockService } from '../../../lib/core.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';

const WAITER_TIMEOUT = 1_000;
/** Long enough for places to be kept, and for the second waiter to give up. */
const HOLD = 1_000;
const GIVES_UP = 600;

const TYPES = ['reentrant', 'fenced', 'fair', 'read', 'write'] as const;
const KINDS = ['reentrant', 'fenced', 'fair', 'read after write', 'write after read', 'permits', 'newest'] as const;
type Kind = (typeof KINDS)[number];

describe('what the server counts as errors', () => {
  let redis: RedisServer;
  let services: LockService[];

  beforeAll(async () => {
    redis = await startRedis();
    services = Array.from({ length: 3 }, () =>
      createLockService({ connection: redis.url, waiterTimeout: WAITER_TIMEOUT, logger: { warn() {}, error() {} } }),
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

  /** Like {@link contend}, but those who wait ask for the lock with other options than the holder. */
  async function contendInAnotherWay(name: string, held: LockOptions, wanted: LockOptions): Promise<void> {
    const [holder, patient, leaving] = services;
    const lease = await holder.acquire(name, { ...held, waitTime: 10_000 });
    const waiting = [
      patient.acquire(name, { ...wanted, waitTime: 10_000 }),
      leaving.acquire(name, { ...wanted, waitTime: GIVES_UP }),
    ];
    const ended = Promise.allSettled(waiting.map(async (next) => (await next).release()));
    expect(await patient.tryAcquire(name, wanted)).toBeNull();
    expect(await leaving.isLocked(name)).toBe(true);
    await delay(HOLD);
    await lease.release();
    expect((await ended).map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    await holder.isLocked(name);
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

  it.each([
    ['that n may hold, and others ask for it in another way', { permits: 1 }, undefined],
    ['of another kind that others ask for with permits', undefined, { permits: 1 }],
  ] as const)('are none while a lock is held %s', async (_what, held, wanted) => {
    const all = async () => {
      await Promise.all(
        TYPES.map((type) => contendInAnotherWay(`mixed:${type}`, held ?? { type }, wanted ?? { type })),
      );
    };
    await all();
    const client = redis.client();
    await client.config('RESETSTAT');
    await all();
    expect((await client.info('errorstats')).match(/errorstat_(?!NOSCRIPT)\w+.*/g) ?? []).toEqual([]);
  });
});
