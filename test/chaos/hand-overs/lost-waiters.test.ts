import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { LONG } from '../faults/fault-run.js';
import { fault, ms, printFaultTable } from '../faults/fault-table.js';
import { type Fate, measureLostWaiters } from './lost-waiters.js';

/** In ms. Places are refreshed every second. */
const LEASE = 3_000;
const KEPT = 3_000;
/** Enough for a slow machine. A process without a connection is passed over in the release. */
const AT_ONCE = 800;
/** On a slow machine, a lapsed lease is noticed later. */
const SLACK = 2_000;

/** How long processes that are lost hold up the one behind them. `npm run bench -- waiters` prints figures. */
describe('processes that are first in line when the lock is given back', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis({ args: ['--maxclients', '4000'] });
  });
  afterAll(async () => {
    printFaultTable();
    await redis.stop();
  });

  const measure = async (fate: Fate, count: number, since: number) => {
    const took = await measureLostWaiters(redis, { fate, count, since, lease: LEASE, kept: KEPT });
    fault(
      `${count} processes in front are ${fate}, ${ms(since)} before the release`,
      'the next living one gets the lock',
      `after ${ms(took)}; leases of ${ms(LEASE)}, places kept for ${ms(KEPT)}`,
    );
    return took;
  };

  it.each(LONG === 1 ? [1, 40] : [1, 40, 400])('are passed over if they are killed: %i', async (count) => {
    expect(await measure('killed', count, 50)).toBeLessThan(AT_ONCE);
  });

  it.each(['stopped', 'half-open'] as const)('are passed over if they are %s and owe a refresh', async (fate) => {
    expect(await measure(fate, 10, (KEPT * 5) / 6)).toBeLessThan(AT_ONCE);
  });

  it.each(['stopped', 'blocked', 'half-open'] as const)(
    'hold up the next one for their lease, once, if they are %s at that moment',
    async (fate) => {
      expect(await measure(fate, 10, 50)).toBeLessThan(LEASE + SLACK);
    },
  );
});
