import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, QueueEvents } from 'bullmq';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { fault, ms, printFaultTable } from '../faults/fault-table.js';

const REPLICAS = 3;
/**
 * One after another. For more of them, on each platform, with jobs of 1 to 5 s:
 * `DEPLOYS=10 npm run jest -- test/chaos/shutdown/deploy --testPathIgnorePatterns=/node_modules/`
 */
const DEPLOYS = process.env.DEPLOYS === undefined ? 1 : Number(process.env.DEPLOYS);
const [SHORTEST_JOB, LONGEST_JOB] = process.env.DEPLOYS === undefined ? [50, 500] : [1_000, 5_000];
const PLATFORMS = process.env.DEPLOYS === undefined ? ['express'] : ['express', 'fastify'];
/** How long a replica may take to end: the time for its jobs, its kept-alive clients and shutdownTimeout, and more. */
const LONGEST_EXIT = LONGEST_JOB + 5_000 + 10_000 + 10_000;

interface Said {
  readonly what: 'ready' | 'arrived' | 'reported' | 'two inside' | 'warn' | 'error';
  readonly message?: string;
}

/** A replica in a separate process. */
class Replica {
  readonly said: Said[] = [];
  /** How many requests were sent to it. */
  sent = 0;
  private readonly process: ChildProcess;

  constructor(redis: RedisServer, platform: string) {
    const program = ['--import', './test/support/jest/typescript-loader.mjs', 'test/chaos/shutdown/replica.ts'];
    this.process = spawn(process.execPath, [...program, redis.url, platform], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    createInterface({ input: this.process.stdout! }).on('line', (line) => this.said.push(JSON.parse(line)));
  }

  get url(): string | undefined {
    return this.messages('ready')[0];
  }

  messages(kind: Said['what']): (string | undefined)[] {
    return this.said.filter(({ what }) => what === kind).map(({ message }) => message);
  }

  /** @returns how many milliseconds it took to end */
  async terminate(): Promise<number> {
    await until(() => this.messages('arrived').length === this.sent, 30_000);
    const began = Date.now();
    const ended = once(this.process, 'exit');
    this.process.kill('SIGTERM');
    await ended;
    return Date.now() - began;
  }
}

/** Sends requests and jobs to the shop, and counts what becomes of them. */
class Load {
  /** The replicas that get requests. */
  replicas: readonly Replica[] = [];
  readonly outcomes: Record<string, number> = {};
  private readonly underWay = new Set<Promise<void>>();
  private stopped = false;
  private sent = 0;

  constructor(private readonly queues: readonly Queue[]) {}

  async run(): Promise<void> {
    const pause = process.env.DEPLOYS === undefined ? 2 : 10;
    while (!this.stopped) {
      this.send(`pay/${this.sent % 7}`);
      if (this.sent % 5 === 0) this.send('index');
      if (this.sent % pause === 0) {
        const queue = this.queues[(this.sent / pause) % this.queues.length];
        const time = SHORTEST_JOB + Math.random() * (LONGEST_JOB - SHORTEST_JOB);
        await queue.add('job', { parcel: Math.floor(Math.random() * 8), time }, { attempts: 3, backoff: 500 });
      }
      await sleep(50);
    }
    await Promise.all(this.underWay);
  }

  stop(): void {
    this.stopped = true;
  }

  private send(path: string): void {
    const replica = this.replicas[this.sent++ % this.replicas.length];
    replica.sent++;
    const request = this.count(fetch(`${replica.url}/${path}`));
    this.underWay.add(request);
    void request.then(() => this.underWay.delete(request));
  }

  private async count(request: Promise<Response>): Promise<void> {
    const outcome = await request.then(
      async (answer) => (answer.ok ? await answer.text() : `status ${answer.status}`),
      (error: Error) => `no answer: ${(error.cause as Error | undefined)?.message ?? error.message}`,
    );
    this.outcomes[outcome] = (this.outcomes[outcome] ?? 0) + 1;
  }
}

describe.each(PLATFORMS)('a deploy of three replicas under load, %s', (platform) => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    printFaultTable();
    await redis.stop();
  });

  it('fails no request that arrived before SIGTERM, and no job, and logs no error', async () => {
    const { hostname, port } = new URL(redis.url);
    const connection = { host: hostname, port: Number(port) };
    const queues = ['jobs', 'patient-jobs'].map((name) => new Queue(name, { connection }));
    const events = queues.map(({ name }) => new QueueEvents(name, { connection }));
    let stalled = 0;
    for (const queue of events) queue.on('stalled', () => stalled++);
    const all: Replica[] = [];
    const start = async () => {
      const replica = new Replica(redis, platform);
      all.push(replica);
      await until(() => replica.url !== undefined, 60_000);
      return replica;
    };
    const load = new Load(queues);
    load.replicas = await Promise.all(Array.from({ length: REPLICAS }, start));
    const running = load.run();
    const times: number[] = [];
    for (let deploy = 0; deploy < DEPLOYS; deploy++) {
      for (let n = 0; n < REPLICAS; n++) {
        const next = await start();
        await sleep(500);
        const [old, ...others] = load.replicas;
        load.replicas = [...others, next];
        times.push(await old.terminate()); // most of what has arrived is not answered yet
      }
    }
    load.stop();
    await running;
    const count = async (...states: Parameters<Queue['getJobCounts']>) => {
      const counts = await Promise.all(queues.map((queue) => queue.getJobCounts(...states)));
      return counts.flatMap((of) => Object.values(of)).reduce((sum, value) => sum + value, 0);
    };
    await until(async () => (await count('waiting', 'active', 'delayed')) === 0, 120_000);
    const database = redis.client({ db: 1 });
    const [changes, indexed] = await database.mget('changes', 'indexed');
    const [completed, failed] = [await count('completed'), await count('failed')];
    times.push(...(await Promise.all(load.replicas.map((replica) => replica.terminate()))));
    await Promise.all([...events, ...queues].map((queue) => queue.close()));

    const said = (what: Said['what']) => all.flatMap((replica) => replica.messages(what));
    const seconds = times.map((time) => (time / 1_000).toFixed(1));
    const rows: [string, unknown][] = [
      ['requests', load.outcomes],
      ['jobs', { completed, failed, stalled }],
      ['runs of the cron job', said('reported').length],
      ['changes, and the last one that is indexed', `${changes}, ${indexed}`],
      ['two inside', said('two inside')],
      ['lines of ERROR', said('error')],
      ['lines of WARN', said('warn')],
      ['seconds until exit', seconds.join(' ')],
    ];
    process.stdout.write(`${DEPLOYS} deploys, ${platform}\n`);
    for (const [what, value] of rows) process.stdout.write(`  ${what.padEnd(42)}${JSON.stringify(value)}\n`);
    expect(Object.keys(load.outcomes).sort()).toEqual(['indexed', 'superseded', 'written']);
    expect({ failed, stalled, indexed }).toEqual({ failed: 0, stalled: 0, indexed: changes });
    expect([said('error'), said('two inside')]).toEqual([[], []]);
    expect(said('reported').length).toBeGreaterThan(0);
    expect(Math.max(...times)).toBeLessThan(LONGEST_EXIT);
    const requests = Object.values(load.outcomes).reduce((sum, value) => sum + value, 0);
    fault(
      `${DEPLOYS} deploys of three replicas under load (requests, BullMQ, cron, newest)`,
      'no request that arrived before SIGTERM fails, and no job; no error in a log',
      `${requests} requests and ${completed} jobs, 0 failed; a replica ends within ${ms(Math.max(...times))}`,
    );
  }, 1_800_000);
});
