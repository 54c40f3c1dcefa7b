import { setTimeout as sleep } from 'node:timers/promises';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { createLockService } from '../../../lib/service/create-lock-service.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { type RedisCluster, startCluster } from '../../support/servers/redis-cluster.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { LONG } from './fault-run.js';
import { fault, printFaultTable } from './fault-table.js';

const ROUNDS = 30 * LONG;
/** How many rounds run in parallel, each with its own names, services and proxies. */
const LANES = 6;
const SEED = Number(process.env.CHAOS_SEVERAL_SEED ?? Date.now() % 1_000_000);
const COMMAND_TIMEOUT = 1_500;
/** In milliseconds. It is longer than the command time-out, so that the connection has been replaced by then. */
const HELD_UP = COMMAND_TIMEOUT + 400;
/** How long a caller holds its locks, in milliseconds. Late requests have arrived by then. */
const STAY = HELD_UP + COMMAND_TIMEOUT;
const TYPES = ['reentrant', 'fair'] as const;
const QUIET = { warn: () => {}, error: () => {} };

/** What happens to the release of the first name. */
type Mishap = 'late' | 'reset';

/** Two names on two nodes, and the proxies in front of the nodes. */
interface Lane {
  /** Connects through the proxies. */
  readonly locks: LockService;
  /** Connects directly to the cluster. */
  readonly others: LockService;
  /** The proxy of the first name's node, and that of the second name's node. */
  readonly proxies: readonly [TcpProxy, TcpProxy];
  names(round: number): Promise<readonly [string, string]>;
}

/**
 * A caller of two names has taken the first one, finds the second one busy, and gives the first one back. That release
 * arrives late, or only after its connection was reset, when the caller may have acquired the first name again.
 */
describe('several names on different nodes of a cluster', () => {
  const chance = new SeededRandom(SEED);
  const proxies: TcpProxy[] = [];
  const services: LockService[] = [];
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startCluster();
  }, 60_000);
  afterAll(async () => {
    for (const proxy of proxies) proxy.letThrough();
    await Promise.all(services.map((locks) => locks.close()));
    await Promise.all(proxies.map((proxy) => proxy.stop()));
    await cluster.stop();
    printFaultTable();
  }, 60_000);

  async function open(lane: number): Promise<Lane> {
    const [first, second] = [await cluster.masterOf(0), await cluster.masterOf(16_383)];
    const masters = [first, second] as const;
    const [one, other] = [await startTcpProxy(first.port), await startTcpProxy(second.port)];
    proxies.push(one, other);
    const natMap = Object.fromEntries(
      [one, other].map((proxy, i) => [`127.0.0.1:${masters[i].port}`, { host: '127.0.0.1', port: proxy.port }]),
    );
    const { nodes } = cluster;
    const disturbed = { nodes, options: { natMap } };
    const locks = createLockService({
      commandTimeout: COMMAND_TIMEOUT,
      outageTimeout: Number.POSITIVE_INFINITY, // a slow machine takes its time to connect to six nodes again
      logger: QUIET,
      connection: disturbed,
    });
    // Nothing disturbs these connections, so a slow answer comes from a slow machine.
    const others = createLockService({ commandTimeout: 30_000, logger: QUIET, connection: { nodes } });
    services.push(locks, others);
    const names = (round: number) =>
      Promise.all([nameOn(first, `a:${lane}:${round}`), nameOn(second, `b:${lane}:${round}`)]);
    return { locks, others, proxies: [one, other], names };
  }

  async function nameOn(server: RedisServer, prefix: string): Promise<string> {
    for (let n = 0; ; n++) {
      const name = `${prefix}:${n}`;
      if ((await cluster.masterOf(await cluster.slotOf(`lock:${name}`))) === server) return name;
    }
  }

  /** @returns whether the caller believed that it held the first name when another caller got it */
  async function overlaps(lane: Lane, round: number, mishap: Mishap, type: LockOptions['type']): Promise<boolean> {
    const { locks, others } = lane;
    const [first, second] = await lane.names(round);
    const [near, far] = lane.proxies;
    const busy = await others.acquire(second, { type });
    // Leaves time to disturb the release between the acquisition of the first name and the answer about the second one.
    far.delay(30);
    const acquiring = locks.acquire([first, second], { type });
    await until(() => others.isLocked(first));
    near.holdUp({ requests: () => HELD_UP });
    await until(() => near.holding > 0);
    near.holdUp();
    if (mishap === 'reset') await reset(near);
    far.delay(0);
    await busy.release();
    const lease = await acquiring;
    const over = sleep(STAY, 'over' as const);
    const intruding = others.acquire(first, { type });
    const overlap = (await Promise.race([intruding, over])) !== 'over' && lease.held;
    await over;
    await lease.release().catch(() => {});
    await (await intruding).release();
    return overlap;
  }

  /** Delayed data is lost with its connection, and no new connection is accepted for a moment. */
  async function reset(proxy: TcpProxy): Promise<void> {
    if (chance.chance(0.5)) return proxy.disconnect();
    await proxy.refuse();
    await sleep(chance.whole(10, 1_500));
    await proxy.heal();
  }

  it(
    `are held by one caller at a time, in ${ROUNDS} rounds of late releases and resets (seed ${SEED})`,
    async () => {
      const overlapping: string[] = [];
      let next = 0;
      const run = async (lane: Lane) => {
        for (let round = next++; round < ROUNDS; round = next++) {
          const mishap = round % 2 === 0 ? 'late' : 'reset';
          const type = TYPES[Math.floor(round / 2) % TYPES.length];
          if (await overlaps(lane, round, mishap, type)) overlapping.push(`${round}: ${mishap}, ${type}`);
        }
      };
      const lanes = await Promise.all(Array.from({ length: LANES }, (_, lane) => open(lane)));
      await Promise.all(lanes.map(run));
      expect(overlapping).toEqual([]);
      fault(
        'several names on a cluster: the release of one is delayed, or its connection is reset',
        'a delay; no two callers hold a lock at once',
        `${ROUNDS} rounds, 0 overlaps`,
      );
    },
    240_000 * LONG,
  );
});
