// Run by matrix/shutdown.test.ts, and by hand: REDIS_URL=redis://... node kinds.mjs [kind]
// One application for each kind of work. Each is closed in the middle of its work, and prints how everything ended.
import 'reflect-metadata';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { BullModule, getQueueToken, Processor, WorkerHost } from '@nestjs/bullmq';
import { Controller, Get, Injectable, Logger, Module, Param, Sse } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { ClientProxyFactory, MessagePattern, Transport } from '@nestjs/microservices';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Cron, ScheduleModule } from '@nestjs/schedule';
import {
  createLockService,
  DistributedLock,
  Leader,
  LockExceptionFilter,
  LockService,
  RedisLockModule,
} from 'nestjs-redis-lock';
import { interval, map } from 'rxjs';

const url = process.env.REDIS_URL;
const redis = new URL(url);
const connection = { host: redis.hostname, port: Number(redis.port) };
const run = `${process.pid}-${Date.now()}`;

/** Applies decorators, which JavaScript does not have. */
function method(type, name, ...decorators) {
  const described = Object.getOwnPropertyDescriptor(type.prototype, name);
  Object.defineProperty(type.prototype, name, Reflect.decorate(decorators, type.prototype, name, described));
}

/** What the application has logged as an error. */
const errors = [];
const logger = {
  log() {},
  warn() {},
  debug() {},
  verbose() {},
  error: (...words) => errors.push(words.map((word) => word?.message ?? String(word)).join(' ')),
  fatal: (...words) => errors.push(words.join(' ')),
};
Logger.overrideLogger(logger);

const settings = { connection: url, keyPrefix: `shutdown:${run}:`, shutdownTimeout: 3_000, waitTime: '1m' };
const locksModule = (more) => RedisLockModule.forRoot({ ...settings, ...more });
/** Another pod. */
const otherPod = (more) => createLockService({ ...settings, logger: { warn() {}, error() {} }, ...more });

