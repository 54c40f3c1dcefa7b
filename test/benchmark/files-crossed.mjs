// npm run bench -- files: the files of lib of which each call of a decorated method executes something, by V8's precise
// coverage. It indicates how long the path from the decorator to Redis is; it is not a target.
//   npm run bench -- files --list    names them
import 'reflect-metadata';
import { Session } from 'node:inspector/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createLockService, DistributedLock, RedisLockModule } from 'nestjs-redis-lock';
import { startRedis } from '../support/servers/redis-server.ts';

/** What only some of the calls execute belongs to timers: heartbeats, and the record of this client. */
const CALLS = 10;

const LIB = new URL('../../lib/', import.meta.url).href;

class Orders {
  async pay() {}
}
const pay = Object.getOwnPropertyDescriptor(Orders.prototype, 'pay');
DistributedLock('order:#<args[0]>')(Orders.prototype, 'pay', pay);
Object.defineProperty(Orders.prototype, 'pay', pay);
Injectable()(Orders);

const server = await startRedis();
const connection = `redis://127.0.0.1:${server.port}`;
class AppModule {}
Module({ imports: [RedisLockModule.forRoot({ connection })], providers: [Orders] })(AppModule);
const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const orders = app.get(Orders);
const other = createLockService({ connection });

const session = new Session();
session.connect();
await session.post('Profiler.enable');

/** The files of lib in which something was executed since the last call. */
async function executed() {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return result
    .filter(({ url, functions }) => url.startsWith(LIB) && functions.some(({ ranges }) => ranges[0].count > 0))
    .map(({ url }) => fileURLToPath(url).slice(fileURLToPath(LIB).length))
    .sort();
}

const calls = {
  uncontended: () => orders.pay('1'),
  async contended() {
    const lease = await other.acquire('order:2');
    const call = orders.pay('2');
    await pause(200);
    await lease.release();
    await call;
  },
};

try {
  for (const call of Object.values(calls)) await call(); // connections, scripts, subscriptions
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  for (const [name, call] of Object.entries(calls)) {
    let files;
    for (let n = 0; n < CALLS; n++) {
      await pause(500);
      await executed();
      await call();
      const crossed = new Set(await executed());
      files = files?.filter((file) => crossed.has(file)) ?? [...crossed];
    }
    console.log(`${name}: ${files.length} files`);
    if (process.argv.includes('--list')) console.log(files.map((file) => `  ${file}`).join('\n'));
  }
} finally {
  await other.close();
  await app.close();
  await server.stop?.();
}
process.exit();
