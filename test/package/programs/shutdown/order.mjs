// Run by matrix/shutdown.test.ts: places RedisLockModule beside other modules in many ways, and prints, for each way, how
// calls ended that the shutdown hooks of all other modules make, and in how many of their last hooks a body still ran
// that was running when the shutdown began.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Global, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { getLockServiceToken, RedisLockModule } from 'nestjs-redis-lock';

/** The lock services of the application that runs. */
let services = [];
let ended = {};
/** How many bodies run that have begun before. */
let running = 0;
let closedUnder = 0;

async function lock(where) {
  for (const locks of services) {
    const name = await locks.withLock(where, async () => 'granted').catch((error) => error.name);
    ended[name] = (ended[name] ?? 0) + 1;
  }
}

/** A module whose hooks need locks. */
function other(label, { imports = [], isGlobal = false } = {}) {
  class Worker {
    onModuleDestroy() {
      return lock(`${label} destroy`);
    }
    beforeApplicationShutdown() {
      return lock(`${label} before`);
    }
    onApplicationShutdown() {
      if (running > 0) closedUnder++;
      return lock(`${label} after`);
    }
  }
  Injectable()(Worker);
  class Other {
    onApplicationShutdown() {
      return lock(`${label} module`);
    }
  }
  Module({ imports, providers: [Worker] })(Other);
  if (isGlobal) Global()(Other);
  return Other;
}

const locks = (more) => RedisLockModule.forRoot({ backend: 'memory', shutdownTimeout: 2_000, ...more });
const isGlobal = true;
const pair = (more) => [other('global', { isGlobal }), other('local'), ...more];

const PLACES = {
  first: () => [locks(), ...pair([])],
  last: () => pair([locks()]),
  between: () => [other('one', { isGlobal }), locks(), other('two', { isGlobal })],
  'in a module': () => pair([other('around', { imports: [locks()] })]),
  'far below': () => pair([other('top', { imports: [other('middle', { imports: [locks()] })] })]),
  'in a global module': () => [
    ...pair([]),
    other('around', { imports: [locks()], isGlobal }),
    other('last', { isGlobal }),
  ],
  'beside a module far below': () => [
    locks(),
    other('top', { imports: [other('middle', { imports: [other('low', { isGlobal })] })] }),
  ],
  'isGlobal: false': () =>
    pair([other('around', { imports: [locks({ isGlobal: false })] }), other('last', { isGlobal })]),
  'isGlobal: false, first': () => [locks({ isGlobal: false }), ...pair([])],
  'named, both ends': () => [locks(), ...pair([locks({ name: 'second' })])],
  'named, in modules': () => [
    other('one', { imports: [locks({ isGlobal: false })] }),
    other('two', { imports: [locks({ name: 'second', isGlobal: false })], isGlobal }),
    other('three', { isGlobal }),
  ],
  forRootAsync: () =>
    pair([RedisLockModule.forRootAsync({ useFactory: async () => ({ backend: 'memory', shutdownTimeout: 2_000 }) })]),
};

const results = {};
for (const [place, imports] of Object.entries(PLACES)) {
  class App {}
  Module({ imports: imports() })(App);
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  [ended, running, closedUnder] = [{}, 0, 0];
  services = [undefined, 'second'].flatMap((name) => {
    try {
      return [app.get(getLockServiceToken(name), { strict: false })];
    } catch {
      return [];
    }
  });
  for (const locks of services) {
    running++;
    void locks.withLock('running', () => sleep(50)).then(() => running--);
  }
  await app.close();
  const after = await services[0].withLock('late', async () => 'granted').catch((error) => error.name);
  results[place] = { services: services.length, ended, closedUnder, after };
}
console.log(JSON.stringify(results));
