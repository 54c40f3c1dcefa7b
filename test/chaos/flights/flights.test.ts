import { setTimeout as sleep } from 'node:timers/promises';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { ServerClock } from '../../support/servers/server-clock.js';
import { until } from '../../support/until.js';
import { checkFlights, countFlights, type FlightExpectations } from './flight-checker.js';
import type { FlightRecord } from './flight-history.js';
import { type FlightProcess, startFlights } from './flight-process.js';
import { checkServerOrder, ServerOrder } from './server-order.js';

/** Multiplies the rounds: 1 in the short form. */
const LONG = Number(process.env.CHAOS_LONG ?? 1);
const PROCESSES = 6;
const NAMES = 50;
const LEASE = 1_500;
/** A lease, in milliseconds, that is renewed before it ends, even if the clock is set forward by 5 s. */
const LONG_LEASE = 12_000;
const CALM = { answeredWithin: 30_000, storedWithin: 0, ageSlack: 300 };
/** The last command of a process that is killed may still be under way. */
const KILLED = { ...CALM, storedWithin: 50 };

/** Six processes that keep single flights of fifty names busy while a test breaks something. */
class FlightRun {
  readonly records: FlightRecord[] = [];
  readonly processes: FlightProcess[] = [];
  private started = 0;

  private constructor(
    private readonly url: string,
    private readonly lease: number,
    private readonly order: ServerOrder,
  ) {}

  static async start(server: RedisServer, url = server.url, lease = LEASE): Promise<FlightRun> {
    const run = new FlightRun(url, lease, await ServerOrder.of(server));
    for (let i = 0; i < PROCESSES; i++) run.add();
    await run.busy();
    return run;
  }

  /** Adds another process. */
  add(): void {
    const seed = ++this.started;
    const options = {
      connection: this.url,
      watchdogTimeout: this.lease,
      commandTimeout: 400,
      outageTimeout: 20_000,
    };
    const load = { names: NAMES, callers: 5, keepFor: 500, longBody: 600, seed };
    this.processes.push(startFlights({ process: `p${seed}`, options, load }, this.records));
  }

  async kill(process: FlightProcess): Promise<void> {
    this.processes.splice(this.processes.indexOf(process), 1);
    await process.kill();
  }

  /** How many calls of a process have been answered. */
  private answered({ spec }: FlightProcess): number {
    return this.records.filter((record) => record.kind === 'answered' && record.process === spec.process).length;
  }

  /** @param proxy through which the processes reach the server */
  async restart(server: RedisServer, proxy: TcpProxy, pause: number): Promise<void> {
    const at = await this.order.restart(server, proxy, pause);
    this.records.push({ at, process: 'test', kind: 'data lost' });
  }

  /** Waits until this many more calls of each process were answered. */
  async busy(calls = 20): Promise<void> {
    const wanted = this.processes.map((process) => [process, this.answered(process) + calls] as const);
    await until(() => wanted.every(([process, count]) => this.answered(process) >= count), 60_000);
  }

  async finish(expectations: FlightExpectations): Promise<void> {
    const results = await Promise.allSettled(this.processes.map((process) => process.stop()));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    const found = checkFlights(this.records, expectations);
    const server = await this.order.end();
    const { ageSlack } = expectations;
    found.push(...checkServerOrder(this.records, server, { prefix: 'lock:', ageSlack }));
    expect(server.filter(({ kind }) => kind === 'stored').length).toBeGreaterThan(100);
    expect(found).toEqual([]);
    const { ran, shared, forgot } = countFlights(this.records);
    expect(Math.min(ran, shared)).toBeGreaterThan(100);
    expect(forgot).toBeGreaterThan(20);
  }
}

/** The history of a run is checked at its end. Each fault occurs a few times, at random moments of the seed. */
describe('single flights of six processes, with results that are forgotten in between', () => {
  const random = new SeededRandom(Number(process.env.CHAOS_SEED ?? 31));
  let redis: RedisServer;
  let proxy: TcpProxy | undefined;
  let clock: ServerClock | undefined;
  let run: FlightRun | undefined;

  afterEach(async () => {
    // Processes are left if the test has failed.
    await Promise.all(run?.processes.map((process) => process.kill()) ?? []);
    run = undefined;
    await proxy?.stop();
    proxy = undefined;
    await redis.stop();
    clock?.remove();
    clock = undefined;
  });

  it('keep their promises when nothing goes wrong', async () => {
    redis = await startRedis();
    run = await FlightRun.start(redis);
    await run.busy(60);
    await run.finish(CALM);
  }, 120_000);

  it(
    'keep them when processes are killed, and stand still for longer than a lease',
    async () => {
      redis = await startRedis();
      run = await FlightRun.start(redis);
      for (let round = 0; round < 2 * LONG; round++) {
        await run.kill(random.pick(run.processes));
        run.add();
        await run.busy(5);
        const frozen = random.pick(run.processes);
        frozen.freeze();
        await sleep(LEASE * random.between(1.2, 1.6));
        frozen.thaw();
        await run.busy(10);
      }
      await run.finish(KILLED);
    },
    120_000 * LONG,
  );

  it(
    'keep them when requests arrive after their callers have given up',
    async () => {
      redis = await startRedis();
      proxy = await startTcpProxy(redis.port);
      run = await FlightRun.start(redis, proxy.url);
      for (let round = 0; round < 4 * LONG; round++) {
        proxy.holdUp({ requests: () => (random.chance(0.05) ? random.between(0, LEASE) : 0) });
        await run.busy(20);
        proxy.letThrough();
        await run.busy(3);
      }
      await run.finish(CALM);
    },
    120_000 * LONG,
  );

  it(
    'keep them when answers are lost and connections break',
    async () => {
      redis = await startRedis();
      proxy = await startTcpProxy(redis.port);
      run = await FlightRun.start(redis, proxy.url);
      for (let round = 0; round < 6 * LONG; round++) {
        proxy.dropReplies({ close: random.chance(0.5) });
        await sleep(random.between(20, 700));
        await proxy.heal();
        await run.busy(3);
      }
      await run.finish(CALM);
    },
    120_000 * LONG,
  );

  it(
    'keep them when Redis is killed and comes back without its data',
    async () => {
      redis = await startRedis();
      proxy = await startTcpProxy(redis.port);
      run = await FlightRun.start(redis, proxy.url);
      for (let round = 0; round < 2 * LONG; round++) {
        await run.restart(redis, proxy, random.between(0, 500));
        await run.busy(10);
      }
      await run.finish(CALM);
    },
    120_000 * LONG,
  );

  it(
    'keep them when the clock of Redis is set by five seconds',
    async () => {
      clock = ServerClock.make();
      if (clock === undefined)
        return console.warn('skipped: the clock of Redis is not set, because there is no C compiler');
      redis = await startRedis({ env: clock.env });
      const admin = redis.client();
      const time = async () => Number((await admin.time())[0]) - Date.now() / 1_000;
      run = await FlightRun.start(redis, redis.url, LONG_LEASE);
      for (let round = 0; round < LONG; round++) {
        for (const ahead of [5, 0, -5, 0]) {
          clock.set(ahead);
          expect(Math.abs((await time()) - ahead)).toBeLessThan(2);
          await run.busy(10);
        }
      }
      await run.finish({ ...CALM, ageSlack: 6_000 });
    },
    120_000 * LONG,
  );
});
