// A lock that three may hold beside redis-semaphore's Semaphore and this library's permit-expirable semaphore, with bodies
// of 2 ms: one process of 64 callers, and eight of 8. Then a free lock with permits beside one without. All run in turns,
// so that a temporarily busy machine affects all of them alike.
//   npm run bench -- permits [--rounds <number>]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { startRedis } from '../support/servers/redis-server.ts';
import { jainIndex, median, sum } from './measure/statistics.ts';

const PERMITS = 3;
const BODY = 2;
/** How long a contestant runs in each round, in milliseconds. */
const TURN = 1_500;
const PAIRS = 400;

const library = new URL('../../dist/esm/core.js', import.meta.url).href;

const CONTESTANTS = {
  /** As many as may run at a time take turns in their own process. */
  async ideal() {
    let running = 0;
    const waiting = [];
    const run = async (_key, body) => {
      if (running === PERMITS) await new Promise((resolve) => waiting.push(resolve));
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
async function work(name, url, key, callers) {
  const { run, close } = await CONTESTANTS[name](url);
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
async function play(name, url, key, processes, callers) {
  const crew = Array.from({ length: processes }, () =>
    fork(new URL(import.meta.url).pathname, [name, url, key, String(callers)], { execArgv: process.execArgv }),
  );
  await Promise.all(crew.map((worker) => once(worker, 'message')));
  const results = crew.map((worker) => once(worker, 'message'));
  for (const worker of crew) worker.send('go');
  const bodies = (await Promise.all(results)).map(([count]) => count);
  await Promise.all(crew.map((worker) => worker.exitCode ?? once(worker, 'exit')));
  return bodies;
}

async function measure() {
  const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' } } });
  const server = await startRedis();
  try {
    const ideal = (PERMITS * 1_000) / BODY;
    for (const [processes, callers] of [
      [1, 64],
      [8, 8],
    ]) {
      // Processes of their own do not share the ideal's places.
      const names = Object.keys(CONTESTANTS).filter((name) => name !== 'ideal' || processes === 1);
      const rounds = Object.fromEntries(names.map((name) => [name, []]));
      for (let round = 0; round < Number(values.rounds); round++)
        for (const name of names)
          rounds[name].push(await play(name, server.url, `k:${processes}:${round}`, processes, callers));
      console.log(
        `${processes} × ${callers} callers, ${PERMITS} permits, bodies of ${BODY} ms; at most ${ideal} a second`,
      );
      for (const [name, results] of Object.entries(rounds)) {
        const perSecond = results.map((bodies) => (sum(bodies) * 1_000) / TURN);
        const fairness = median(results.map(jainIndex));
        console.log(
          `  ${name.padEnd(28)}${median(perSecond).toFixed(0).padStart(6)} a second  Jain ${fairness.toFixed(2)}`,
        );
      }
    }
    await free(server.url, 3 * Number(values.rounds));
  } finally {
    await server.stop();
  }
}

/** One caller and a free lock, in pairs. */
async function free(url, rounds) {
  const { createLockService } = await import(library);
  const locks = createLockService({ connection: url, waitTime: Infinity });
  const time = async (key, options) => {
    const start = performance.now();
    for (let n = 0; n < PAIRS; n++) await (await locks.acquire(key, options)).release();
    return ((performance.now() - start) * 1_000) / PAIRS;
  };
  const [plain, permits] = [[], []];
  for (let round = 0; round <= rounds; round++) {
    plain.push(await time('plain', {}));
    permits.push(await time('permits', { permits: PERMITS }));
  }
  const ratios = permits.slice(1).map((micros, n) => micros / plain[n + 1]);
  console.log(
    `a free lock: ${median(plain).toFixed(0)} µs without permits, ${median(permits).toFixed(0)} µs with, × ${median(ratios).toFixed(2)}`,
  );
  await locks.close();
}
