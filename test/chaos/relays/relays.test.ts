import { setTimeout as sleep } from 'node:timers/promises';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { machineTime } from '../history.js';
import { LEASE, RelayRun } from './relay-run.js';

/** Multiplies the rounds: 1 in the short form. */
const LONG = Number(process.env.CHAOS_LONG ?? 1);

/** No two leases overlap, tokens grow, each ticket is used once, and losses are reported: the history is checked. */
describe('locks that go from process to process, by tickets and by elections', () => {
  const random = new SeededRandom(Number(process.env.CHAOS_SEED ?? 31));
  let redis: RedisServer;
  let proxy: TcpProxy | undefined;
  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(() => redis.client().flushall());
  afterEach(async () => {
    await proxy?.stop();
    proxy = undefined;
  });
  afterAll(() => redis.stop());

  it('belong to one at a time if there are no faults', async () => {
    const run = await RelayRun.start(redis.url);
    await run.busy(40);
    await run.finish();
  }, 120_000);

  it(
    'belong to one at a time when leaders stop, die and stand still',
    async () => {
      const run = await RelayRun.start(redis.url);
      const takeovers: string[] = [];
      const takenOver = async (how: string, since: number) =>
        takeovers.push(`${how}: ${Math.round(await run.nextElection(since))} ms`);
      for (let round = 0; round < LONG; round++) {
        const stopped = run.remove(await run.leader());
        let since = machineTime();
        await stopped.stop();
        await takenOver('was stopped', since);
        run.add();
        await run.busy(5);

        const killed = run.remove(await run.leader());
        since = machineTime();
        await killed.kill();
        await takenOver('was killed', since);
        run.add();
        await run.busy(5);

        const frozen = await run.leader();
        since = machineTime();
        frozen.freeze();
        await takenOver('stood still', since);
        await sleep(LEASE * random.between(0, 0.5));
        frozen.thaw();
        await run.busy(5);
      }
      await run.finish();
      console.log(`Until another process led, when the leader ${takeovers.join(', ')}; with leases of ${LEASE} ms`);
    },
    120_000 * LONG,
  );

  it(
    'belong to one at a time when answers are lost and connections break',
    async () => {
      proxy = await startTcpProxy(redis.port);
      const run = await RelayRun.start(proxy.url, redis.url);
      for (let round = 0; round < 5 * LONG; round++) {
        proxy.dropReplies({ close: random.chance(0.5) });
        await sleep(random.between(20, 700));
        await proxy.heal();
        await run.busy(3);
      }
      await run.finish();
    },
    120_000 * LONG,
  );
});
