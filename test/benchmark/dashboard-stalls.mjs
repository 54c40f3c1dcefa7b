// How long the dashboard blocks the event loop of its application without a pause, with many viewers who search, and
// with many records of clients. `CPU` is the most CPU time used between two turns of the event loop. Unlike the other
// figures, it is the same on a busy machine.
//   npm run bench -- stalls [ <locks> <viewers> <records> <seconds>]    needs redis-server
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { freePort, load, serve } from './dashboard-processes.mjs';

const [locks = 5_000, viewers = 100, records = 5_000, seconds = 15] = process.argv.slice(2).map(Number);
/** Another build of the library: LIBRARY=<folder with esm>. */
const LIBRARY = pathToFileURL(`${process.env.LIBRARY ?? fileURLToPath(new URL('../../dist', import.meta.url))}/esm/`);

const ROLES = { load: () => load(LIBRARY, locks, 200), serve: serveWatched, look, measure };
await ROLES[process.env.STALLS_ROLE ?? 'measure']();

/** A NestJS application with the dashboard, which reports how long its event loop was busy. */
async function serveWatched() {
  const url = await serve(LIBRARY);
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  let busiest = 0;
  let last = process.cpuUsage();
  setInterval(() => {
    const { user, system } = process.cpuUsage(last);
    last = process.cpuUsage();
    busiest = Math.max(busiest, (user + system) / 1e3);
  }, 1);
  process.on('message', (message) => {
    if (message === 'reset') {
      busiest = 0;
      return delays.reset();
    }
    process.send({
      busiest,
      max: delays.max / 1e6,
      p99: delays.percentile(99) / 1e6,
      p999: delays.percentile(99.9) / 1e6,
    });
  });
  process.send(url);
}

/** The viewers: each one reads a stream. QUERIES is a JSON list. */
async function look() {
  let bytes = 0;
  for (const query of JSON.parse(process.env.QUERIES))
    get(`${process.env.PAGE}/locks/api/stream?${query}`, (response) =>
      response.on('data', (chunk) => {
        bytes += chunk.length;
      }),
    );
  process.on('message', () => process.send(bytes));
  await sleep(1_000);
  process.send('ready');
}

/** Writes records as this many processes would, each with 5 holds and 2 waits. */
async function writeRecords(url, count) {
  const { Redis } = await import('ioredis');
  const redis = new Redis(url);
  const key = (n) => `lock:order:${n % locks}`;
  const [seconds, micros] = await redis.time();
  const now = Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  for (let n = 0; n < count; n++) {
    const clientId = `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
    const entry = (i) => ({ key: key(n * 7 + i), type: 'reentrant', group: 'OrdersService.pay', method: '' });
    const holds = Array.from({ length: 5 }, (_, i) => ({ ...entry(i), owner: `${clientId}:${i + 1}`, heldFor: 1_000 }));
    const waits = Array.from({ length: 2 }, (_, i) => ({ ...entry(i + 5), waiters: 1, waitedFor: 500 }));
    const fields = {
      application: 'shop',
      host: `web-${n}`,
      pid: 1_000 + n,
      version: '1.0.0',
      since: now,
      held: 5,
      waiting: 2,
      longestWait: 500,
      at: now,
      holds: JSON.stringify(holds),
      waits: JSON.stringify(waits),
    };
    void redis.hset(`nestjs_redis_lock_client:{${clientId}}`, fields);
    await (n % 500 === 499 ? redis.zadd(...listed(clientId)) : void redis.zadd(...listed(clientId)));
  }
  await redis.quit();

  function listed(clientId) {
    return ['nestjs_redis_lock_clients', now + 3_600_000, clientId];
  }
}

async function measure() {
  console.log(
    `${locks} locks, Node.js ${process.version}: the longest times, in ms, in which the event loop stood still`,
  );
  const search = (n) => `search=${encodeURIComponent(`order:${n}`)}`;
  const list = Array.from({ length: viewers }, (_, n) => n);
  await scenario(`${viewers} viewers, each with another search`, list.map(search), 0);
  await scenario(
    `${viewers} viewers with the same search`,
    list.map(() => search(1)),
    0,
  );
  await scenario('1 viewer', [''], 0);
  await scenario(`1 viewer, ${records} records of clients`, [''], records);
}

async function scenario(title, queries, count) {
  const port = await freePort();
  const children = [spawn('redis-server', ['--port', port, '--bind', '127.0.0.1', '--save', ''], { stdio: 'ignore' })];
  try {
    await sleep(1_000);
    const env = { ...process.env, REDIS: `redis://127.0.0.1:${port}`, QUERIES: JSON.stringify(queries) };
    const start = async (role, more = {}) => {
      const child = spawn(process.execPath, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
        env: { ...env, ...more, STALLS_ROLE: role },
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      children.push(child);
      const [message] = await once(child, 'message');
      return { child, message };
    };
    await start('load');
    await writeRecords(env.REDIS, count);
    const { child: server, message: url } = await start('serve');
    const { child: eyes } = await start('look', { PAGE: url });
    await sleep(5_000);
    server.send('reset');
    await sleep(seconds * 1_000);
    const [{ busiest, max, p99, p999 }, bytes] = await Promise.all([ask(server), ask(eyes)]);
    const { summary } = await (await fetch(`${url}/locks/api/board`)).json();
    const figures = [`CPU ${ms(busiest)}`, `max ${ms(max)}`, `p99.9 ${ms(p999)}`, `p99 ${ms(p99)}`].join('  ');
    console.log(
      `${title.padEnd(42)} ${figures}  (a snapshot: ${summary.took} ms, ${summary.held} locks, ${summary.clients} clients, ${Math.round(bytes / 1_000)} kB sent)`,
    );
  } finally {
    for (const child of children.reverse()) child.kill();
  }
}

async function ask(child) {
  child.send('tell');
  const [answer] = await once(child, 'message');
  return answer;
}

function ms(value) {
  return value.toFixed(0).padStart(4);
}
