import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js';
import { guard } from '../../support/process-guard.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { type SqlServer, startSqlServer } from '../../support/servers/sql/sql-server.js';
import { until } from '../../support/until.js';
import { DISTURBANCES } from '../faults/disturbances.js';
import type { IncrementerLine, IncrementerSpec } from './incrementer.js';

const hasPostgres =
  existsSync('/usr/lib/postgresql') || spawnSync('initdb', ['--version'], { stdio: 'ignore' }).status === 0;
const LEASE = 1_000;
const PROCESSES = 6;
const RUNS = Number(process.env.CHAOS_LONG ?? 1) > 1 ? 20 : 1;
const IMPATIENT = { watchdogTimeout: LEASE, commandTimeout: 400 };

/**
 * The property that users care about. Several processes read, change and write a row of PostgreSQL under a lock, while
 * processes, Redis and the network fail. The value of the row must be the number of increments that were confirmed.
 */
(hasPostgres ? describe : describe.skip)('a register that checks fencing tokens', () => {
  let postgres: SqlServer;
  let redis: RedisServer;
  let proxy: TcpProxy;
  let db: pg.Client;
  let incrementers: Incrementer[];
  let started = 0;

  beforeAll(async () => {
    postgres = await startSqlServer('PostgreSQL');
    db = new pg.Client(postgres.url);
    await db.connect();
    await db.query('create table register (value int not null, fence bigint not null)');
    await db.query('create table increments (process text, n int, primary key (process, n))');
  }, 60_000);
  afterAll(async () => {
    await db?.end();
    await postgres?.stop();
  });
  beforeEach(async () => {
    redis = await startRedis();
    proxy = await startTcpProxy(redis.port);
    incrementers = [];
    await db.query('truncate register, increments');
    await db.query('insert into register values (0, 0)');
  });
  afterEach(async () => {
    for (const each of incrementers) each.child.kill('SIGKILL');
    await proxy.stop();
    await redis.stop();
  });

  const start = (guarded: boolean) => {
    const title = `process ${++started}`;
    const options = { connection: proxy.url, ...IMPATIENT };
    incrementers.push(new Incrementer({ process: title, options, database: postgres.url, guarded }));
  };
  const live = () => incrementers.filter(({ killed }) => !killed);
  const pick = (random: SeededRandom) => random.pick(live());

  /** Each of them breaks something, and repairs it. */
  const faults: Record<string, (random: SeededRandom, guarded: boolean) => Promise<void>> = {
    'a process is killed': async (random, guarded) => {
      await pick(random).kill();
      start(guarded);
    },
    'a process is stopped past its lease': async (random) => {
      const { child } = pick(random);
      child.kill('SIGSTOP');
      await sleep(LEASE + 800);
      child.kill('SIGCONT');
    },
    'a holder is stopped past its lease, before it writes': async () => {
      const holder = await holderThatReads();
      holder.kill('SIGSTOP');
      await sleep(LEASE + 800);
      holder.kill('SIGCONT');
    },
    'Redis is killed, and forgets everything': async () => {
      await redis.kill();
      await sleep(200);
      await redis.start();
    },
    'all keys are deleted': async () => void (await redis.client().flushall()),
    'locks are released by force': async () => void (await redis.client().del('lock:register')),
    ...Object.fromEntries(
      Object.entries(DISTURBANCES).map(([name, disturb]) => [
        name,
        () => disturb({ redis, admin: redis.client(), proxy, lease: LEASE }),
      ]),
    ),
  };

  it.each(Array.from({ length: RUNS }, (_, index) => index + 1))(
    'has the value of the confirmed increments after all faults (run %i)',
    async (seed) => {
      const random = new SeededRandom(seed);
      for (let i = 0; i < PROCESSES; i++) start(true);
      await progress();
      for (const name of Object.keys(faults).sort(() => random.next() - 0.5)) {
        await faults[name](random, true);
        await progress();
      }
      const { value, confirmed } = await total();
      expect(value).toBe(confirmed);
      expect(confirmed).toBeGreaterThan(100);
      const refused = incrementers.reduce((sum, each) => sum + each.count('refused'), 0);
      process.stdout.write(`run ${seed}: value ${value}, confirmed ${confirmed}, refused by their token ${refused}\n`);
    },
    180_000,
  );

  it('loses increments if it does not check them', async () => {
    for (let i = 0; i < PROCESSES; i++) start(false);
    await progress();
    for (let i = 0; i < 20; i++) {
      await faults['a holder is stopped past its lease, before it writes'](new SeededRandom(1), false);
      const { value, confirmed } = await counted();
      if (value < confirmed) break;
    }
    const { value, confirmed } = await total();
    expect(value).toBeLessThan(confirmed);
  }, 90_000);

  /** A process that has read the register and not yet written it. */
  async function holderThatReads(): Promise<ChildProcess> {
    for (;;) {
      const holder = live().find((each) => each.isBetween);
      if (holder !== undefined) return holder.child;
      await sleep(1);
    }
  }

  /** Waits until the processes have made ten more increments. */
  async function progress(): Promise<void> {
    const wanted = added() + 10;
    await until(() => added() >= wanted, 40_000);
  }

  const added = () => incrementers.reduce((sum, each) => sum + each.count('confirmed'), 0);

  async function total(): Promise<{ value: number; confirmed: number }> {
    await Promise.all(incrementers.map((each) => each.stop()));
    return counted();
  }

  /** Asks the database whether the last update of each killed process was executed, because nobody else knows. */
  async function counted(): Promise<{ value: number; confirmed: number }> {
    const { rows } = await db.query<{ value: number }>('select value from register');
    let confirmed = added();
    for (const { spec, unanswered } of incrementers) {
      if (unanswered === undefined) continue;
      const found = await db.query('select 1 from increments where process = $1 and n = $2', [
        spec.process,
        unanswered,
      ]);
      confirmed += found.rowCount ?? 0;
    }
    return { value: rows[0].value, confirmed };
  }
});

class Incrementer {
  killed = false;
  readonly child: ChildProcess;
  private readonly lines: IncrementerLine[] = [];
  private readonly ended: Promise<unknown>;

  constructor(readonly spec: IncrementerSpec) {
    const args = ['--import', './test/support/jest/typescript-loader.mjs', 'test/chaos/anomalies/incrementer.ts'];
    const child = spawn(process.execPath, [...args, JSON.stringify(spec)], { stdio: ['pipe', 'pipe', 'inherit'] });
    guard(child);
    child.stdin.on('error', () => {});
    const lines = createInterface({ input: child.stdout });
    lines.on('line', (line) => {
      if (line.endsWith('}')) this.lines.push(JSON.parse(line));
    });
    this.child = child;
    this.ended = Promise.all([once(child, 'exit'), once(lines, 'close')]);
  }

  count(step: IncrementerLine['step']): number {
    return this.lines.filter((line) => line.step === step).length;
  }

  /** The increment whose update was sent and has not been answered. */
  get unanswered(): number | undefined {
    const last = this.lines.at(-1);
    return last?.step === 'sent' ? last.n : undefined;
  }

  /** The process has read the value, but has not sent its update. */
  get isBetween(): boolean {
    return this.lines.at(-1)?.step === 'read';
  }

  async kill(): Promise<void> {
    this.killed = true;
    this.child.kill('SIGKILL');
    await this.ended;
  }

  async stop(): Promise<void> {
    this.child.stdin?.end();
    await this.ended;
  }
}
