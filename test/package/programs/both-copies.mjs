// One process that both imports and requires the library: what knows NestJS is there twice, the core once.
import 'reflect-metadata';
import { createRequire } from 'node:module';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import * as imported from 'nestjs-redis-lock';

const required = createRequire(import.meta.url)('nestjs-redis-lock');

class Orders {
  async ship() {
    return imported.currentLease()?.name;
  }
}
const ship = Object.getOwnPropertyDescriptor(Orders.prototype, 'ship');
required.DistributedLock('order')(Orders.prototype, 'ship', ship);
Object.defineProperty(Orders.prototype, 'ship', ship);

class Shop {}
const memory = { backend: 'memory', logger: { warn() {}, error() {} } };
Module({ imports: [imported.RedisLockModule.forRoot(memory)], providers: [Orders] })(Shop);

const app = await NestFactory.createApplicationContext(Shop, { logger: false });
const locks = app.get(imported.LockService);
const decorated = await app.get(Orders).ship();
const lease = await locks.acquire('stock');
const busy = await locks.acquire('stock', { waitTime: 0 }).catch((error) => error);
await lease.release();
await app.close();

process.stdout.write(
  JSON.stringify({
    twoModules: imported.RedisLockModule !== required.RedisLockModule,
    oneService: imported.LockService === required.LockService,
    busy: [imported, required].map(({ LockBusyError }) => busy instanceof LockBusyError),
    lost: [imported, required].map(({ LockLostError }) => busy instanceof LockLostError),
    decorated,
  }),
);
