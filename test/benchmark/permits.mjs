// A lock that three may hold beside redis-semaphore's Semaphore and this library's permit-expirable semaphore, with bodies
// of 2 ms: one process of 64 callers, and eight of 8. Then a free lock with permits beside one without. The contestants
// take turns, and each round begins with another one, so that a temporarily busy machine affects all of them alike.
//   npm run bench -- permits [--rounds <number>]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { startRedis } from '../support/servers/redis-server.ts';
import { jainIndex, median, medianInterval, sum } from './measure/statistics.ts';
import { watchStolenTime } from './measure/stolen-time.ts';
import { machine } from './report/machine.ts';
import { printed, printedBar } from './report/table.ts';

const PERMITS = 3;
const BODY = 2;
/** How long a contestant runs in each round, in milliseconds. */
const TURN = 1_500;
/** How many pairs of a free lock with and without permits are measured in each round, and how often each acquires. */
const PAIRS = 10;
const ACQUISITIONS = 400;

const CREWS = [
  { processes: 1, callers: 64, share: 0.9, aheadOf: 'redis-semaphore' },
  { processes: 8, callers: 8, share: 0.75, jain: 0.95 },
];
const FREE_AT_MOST = 1.15;

const library = new URL('../../dist/esm/core.js', import.meta.url).href;

const CONTESTANTS = {
  /**
   * Bodies follow each other without any coordination between processes: the callers of one process take turns, and
   * of several processes only three run, with one place each.
   */
  async ideal(_url, places) {
    let running = 0;
    const waiting = [];
    const run = async (_key, body) => {
      if (running === places) await new Promise((resolve) => waiting.push(resolve));
      else running++;
      await body();
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    };
    return { run, close: async () => {} };
  },
  async permits(url) {
    const { createLockService } = await import(library);
    const locks = createLockService({ connection: url, waitTime: Infinity });
    const run = (key, body) => locks.withLock(key, { permits: PERMITS }, body);
    return { run, close: () => locks.close() };
  },
  async 'permit-expirable semaphore'(url) {
    const { createLockService } = await import(library);
    const locks = createLockService({ connection: url, waitTime: Infinity });
    const run = async (key, body) => {
      const semaphore = locks.getPermitExpirableSemaphore(`s:${key}`, { permits: PERMITS });
      const permit = await semaphore.acquire();
      try {
        await body();
      } finally {
        await semaphore.release(permit);
      }
    };
    return { run, close: () => locks.close() };
  },
  async 'redis-semaphore'(url) {
    const { Semaphore } = await import('redis-semaphore');
    const redis = new Redis(url);
    const run = async (key, body) => {
      const options = { acquireTimeout: 600_000, lockTimeout: 30_000, retryInterval: 10 };
      const semaphore = new Semaphore(redis, `r:${key}`, PERMITS, options);
      await semaphore.acquire();
      try {
        await body();
      } finally {
        await semaphore.release();
      }
    };
    return { run, close: () => redis.quit() };
  },
};

if (process.send !== undefined) await work(...process.argv.slice(2));
else await measure();

/** A process of `callers` callers, which runs from the first message to the second one. */
async function work(name, url, key, callers, places) {
  const { run, close } = await CONTESTANTS[name](url, Number(places));
  await run('another', async () => {});
  process.send('ready');
  await once(process, 'message');
  let running = true;
  let bodies = 0;
  const body = async () => {
    await sleep(BODY);
    if (running) bodies++;
  };
  const loop = async () => {
    while (running) await run(key, body);
  };
  const loops = Array.from({ length: Number(callers) }, loop);
  await sleep(TURN);
  running = false;
  await Promise.all(loops);
  process.send(bodies);
  await close();
  process.disconnect();
}

/** The bodies of each process. */
async function play(name, url, key, { processes, callers }) {
  const started = name === 'ideal' ? Math.min(processes, PERMITS) : processes;
  const args = [name, url, key, callers, PERMITS / started].map(String);
  const crew = Array.from({ length: started }, () =>
    fork(new URL(import.meta.url).pathname, args, { execArgv: process.execArgv }),
  );
  await Promise.all(crew.map((worker) => once(worker, 'message')));
  const results = crew.map((worker) => once(worker, 'message'));
  for (const worker of crew) worker.send('go');
  const bodies = (await Promise.all(results)).map(([count]) => count);
  await Promise.all(crew.map((worker) => worker.exitCode ?? once(worker, 'exit')));
  return bodies;
}

