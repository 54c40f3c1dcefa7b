// A replica of an application that moves from another library to this one:
//   node moving-replica.mjs redlock old|bridge|new <file>
// It works on two orders for as long as it lives, and appends a line to the file when a body starts and ends:
// `<pid> <order> in|out <microseconds>`. SIGTERM ends it after its bodies. SIGUSR2 kills it inside the next body.
import 'reflect-metadata';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import murlock from 'murlock';
import { createLockService, DistributedLock, RedisLockModule } from 'nestjs-redis-lock';
import { IoredisAdapter, RedlockModule, Redlock as RedlockUniversal } from 'nestjs-redlock-universal';
import { Mutex } from 'redis-semaphore';
import Redlock from 'redlock';

const [library, stage, file] = process.argv.slice(2);
const url = process.env.REDIS_URL;
const LEASE = 5_000;
/** Nobody gives up: this is about exclusion. */
const PATIENCE = 60_000;
const ours = { connection: url, watchdogTimeout: LEASE, waitTime: PATIENCE };

let ending = false;
let dying = false;
process.on('SIGTERM', () => {
  ending = true;
});
process.on('SIGUSR2', () => {
  dying = true;
});

function log(order, what) {
  appendFileSync(file, `${process.pid} ${order} ${what} ${process.hrtime.bigint() / 1_000n}\n`);
}

async function body(order) {
  log(order, 'in');
  if (dying) process.kill(process.pid, 'SIGKILL');
  await sleep(Math.random() * 8);
  log(order, 'out');
}

/** Runs the body of a class that has these decorators, the topmost first. */
async function decorated(imports, decorators) {
  class Orders {
    async pay(order) {
      await body(order);
    }
  }
  Injectable()(Orders);
  const descriptor = Object.getOwnPropertyDescriptor(Orders.prototype, 'pay');
  const result = decorators.reduceRight(
    (given, decorate) => decorate(Orders.prototype, 'pay', given) ?? given,
    descriptor,
  );
  Object.defineProperty(Orders.prototype, 'pay', result);
  class App {}
  Module({ imports, providers: [Orders] })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: ['error'] });
  const orders = app.get(Orders);
  return { pay: (order) => orders.pay(order), close: () => app.close() };
}

/** Runs the body inside a function that locks with the other library. */
function called(theirs, close) {
  if (stage === 'old') return { pay: (order) => theirs(order, () => body(order)), close };
  const locks = createLockService(ours);
  const inside = stage === 'bridge' ? (order) => theirs(order, () => body(order)) : body;
  return {
    pay: (order) => locks.withLock(order, () => inside(order)),
    close: () => Promise.all([locks.close(), close()]),
  };
}

const apps = {
  redlock() {
    const redis = new Redis(url);
    const redlock = new Redlock([redis], { retryCount: -1, retryDelay: 15, retryJitter: 10 });
    redlock.on('error', () => {}); // a busy lock, too
    return called(
      (order, run) => redlock.using([order], LEASE, run),
      () => redis.quit(),
    );
  },

  'redis-semaphore'() {
    const redis = new Redis(url);
    return called(
      async (order, run) => {
        const mutex = new Mutex(redis, order, { lockTimeout: LEASE, acquireTimeout: PATIENCE });
        await mutex.acquire();
        try {
          await run();
        } finally {
          await mutex.release();
        }
      },
      () => redis.quit(),
    );
  },

  murlock() {
    const { hostname, port } = new URL(url);
    const redisOptions = { socket: { host: hostname, port: Number(port) } };
    const theirs = murlock.MurLockModule.forRoot({
      redisOptions,
      wait: 15,
      maxAttempts: 1,
      blocking: true,
      logLevel: 'error',
    });
    return moving(theirs, murlock.MurLock(LEASE, '0'));
  },

  'nestjs-redlock-universal'() {
    const nodes = [new IoredisAdapter(new Redis(url))];
    const theirs = RedlockModule.forRoot({ nodes, defaultTtl: LEASE, retryAttempts: PATIENCE / 15, retryDelay: 15 });
    return moving(theirs, RedlockUniversal({ key: (order) => order }));
  },
};

function moving(theirModule, theirDecorator) {
  const ourModule = RedisLockModule.forRoot(ours);
  const ourDecorator = DistributedLock('#<args[0]>');
  if (stage === 'old') return decorated([theirModule], [theirDecorator]);
  if (stage === 'new') return decorated([ourModule], [ourDecorator]);
  return decorated([ourModule, theirModule], [ourDecorator, theirDecorator]);
}

const app = await apps[library]();
console.log('started');
await Promise.all(
  ['order-1', 'order-2'].map(async (order) => {
    while (!ending) {
      await app.pay(order);
      await sleep(Math.random() * 10);
    }
  }),
);
await app.close();
process.exit(0);
