// A process that both imports and requires the library. The code that uses NestJS is loaded twice, the core once.
import 'reflect-metadata';
import { createRequire } from 'node:module';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import * as imported from 'nestjs-redis-lock';

const require = createRequire(import.meta.url);
const required = require('nestjs-redis-lock');

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

/** What every entry exports, by import and by require. */
const manifest = require('nestjs-redis-lock/package.json');
const loaded = [];
for (const entry of Object.keys(manifest.exports).filter((path) => !path.endsWith('.json'))) {
  const name = `nestjs-redis-lock${entry.slice(1)}`;
  loaded.push({ kind: 'esm', name, exported: await import(name) }, { kind: 'cjs', name, exported: require(name) });
}
/** What exists only once, however it is loaded. */
const shared = ['core', 'backend'].flatMap((name) => Object.keys(require(`nestjs-redis-lock/${name}`)));
const twice = loaded.flatMap(({ kind, name, exported }) =>
  loaded.flatMap((other) =>
    Object.keys(exported)
      .filter((key) => key !== 'default' && key !== 'module.exports' && key in other.exported)
      .filter((key) => kind === other.kind || shared.includes(key))
      .filter((key) => exported[key] !== other.exported[key])
      .map((key) => `${key} of ${name} (${kind}) and of ${other.name} (${other.kind})`),
  ),
);
const renamed = Object.entries(imported).filter(([name, { prototype, name: own }]) => prototype && own !== name);

process.stdout.write(
  JSON.stringify({
    twoModules: imported.RedisLockModule !== required.RedisLockModule,
    loaded: loaded.length >= 16,
    twice,
    renamed,
    oneService: imported.LockService === required.LockService,
    busy: [imported, required].map(({ LockBusyError }) => busy instanceof LockBusyError),
    lost: [imported, required].map(({ LockLostError }) => busy instanceof LockLostError),
    decorated,
  }),
);