async function measure() {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '4' } } });
  const rounds = Number(values.rounds);
  const server = await startRedis();
  const redis = new Redis(server.url);
  const stolen = watchStolenTime();
  try {
    const [before] = loadavg();
    const bars = [];
    for (const crew of CREWS) bars.push(...(await contest(server.url, crew, rounds)));
    bars.push(await free(server.url, rounds * PAIRS));
    console.log(`${bars.map(printedBar).join('\n')}\n`);
    const lost = `${(stolen() * 100).toFixed(1)} % of the CPU time went to other machines`;
    console.log(`${await machine(redis)}; load ${before.toFixed(1)} at the start; ${lost}.`);
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

/** Prints a table, and returns what was aimed at. */
async function contest(url, crew, rounds) {
  const names = Object.keys(CONTESTANTS);
  const bodies = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++)
    for (const name of rotated(names, round))
      bodies[name].push(await play(name, url, `k:${crew.processes}:${round}`, crew));
  const totals = (name) => bodies[name].map(sum);
  const ratios = (name, other) => totals(name).map((total, round) => total / totals(other)[round]);
  const jain = (name) => median(bodies[name].map(jainIndex));
  const { processes, callers, share, aheadOf, jain: fair } = crew;
  const rows = names.map((name) => [
    name,
    ((median(totals(name)) * 1_000) / TURN).toFixed(0),
    spread(ratios(name, 'ideal')),
    name === 'ideal' || processes === 1 ? '–' : jain(name).toFixed(3),
  ]);
  const columns = ['', 'bodies a second', '÷ ideal', 'Jain of processes'];
  const title = `${count(processes, 'process', 'processes')} of ${callers} callers, ${PERMITS} permits, bodies of ${BODY} ms`;
  const limit = (PERMITS * 1_000) / BODY;
  const notes = [
    `Medians of ${count(rounds, 'round', 'rounds')}; ÷ ideal: of the ratios of the rounds, with the lowest and the highest.`,
    `Timers that were exact would allow ${limit} bodies a second.`,
    '',
  ];
  console.log(printed({ title, columns, rows, notes }));
  const at = `${processes} × ${callers}`;
  const bar = (promise, ratio, least) => ({ promise, measured: ratio.toFixed(3), met: ratio >= least });
  const bars = [bar(`${at}: permits ≥ ${share} × ideal`, median(ratios('permits', 'ideal')), share)];
  if (aheadOf !== undefined)
    bars.push(bar(`${at}: permits ÷ ${aheadOf} > 1`, median(ratios('permits', aheadOf)), 1 + Number.EPSILON));
  if (fair !== undefined) bars.push(bar(`${at}: Jain of processes ≥ ${fair}`, jain('permits'), fair));
  return bars;
}

/** Prints how long one caller takes to acquire and release a free lock, with permits and without, and returns the aim. */
async function free(url, pairs) {
  const { createLockService } = await import(library);
  const locks = createLockService({ connection: url, waitTime: Infinity });
  const kinds = { plain: {}, permits: { permits: PERMITS } };
  const times = { plain: [], permits: [] };
  const time = async (kind) => {
    const start = performance.now();
    for (let n = 0; n < ACQUISITIONS; n++) await (await locks.acquire(kind, kinds[kind])).release();
    return ((performance.now() - start) * 1_000) / ACQUISITIONS;
  };
  // The first pairs run code that is not compiled yet.
  for (const kind of ['plain', 'permits', 'plain', 'permits']) await time(kind);
  for (let pair = 0; pair < pairs; pair++)
    for (const kind of rotated(['plain', 'permits'], pair)) times[kind].push(await time(kind));
  await locks.close();
  const ratios = times.permits.map((micros, pair) => micros / times.plain[pair]);
  const [least, most] = medianInterval(ratios, 0.95) ?? [Number.NaN, Number.NaN];
  const rows = Object.entries(times).map(([kind, micros]) => [kind, median(micros).toFixed(0)]);
  const measured = `${median(ratios).toFixed(3)} (${least.toFixed(3)}–${most.toFixed(3)} with 95 % confidence)`;
  const notes = [`Medians. permits ÷ plain in ${pairs} pairs: ${measured}`, ''];
  console.log(printed({ title: 'A free lock, one caller', columns: ['', 'µs'], rows, notes }));
  return { promise: `a free lock: permits ÷ plain ≤ ${FREE_AT_MOST}`, measured, met: median(ratios) <= FREE_AT_MOST };
}

/** Begins with another one in each round. */
function rotated(list, round) {
  const first = round % list.length;
  return [...list.slice(first), ...list.slice(0, first)];
}

function spread(ratios) {
  return `${median(ratios).toFixed(3)} (${Math.min(...ratios).toFixed(3)}–${Math.max(...ratios).toFixed(3)})`;
}

function count(number, one, many) {
  return `${number} ${number === 1 ? one : many}`;
}
