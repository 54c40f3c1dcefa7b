import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { leftBehind } from '../../support/left-behind.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { fault, ms, printFaultTable } from './fault-table.js';

const SECONDS = Number(process.env.CHAOS_GHOST_SECONDS ?? 60);
const SEED = Number(process.env.CHAOS_GHOST_SEED ?? Date.now() % 1_000_000);
const COMMAND_TIMEOUT = 2_000;
/** In milliseconds. What a late request takes has a lease of 30 s, or none. */
const GONE_WITHIN = COMMAND_TIMEOUT + 1_000;
/** For slow machines, whose commands take long, in milliseconds. */
const SLACK = 2_000;
const PERMITS = 3;
const NAMES = ['stock', 'ledger', 'page', 'report', 'cron'];

/** Acquires something. Returns a function that gives it back, or undefined if nothing was acquired. */
type Errand = (locks: LockService, chance: SeededRandom, signal: AbortSignal) => Promise<(() => unknown) | undefined>;

/** Callers that try once, that wait for a while, and that wait until their signal ends it. */
const patience = (chance: SeededRandom) => chance.pick([{ waitTime: 0 }, { waitTime: chance.whole(50, 4_000) }, {}]);

const take =
  (type: 'reentrant' | 'fenced' | 'fair' | 'read' | 'write', several = false): Errand =>
  async (locks, chance, signal) => {
    const name = `${type === 'write' ? 'read' : type}:${chance.pick(NAMES)}`;
    const names = several ? [name, `${type}:all`] : name;
    const leaseTime = chance.pick([undefined, '30s'] as const);
    const lease = await locks.acquire(names, { type, leaseTime, signal, ...patience(chance) });
    return () => lease.release();
  };

const ERRANDS: readonly Errand[] = [
  take('reentrant'),
  take('fenced'),
  take('fair'),
  take('read'),
  take('write'),
  take('reentrant', true),
  async (locks, chance, signal) => {
    const semaphore = locks.getSemaphore('mail');
    const permits = chance.whole(1, 2);
    const { waitTime } = patience(chance);
    if (waitTime === undefined) await semaphore.acquire(permits, { signal });
    else if (!(await semaphore.tryAcquire(permits, waitTime, { signal }))) return undefined;
    return () => semaphore.release(permits);
  },
  async (locks, chance, signal) => {
    const semaphore = locks.getPermitExpirableSemaphore('licences');
    const { waitTime } = patience(chance);
    const id =
      waitTime === undefined
        ? await semaphore.acquire(undefined, { signal })
        : await semaphore.tryAcquire(waitTime, undefined, { signal });
    return id === null ? undefined : () => semaphore.tryRelease(id);
  },
];

/** Packets are delayed for seconds, and arrive when their callers have left. */
describe('a network that delays packets', () => {
  let redis: RedisServer;
  let proxy: TcpProxy;
  let direct: Redis;
  const services: LockService[] = [];

  beforeAll(async () => {
    redis = await startRedis();
    proxy = await startTcpProxy(redis.port);
    direct = redis.client();
  });
  afterAll(async () => {
    proxy.letThrough();
    await Promise.all(services.map((locks) => locks.close()));
    await proxy.stop();
    await redis.stop();
    printFaultTable();
  }, 60_000);

  it(
    `leaves nothing behind that nobody holds (seed ${SEED})`,
    async () => {
      const chance = new SeededRandom(SEED);
      const quiet = { warn: () => {}, error: () => {} };
      const options = { commandTimeout: COMMAND_TIMEOUT, waiterTimeout: '1m', logger: quiet } as const;
      // The last service bypasses the proxy, and competes with the others.
      const urls = [proxy.url, proxy.url, proxy.url, redis.url];
      services.push(...urls.map((connection) => createLockService({ ...options, connection })));
      await services[3].getSemaphore('mail').trySetPermits(PERMITS);
      await services[3].getPermitExpirableSemaphore('licences').trySetPermits(PERMITS);

      let running = true;
      let served = 0;
      let refused = 0;
      let failures = 0;
      let heldUp = 0;
      const departures = new Set<AbortController>();
      const returns = new Set<Promise<unknown>>();

      const run = async (locks: LockService, errand: Errand) => {
        const departure = new AbortController();
        const patience = setTimeout(() => departure.abort(), chance.whole(100, 6_000));
        departures.add(departure);
        try {
          const giveBack = await errand(locks, chance, departure.signal);
          if (giveBack === undefined) return;
          served++;
          await sleep(chance.whole(0, 20));
          const returned = Promise.resolve(giveBack()).catch(() => void failures++);
          returns.add(returned);
          void returned.then(() => returns.delete(returned));
        } catch {
          refused++;
        } finally {
          clearTimeout(patience);
          departures.delete(departure);
        }
      };
      const live = async (locks: LockService, errand: Errand) => {
        while (running) {
          await run(locks, errand);
          await sleep(chance.whole(5, 100));
        }
      };

      const hold = (likelihood: number) => () => {
        if (!chance.chance(likelihood)) return 0;
        heldUp++;
        return chance.whole(1_000, 10_000);
      };
      const callers = services.flatMap((locks) =>
        ERRANDS.flatMap((errand) => [live(locks, errand), live(locks, errand)]),
      );
      await until(() => served > 50);
      proxy.holdUp({ requests: hold(0.02), replies: hold(0.01) });
      await sleep(SECONDS * 1_000);
      running = false;
      for (const departure of departures) departure.abort();
      await Promise.all(callers);

      const now = async () => {
        const [seconds, micros] = (await direct.time()).map(Number);
        return seconds * 1_000 + micros / 1_000;
      };
      const left = async () => [...(await leftBehind(direct, { 'lock:mail': PERMITS, 'lock:licences': PERMITS }))];
      const since = await now();
      proxy.letThrough();
      await until(async () => (await left()).length === 0 || (await now()) - since > GONE_WITHIN + SLACK, 120_000);
      const took = (await now()) - since;
      const behind = await left();
      const state = `${served} served, ${refused} refused, ${heldUp} packets delayed, ${failures} releases failed, ${returns.size} without answer`;
      expect({ behind, state: behind.length > 0 && state }).toEqual({ behind: [], state: false });
      // Requests that arrive even later are refused, too.
      await sleep(1_000);
      expect(await left()).toEqual([]);
      fault(
        `packets are delayed by 1 to 10 s, for ${SECONDS} s`,
        'callers are refused in time; leftovers are removed soon',
        `${served} served, ${refused} refused, ${heldUp} packets delayed; ${ms(took)} after the last caller had left, nothing was left`,
      );
    },
    SECONDS * 1_000 + 180_000,
  );
});