/** Counts how promises ended, by their values, or by the names of their errors. */
async function tally(promises) {
  const ended = {};
  for (const result of await Promise.all(promises.map((promise) => promise.then(String, ({ name }) => name))))
    ended[result] = (ended[result] ?? 0) + 1;
  return ended;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function closed(app) {
  const began = Date.now();
  await app.close();
  return Math.round((Date.now() - began) / 100) / 10;
}

// ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

function shop(more) {
  const counts = { charged: 0, written: 0 };
  let arrived = 0;
  /** Waits until so many requests have arrived. */
  const arrival = async (count) => {
    while (arrived < count) await sleep(10);
  };
  class Orders {
    async write() {
      counts.written++;
      await sleep(50);
      return 'written';
    }
  }
  method(Orders, 'write', DistributedLock('order:#<args[0]>'));
  Injectable()(Orders);
  class Shop {
    constructor(orders) {
      this.orders = orders;
    }
    async pay(id) {
      arrived++;
      counts.charged++;
      await sleep(400);
      return this.orders.write(id);
    }
    write(id) {
      arrived++;
      return this.orders.write(id);
    }
    ticks() {
      arrived++;
      return interval(100).pipe(map((n) => ({ data: `tick ${n}` })));
    }
  }
  method(Shop, 'pay', Get('pay/:id'));
  method(Shop, 'write', Get('write/:id'));
  method(Shop, 'ticks', Sse('ticks'));
  Param('id')(Shop.prototype, 'pay', 0);
  Param('id')(Shop.prototype, 'write', 0);
  Reflect.defineMetadata('design:paramtypes', [Orders], Shop);
  Controller()(Shop);
  class App {}
  Module({
    imports: [locksModule(more)],
    controllers: [Shop],
    providers: [Orders, { provide: APP_FILTER, useClass: LockExceptionFilter }],
  })(App);
  return { App, counts, arrival };
}

async function listen(App, platform) {
  const adapter = platform === 'express' ? new ExpressAdapter() : new FastifyAdapter({ keepAliveTimeout: 1_000 });
  const app = await NestFactory.create(App, adapter, { logger });
  await app.listen(0, '127.0.0.1');
  return { app, at: await app.getUrl() };
}

async function status(address) {
  const answer = await fetch(address);
  await answer.text();
  return answer.status;
}

const requests = (platform) => async () => {
  const { App, counts, arrival } = shop();
  const { app, at } = await listen(App, platform);
  const answers = tally(Array.from({ length: 10 }, (_, id) => status(`${at}/pay/${id % 5}`)));
  await arrival(10);
  const took = await closed(app);
  return { ended: await answers, ...counts, took };
};

/** Clients that keep their connections, or read events without end, beside a request that needs a lock. */
const keptAlive = (platform) => async () => {
  const { App, counts, arrival } = shop();
  const { app, at } = await listen(App, platform);
  for (let n = 0; n < 3; n++) await status(`${at}/write/${n}`);
  const reader = new AbortController();
  const events = fetch(`${at}/ticks`, { signal: reader.signal }).then(async (answer) => {
    for await (const _ of answer.body);
  });
  const answer = tally([status(`${at}/pay/1`)]);
  await arrival(5);
  const closing = closed(app);
  setTimeout(() => reader.abort(), 1_500);
  await events.catch(() => {});
  return { ended: await answer, written: counts.written - 3, took: await closing };
};

/** One request waits for a lock that another pod gives back in time, and one for a lock that it does not give back. */
const behindAnotherPod = (platform) => async () => {
  const { App, arrival } = shop({ shutdownTimeout: 2_000 });
  const pod = otherPod();
  const leases = [await pod.acquire('order:soon'), await pod.acquire('order:late')];
  const { app, at } = await listen(App, platform);
  const [soon, late] = ['soon', 'late'].map((id) => tally([status(`${at}/write/${id}`)]));
  await arrival(2);
  const closing = closed(app);
  await sleep(700);
  await leases[0].release();
  const ended = { 'given back': await soon, 'not given back': await late };
  const took = await closing;
  await leases[1].release();
  await pod.close();
  return { ended, took };
};

// ── Workers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

async function worker({ lasts, more, wait, stops }, add) {
  const name = `jobs-${run}`;
  class Jobs extends WorkerHost {
    async beforeApplicationShutdown() {
      if (stops) await this.worker.close();
    }
    async process(job) {
      return this.work(job.data.order, job.data.lasts);
    }
    async work(order, time) {
      if (time) await sleep(time);
      return order;
    }
  }
  method(Jobs, 'work', DistributedLock('job:#<args[0]>'));
  Processor(name, { concurrency: 1 })(Jobs);
  class App {}
  Module({
    imports: [BullModule.forRoot({ connection }), BullModule.registerQueue({ name }), locksModule(more)],
    providers: [Jobs],
  })(App);
  const app = await NestFactory.createApplicationContext(App, { logger });
  const queue = app.get(getQueueToken(name));
  await queue.add('first', { order: 0, lasts });
  await add?.(queue);
  await sleep(wait);
  const { Queue } = await import('bullmq');
  const observed = new Queue(name, { connection });
  return { app, count: () => observed.getJobCounts('completed', 'failed', 'waiting', 'active'), observed };
}

async function jobs() {
  const many = (queue) => queue.addBulk(Array.from({ length: 50 }, (_, n) => ({ name: 'more', data: { order: n } })));
  const { app, count, observed } = await worker({ lasts: 1_500, wait: 500, stops: true }, many);
  const took = await closed(app);
  const { completed, failed, waiting, active } = await count();
  await observed.obliterate({ force: true });
  await observed.close();
  return { ended: { completed, failed, waiting, active }, took };
}

/** A job that takes longer than shutdownTimeout and a lease, and another pod that wants its lock. */
async function longJob() {
  const pod = otherPod();
  const { app, count, observed } = await worker({
    lasts: 7_000,
    wait: 500,
    more: { shutdownTimeout: 1_000, watchdogTimeout: 3_000 },
  });
  let twoInside = 0;
  let ended = false;
  const closing = closed(app).finally(() => {
    ended = true;
  });
  while (!ended) {
    const { active } = await count();
    const lease = await pod.tryAcquire('job:0');
    if (lease !== null && active > 0 && (await count()).active > 0) twoInside++;
    await lease?.release();
    await sleep(100);
  }
  const { completed, failed } = await count();
  await observed.obliterate({ force: true });
  await observed.close();
  await pod.close();
  return { ended: { completed, failed, twoInside }, took: await closing };
}

async function microservice() {
  let handled = 0;
  class Handlers {
    async handle() {
      await sleep(400);
      handled++;
    }
  }
  method(Handlers, 'handle', DistributedLock('message:#<args[0]>'), MessagePattern('handle'));
  Controller()(Handlers);
  class App {}
  Module({ imports: [locksModule()], controllers: [Handlers] })(App);
  const port = await freePort();
  const options = { transport: Transport.TCP, options: { host: '127.0.0.1', port } };
  const app = await NestFactory.create(App, { logger });
  app.connectMicroservice(options);
  await app.startAllMicroservices();
  await app.init();
  const client = ClientProxyFactory.create(options);
  // NestJS cuts the connections before the answers. What counts is what the handlers do.
  for (let n = 0; n < 6; n++) client.send('handle', n % 2).subscribe({ error: () => {} });
  await sleep(200);
  const took = await closed(app);
  client.close();
  return { ended: { handled, lost: 6 - handled }, took };
}

/** A job of two replicas, of which this one waits. */
async function cron() {
  const pod = otherPod();
  const lease = await pod.acquire('report');
  let runs = 0;
  class Reports {
    async build() {
      runs++;
    }
  }
  method(Reports, 'build', Cron('* * * * * *'), DistributedLock({ key: 'report', onBusy: 'skip', waitTime: '1m' }));
  Injectable()(Reports);
  class App {}
  Module({ imports: [ScheduleModule.forRoot(), locksModule()], providers: [Reports] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger });
  await sleep(1_500);
  const took = await closed(app);
  await lease.release();
  await pod.close();
  return { ended: { runs }, took };
}

// ── Calls of the application itself ──────────────────────────────────────────────────────────────────────────────────

async function context(work, more) {
  class App {}
  Module({ imports: [locksModule(more)] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger });
  const calls = tally(await work(app.get(LockService)));
  await sleep(150);
  const took = await closed(app);
  return { ended: await calls, took };
}

/** A queue in the process: the next task begins when the last one has ended. */
const queue = () =>
  context((locks) => {
    const tasks = ['a', 'a', 'b', 'c', 'a'];
    const results = tasks.map(deferred);
    void (async () => {
      for (const [index, name] of tasks.entries())
        await locks.withLock(name, () => sleep(100)).then(() => results[index].resolve('done'), results[index].reject);
    })();
    return results.map(({ promise }) => promise);
  });

function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

const semaphores = () =>
  context(async (locks) => {
    const semaphore = locks.getSemaphore('mail', { permits: 2 });
    return Array.from({ length: 6 }, () => semaphore.withPermit(() => sleep(300, 'sent')));
  });

const flights = () =>
  context(async (locks) => Array.from({ length: 4 }, () => locks.singleFlight('rates', () => sleep(500, 'rates'))));

/** The lock is held by another pod for half a second more, and three calls want to be the last one. */
async function newest() {
  const pod = otherPod();
  const lease = await pod.acquire('index');
  setTimeout(() => lease.release(), 700);
  const result = await context(async (locks) =>
    Array.from({ length: 3 }, () => locks.withLock('index', { newest: true }, async () => 'indexed')),
  );
  await pod.close();
  return result;
}

/** A leader of this pod, and one of another pod that takes over. */
async function leaders() {
  const pod = otherPod();
  class Relay {
    async relay(lease) {
      await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
      await sleep(200);
    }
  }
  method(Relay, 'relay', Leader('relay'));
  Injectable()(Relay);
  class App {}
  Module({ imports: [locksModule()], providers: [Relay] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger });
  await sleep(300);
  const elected = new Promise((resolve) => {
    const leadership = pod.lead('relay', {
      onElected: async () => resolve(leadership),
    });
  });
  await sleep(200);
  const began = Date.now();
  const closing = closed(app);
  const leadership = await elected;
  const after = Math.round((Date.now() - began) / 100) / 10;
  await leadership.stop();
  await pod.close();
  return { ended: { 'taken over': after < 3 }, took: await closing };
}

async function withoutNest() {
  const locks = otherPod();
  const pod = otherPod();
  const busy = await pod.acquire('busy');
  const own = tally(Array.from({ length: 3 }, () => locks.withLock('own', () => sleep(300, 'done'))));
  const behind = tally([locks.withLock('busy', async () => 'done')]);
  await sleep(100);
  const took = await closed(locks);
  const ended = { own: await own, 'behind another process': await behind };
  await busy.release();
  await pod.close();
  return { ended, took };
}

async function idle() {
  return context(() => []);
}

const KINDS = {
  'requests, Express': requests('express'),
  'requests, Fastify': requests('fastify'),
  'kept-alive clients and SSE, Express': keptAlive('express'),
  'kept-alive clients and SSE, Fastify': keptAlive('fastify'),
  'a request behind another pod, Express': behindAnotherPod('express'),
  'a request behind another pod, Fastify': behindAnotherPod('fastify'),
  'jobs of BullMQ': jobs,
  'a long job of BullMQ': longJob,
  microservice,
  cron,
  'a queue in the process': queue,
  semaphores,
  flights,
  newest,
  leaders,
  'without Nest': withoutNest,
  idle,
};

const results = {};
for (const [kind, work] of Object.entries(KINDS)) {
  if (process.argv[2] !== undefined && kind !== process.argv[2]) continue;
  errors.length = 0;
  const limit = sleep(20_000).then(() => ({ hangs: true }));
  results[kind] = await Promise.race([work().catch((error) => ({ failed: String(error.stack) })), limit]);
  results[kind].errors = errors.length === 0 ? 0 : `${errors.length}, such as: ${errors[0].slice(0, 160)}`;
  if (process.env.VERBOSE) console.error(kind, JSON.stringify(results[kind]));
}
console.log(JSON.stringify(results));
process.exit(0);
