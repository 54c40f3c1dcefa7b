// 10,000 callers on 8 processes want the result of one slow function: a single flight beside the same made by hand.
//   npm run bench -- flights                       three rounds, a minute
//   npm run bench -- flights --callers 1000 --processes 4 --time 500 --rounds 5
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Redis } from 'ioredis';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { ServerMeter } from '../measure/server-meter.js';
import { median, sum } from '../measure/statistics.js';
import { watchStolenTime } from '../measure/stolen-time.js';
import { count, figure, percent } from '../report/figures.js';
import { printed } from '../report/table.js';
import type { Report, Way } from './callers.js';

const WAYS: readonly Way[] = ['singleFlight', 'by hand', 'by hand, one caller a process'];
const CHANNELS = 'redisson_lock__channel*';
const [LOADER, PROGRAM] = ['../../support/jest/typescript-loader.mjs', 'callers.ts'].map((file) =>
  fileURLToPath(new URL(file, import.meta.url)),
);

interface Round {
  readonly runs: number;
  readonly commands: number;
  readonly messages: number;
  /** Milliseconds from the end of the function to the moment when the last caller had its result. */
  readonly last: number;
  /** CPU time in milliseconds. */
  readonly clients: number;
  readonly server: number;
}

const { values } = parseArgs({
  options: {
    callers: { type: 'string', default: '10000' },
    processes: { type: 'string', default: '8' },
    time: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '3' },
  },
});
const [callers, processes, time, rounds] = [values.callers, values.processes, values.time, values.rounds].map(Number);
if (![callers, processes, time, rounds].every((value) => Number.isInteger(value) && value > 0))
  throw new Error('--callers, --processes, --time and --rounds are whole numbers above 0');

/** The processes of one way. */
class Crowd {
  private constructor(
    readonly way: Way,
    private readonly members: readonly ChildProcess[],
  ) {}

  static start(way: Way, url: string): Crowd {
    const args = ['--import', LOADER, PROGRAM, url, way, String(Math.ceil(callers / processes))];
    const start = () => spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    return new Crowd(way, Array.from({ length: processes }, start));
  }

  /** All callers of all processes ask for the result of this name. */
  ask(name: string): Promise<Report[]> {
    return Promise.all(
      this.members.map(async ({ stdin, stdout }) => {
        const lines = createInterface({ input: stdout! });
        const answered = once(lines, 'line');
        stdin!.write(`${name} ${time}\n`);
        const [line] = await answered;
        lines.close();
        return JSON.parse(line) as Report;
      }),
    );
  }

  async end(): Promise<void> {
    for (const { stdin } of this.members) stdin!.end();
    await Promise.all(this.members.map((member) => member.exitCode ?? once(member, 'exit')));
  }
}

/** Redis counts no messages: each PUBLISH made one for each process that listened while the function ran. */
async function messagesOf(redis: Redis, before: number, listeners: number): Promise<number> {
  return ((await published(redis)) - before) * listeners;
}

async function published(redis: Redis): Promise<number> {
  return Number(/^cmdstat_publish:calls=(\d+)/m.exec(await redis.info('commandstats'))?.[1] ?? 0);
}

async function listenersOf(redis: Redis): Promise<number> {
  const channels = (await redis.pubsub('CHANNELS', CHANNELS)) as string[];
  return channels.length === 0 ? 0 : Number((await redis.pubsub('NUMSUB', ...channels))[1]);
}

async function play(crowd: Crowd, name: string, redis: Redis): Promise<Round> {
  const before = await published(redis);
  let listeners = 0;
  const looking = setTimeout(async () => {
    listeners = await listenersOf(redis);
  }, time * 0.8);
  const meter = new ServerMeter(redis);
  const { result: reports, load } = await meter.during(() => crowd.ask(name));
  clearTimeout(looking);
  const ended = reports.flatMap((report) => report.ended);
  return {
    runs: ended.length,
    commands: sum(reports.map(({ commands }) => commands)),
    messages: await messagesOf(redis, before, listeners),
    last: Math.max(...reports.map(({ last }) => last)) - Math.max(...ended),
    clients: sum(reports.map(({ cpu }) => cpu)),
    server: load.cpu / 1_000,
  };
}

async function measure(server: RedisServer): Promise<Map<Way, Round[]>> {
  const redis = server.client();
  const played = new Map<Way, Round[]>(WAYS.map((way) => [way, []]));
  for (const way of WAYS) {
    const crowd = Crowd.start(way, server.url);
    await crowd.ask('first'); // until all processes have started, and are warm
    for (let round = 0; round < rounds; round++) played.get(way)!.push(await play(crowd, `round-${round}`, redis));
    await crowd.end();
    await redis.flushall();
  }
  return played;
}

// The handles of the server do not keep this process alive.
const alive = setInterval(() => {}, 1_000);
const stolen = watchStolenTime();
const server = await startRedis();
const played = await measure(server);
await server.stop();
clearInterval(alive);

console.log(
  printed({
    title: `${count(callers)} callers on ${processes} processes want the result of a function that takes ${time} ms`,
    columns: ['', 'runs', 'commands', 'messages', 'last result after', 'CPU of clients', 'CPU of Redis'],
    rows: WAYS.map((way) => {
      const of = (each: (round: Round) => number) => median(played.get(way)!.map(each));
      return [
        way,
        count(of(({ runs }) => runs)),
        count(of(({ commands }) => commands)),
        count(of(({ messages }) => messages)),
        `${figure(of(({ last }) => last))} ms`,
        `${count(of(({ clients }) => clients))} ms`,
        `${figure(of(({ server }) => server))} ms`,
      ];
    }),
    notes: [
      `Medians of ${rounds} rounds. By hand: GET, SET NX, and a poll every 50 ms.`,
      'The time of the last result counts from the end of the function. Messages are what Redis delivers.',
      `${percent(stolen())} of the CPU time of this machine went to others.`,
    ],
  }),
);
process.exit(0);
