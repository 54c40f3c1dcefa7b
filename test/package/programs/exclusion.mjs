// Whether two callers are ever in one lock at once, if Node.js starts them in the async context of each other, or in
// none. In a plain process of any Node.js version:
//   node exclusion.mjs <way>,... <source>...
// (default: all; the first one is the first use of the library in the process)
// REDIS_URL: the Redis with the locks; without it, they are in memory. LIBRARY: what is imported instead of the
// package.
import { once } from 'node:events';
import { Agent, createServer as createHttpServer, request } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';

const { createLockService } = await import(process.env.LIBRARY ?? 'nestjs-redis-lock/core');

const CALLERS = 6;
const logger = { warn() {}, error() {} };
const connection = process.env.REDIS_URL;
const keyPrefix = `lock:${process.pid}:`; // several of these processes may use one Redis
const locks = createLockService({ ...(connection ? { connection } : { backend: 'memory' }), keyPrefix, logger });

/** The ways to lock. Each calls `body` while the lock is held. */
const WAYS = {
  lock: async (name, body) => {
    const lease = await locks.getLock(name).lock();
    await body();
    await lease.release();
  },
  tryLock: async (name, body) => {
    const lease = await locks.getLock(name).tryLock('1m');
    await body();
    await lease.release();
  },
  // One function acquires the lock, after an await, and another one releases it.
  helper: async (name, body) => {
    const open = async () => {
      await sleep(1);
      return locks.getLock(name).lock();
    };
    const lease = await open();
    await body();
    await lease.release();
  },
  run: async (name, body) => {
    const lease = await locks.getLock(name).lock();
    await lease.run(body);
    await lease.release();
  },
  multiLock: async (name, body) => {
    const lease = await locks.getMultiLock(locks.getLock(name), locks.getFairLock(`${name}:fair`)).lock();
    await lease.run(body);
    await lease.release();
  },
  withLock: (name, body) => locks.withLock(name, body),
};

/** The sources of calls. Each calls `enter` this many times, and settles when everything that it started has ended. */
const SOURCES = {
  async workerLoop(enter) {
    const jobs = [];
    for (let job = 0; job < CALLERS; job++) {
      jobs.push(enter());
      await sleep(1);
    }
    await Promise.all(jobs);
  },

  async setInterval(enter) {
    const ticks = [];
    await new Promise((resolve) => {
      const interval = setInterval(() => {
        ticks.push(enter());
        if (ticks.length < CALLERS) return;
        clearInterval(interval);
        resolve();
      }, 2);
    });
    await Promise.all(ticks);
  },

  async socket(enter) {
    const messages = [];
    const server = createServer((socket) => {
      socket.on('data', () => messages.push(enter()));
    });
    const client = connect(await listen(server));
    for (let message = 0; messages.length < CALLERS; message++) {
      client.write(`${message}`);
      const before = messages.length;
      while (messages.length === before) await sleep(1);
    }
    await Promise.all(messages);
    client.destroy();
    server.close();
  },

  async workerThread(enter) {
    const messages = [];
    const code = `for (let i = 0; i < ${CALLERS}; i++) require('node:worker_threads').parentPort.postMessage(i)`;
    const worker = new Worker(code, { eval: true });
    worker.on('message', () => messages.push(enter()));
    await once(worker, 'exit');
    while (messages.length < CALLERS) await sleep(1);
    await Promise.all(messages);
  },

  /**
   * Requests that are answered before the handler has done its work, so that the next request of the connection arrives
   * meanwhile.
   */
  async earlyAnswers(enter) {
    const handlers = [];
    const server = createHttpServer((_request, response) => {
      response.end('accepted');
      handlers.push(enter());
    });
    const port = await listen(server);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let n = 0; n < CALLERS; n++) await get(port, agent);
    await Promise.all(handlers);
    agent.destroy();
    server.close();
  },

  /** Their common origin is already waiting when the lock is used for the first time. */
  async keepAlive(enter) {
    const ready = sleep(50);
    const server = createHttpServer(async (_request, response) => {
      await ready;
      await enter();
      response.end();
    });
    const port = await listen(server);
    const agent = new Agent({ keepAlive: true, maxSockets: 3 });
    await Promise.all(Array.from({ length: CALLERS }, () => get(port, agent)));
    agent.destroy();
    server.close();
  },

  async http2(enter) {
    const server = createHttp2Server();
    const ready = sleep(50);
    server.on('stream', async (stream) => {
      await ready;
      await enter();
      stream.respond();
      stream.end();
    });
    const session = connectHttp2(`http://127.0.0.1:${await listen(server)}`);
    const streams = Array.from({ length: CALLERS }, () => session.request().resume());
    await Promise.all(streams.map((stream) => once(stream, 'close')));
    session.close();
    server.close();
  },

  /**
   * A timer that a body has started continues after it. At first its ticks are children of the body's scope, later they
   * are independent.
   */
  async leakedInterval(enter) {
    const ticks = [];
    let over;
    await locks.withLock('job', async () => {
      over = new Promise((resolve) => {
        const interval = setInterval(() => {
          ticks.push(enter());
          if (ticks.length < CALLERS) return;
          clearInterval(interval);
          resolve();
        }, 4);
      });
      await sleep(10);
    });
    await over;
    await Promise.all(ticks);
  },
};

async function listen(server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}

async function get(port, agent) {
  const call = request({ host: '127.0.0.1', port, agent });
  call.end();
  const [response] = await once(call, 'response');
  response.resume();
  await once(response, 'end');
}

/** Sends callers from `source` into one lock. */
async function measure(way, source) {
  let [inside, most, served] = [0, 0, 0];
  await SOURCES[source](() =>
    WAYS[way]('job', async () => {
      most = Math.max(most, ++inside);
      await sleep(5);
      inside--;
      served++;
    }),
  );
  return { most, served, locked: await locks.isLocked('job') };
}

const [ways = Object.keys(WAYS).join(), ...sources] = process.argv.slice(2);
const results = {};
for (const way of ways.split(',')) {
  results[way] = {};
  for (const source of sources.length === 0 ? Object.keys(SOURCES) : sources)
    results[way][source] = await measure(way, source);
}
await locks.close();
process.stdout.write(JSON.stringify(results));
