import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { fault, ms, printFaultTable } from '../faults/fault-table.js';

const REPLICAS = 3;
/** One after another. */
const DEPLOYS = process.env.CHAOS_LONG === undefined ? 1 : 10;

interface Said {
  readonly what: 'ready' | 'warn' | 'error';
  readonly url?: string;
  readonly message?: string;
}

/** A replica in a separate process. */
class Replica {
  readonly said: Said[] = [];
  private readonly process: ChildProcess;

  constructor(redis: RedisServer) {
    const args = ['--import', './test/support/jest/typescript-loader.mjs', 'test/chaos/shutdown/replica.ts', redis.url];
    this.process = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    createInterface({ input: this.process.stdout! }).on('line', (line) => this.said.push(JSON.parse(line)));
  }

  get url(): string | undefined {
    return this.said.find(({ what }) => what === 'ready')?.url;
  }

  /** @returns how many milliseconds it took to end */
  async terminate(): Promise<number> {
    const began = Date.now();
    const ended = once(this.process, 'exit');
    this.process.kill('SIGTERM');
    await ended;
    return Date.now() - began;
  }
}

/** What the clients of the shop get. */
class Load {
  /** The replicas that get requests. */
  replicas: readonly Replica[] = [];
  readonly outcomes: Record<string, number> = {};
  private readonly underWay = new Set<Promise<void>>();
  private stopped = false;
  private sent = 0;

  constructor(private readonly queue: Queue) {}

  async run(): Promise<void> {
    while (!this.stopped) {
      this.send(`pay/${this.sent % 7}`);
      if (this.sent % 5 === 0) this.send('index');
      if (this.sent % 2 === 0) await this.queue.add('job', { parcel: this.sent % 5 });
      await sleep(25);
    }
    await Promise.all(this.underWay);
  }

  stop(): void {
    this.stopped = true;
  }

  private send(path: string): void {
    const replica = this.replicas[this.sent++ % this.replicas.length];
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

describe('a deploy of three replicas under load', () => {
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
    const queue = new Queue('jobs', { connection: { host: hostname, port: Number(port) } });
    const all: Replica[] = [];
    const start = async () => {
      const replica = new Replica(redis);
      all.push(replica);
      await until(() => replica.url !== undefined, 60_000);
      return replica;
    };
    const load = new Load(queue);
    load.replicas = await Promise.all(Array.from({ length: REPLICAS }, start));
    const running = load.run();
    const times: number[] = [];
    for (let deploy = 0; deploy < DEPLOYS; deploy++) {
      for (let n = 0; n < REPLICAS; n++) {
        const next = await start();
        await sleep(500);
        const [old, ...others] = load.replicas;
        load.replicas = [...others, next];
        await sleep(100); // what was sent has arrived; most of it is not answered yet
        times.push(await old.terminate());
      }
    }
    load.stop();
    await running;
    await until(async () => (await queue.getJobCountByTypes('waiting', 'active', 'delayed')) === 0, 30_000);
    const { completed, failed } = await queue.getJobCounts('completed', 'failed');
    times.push(...(await Promise.all(load.replicas.map((replica) => replica.terminate()))));
    await queue.close();

    const errors = all.flatMap(({ said }) => said.filter(({ what }) => what === 'error').map(({ message }) => message));
    const warnings = all.flatMap(({ said }) =>
      said.filter(({ what }) => what === 'warn').map(({ message }) => message),
    );
    console.log({ DEPLOYS, outcomes: load.outcomes, completed, failed, errors, warnings, times });
    expect(Object.keys(load.outcomes).sort()).toEqual(['indexed', 'superseded', 'written']);
    expect([failed, errors]).toEqual([0, []]);
    expect(Math.max(...times)).toBeLessThan(8_000 + 2_000 + 5_000);
    const requests = Object.values(load.outcomes).reduce((sum, count) => sum + count, 0);
    fault(
      `${DEPLOYS} deploys of three replicas under load (requests, BullMQ, cron, newest)`,
      'no request that arrived before SIGTERM fails, and no job; no error in a log',
      `${requests} requests and ${completed} jobs, 0 failed; a replica ends within ${ms(Math.max(...times))}`,
    );
  }, 900_000);
});
