// The libraries, each with the settings that its documentation names for this lease and this wait time. What it has no
// setting for is left at its default. `hold` runs a body under the lock, and passes it the way in which the library's
// documentation tells a holder whether it still holds the lock.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';

/** @typedef {{ url: string, sentinels?: { name: string, sentinels: { host: string, port: number }[] }, lease: number,
 *   commandTimeout: number, keepWhileBlocked?: number }} Settings */
/** @typedef {(isHeld: () => boolean) => Promise<void>} Body */
/** @typedef {{ hold(name: string, wait: number, body: Body): Promise<void>, observe?(body: () => unknown): unknown,
 *   close(): Promise<unknown> }} Opened */

/** Between two tries, in milliseconds, where a library has a number of tries instead of a wait time. */
const REDLOCK_DELAY = 200;
const UNIVERSAL_DELAY = 100;
const MURLOCK_DELAY = 100;
const IOREDIS_LOCK_DELAY = 50;

/** @type {Record<string, (settings: Settings) => Promise<Opened>>} */
export const OPEN = {
  async 'nestjs-redis-lock'({ url, sentinels, lease, commandTimeout, keepWhileBlocked }) {
    const { DistributedLock, LockService, RedisLockModule } = await import('nestjs-redis-lock');
    class Jobs {
      observed(body) {
        return body();
      }
    }
    decorate(DistributedLock('observed'), Jobs);
    const logger = { warn: () => {}, error: () => {} };
    const connection = sentinels ?? url;
    const options = { connection, watchdogTimeout: lease, commandTimeout, keepWhileBlocked, logger };
    const app = await start([RedisLockModule.forRoot(options)], Jobs);
    const locks = app.get(LockService);
    return {
      hold: (name, waitTime, body) => locks.withLock(name, { waitTime }, (lease) => body(() => lease.held)),
      observe: (body) => app.get(Jobs).observed(body),
      close: () => app.close(),
    };
  },

  async redlock(settings) {
    const { default: Redlock } = await import('redlock');
    const redis = client(settings);
    const locks = new Redlock([redis], { retryDelay: REDLOCK_DELAY });
    return {
      hold: (name, wait, body) =>
        locks.using([name], settings.lease, { retryCount: Math.ceil(wait / REDLOCK_DELAY) }, (signal) =>
          body(() => !signal.aborted),
        ),
      close: () => redis.quit(),
    };
  },

  async 'redis-semaphore'(settings) {
    const { Mutex } = await import('redis-semaphore');
    const redis = client(settings);
    return {
      async hold(name, acquireTimeout, body) {
        // Without onLockLost, a loss would be an unhandled rejection, which ends the process.
        const mutex = new Mutex(redis, name, { lockTimeout: settings.lease, acquireTimeout, onLockLost: () => {} });
        await mutex.acquire();
        try {
          await body(() => mutex.isAcquired);
        } finally {
          await mutex.release();
        }
      },
      close: () => redis.quit(),
    };
  },

  async 'redlock-universal'(settings) {
    const { createLock, IoredisAdapter } = await import('redlock-universal');
    const { Redlock, RedlockModule } = await import('nestjs-redlock-universal');
    const redis = client(settings);
    const adapter = new IoredisAdapter(redis);
    class Jobs {
      observed(body) {
        return body();
      }
    }
    decorate(Redlock({ key: 'observed' }), Jobs);
    const nodes = { nodes: [adapter], defaultTtl: settings.lease, retryAttempts: 100, retryDelay: UNIVERSAL_DELAY };
    const app = await start([RedlockModule.forRoot(nodes)], Jobs);
    const locks = new Map();
    return {
      hold(key, wait, body) {
        const retryAttempts = Math.ceil(wait / UNIVERSAL_DELAY);
        const id = `${key} ${retryAttempts}`;
        const options = { adapter, key, ttl: settings.lease, retryAttempts, retryDelay: UNIVERSAL_DELAY };
        if (!locks.has(id)) locks.set(id, createLock(options));
        return locks.get(id).using((signal) => body(() => !signal.aborted));
      },
      observe: (body) => app.get(Jobs).observed(body),
      close: () => app.close().then(() => redis.disconnect()),
    };
  },

  async murlock({ url, lease }) {
    const { MurLock, MurLockModule, MurLockService } = await import('murlock');
    class Jobs {
      observed(body) {
        return body();
      }
    }
    decorate(MurLock(lease, MURLOCK_DELAY), Jobs);
    // Its number of tries is for all calls. `wait` below is that of the module where it is the longest.
    const tries = (wait) => Math.ceil(wait / MURLOCK_DELAY);
    const module = (wait) =>
      MurLockModule.forRoot({
        redisOptions: { url },
        wait: MURLOCK_DELAY,
        maxAttempts: tries(wait),
        logLevel: 'none',
        ignoreUnlockFail: false,
        lockKeyPrefix: 'default',
      });
    const apps = new Map();
    const appOf = async (wait) => {
      if (!apps.has(wait)) apps.set(wait, start([module(wait)], Jobs));
      return apps.get(wait);
    };
    await appOf(10_000);
    return {
      async hold(name, wait, body) {
        const locks = (await appOf(wait)).get(MurLockService);
        // Nothing tells the body.
        await locks.runWithLock(name, lease, MURLOCK_DELAY, () => body(() => true));
      },
      observe: async (body) => (await appOf(10_000)).get(Jobs).observed(body),
      close: async () => Promise.all([...apps.values()].map(async (app) => (await app).close())),
    };
  },

  async '@microfleet/ioredis-lock'(settings) {
    const { createLock } = await import('@microfleet/ioredis-lock');
    const redis = client(settings);
    return {
      async hold(name, wait, body) {
        const retries = Math.ceil(wait / IOREDIS_LOCK_DELAY);
        const lock = createLock(redis, { timeout: settings.lease, retries, delay: IOREDIS_LOCK_DELAY, jitter: 1 });
        await lock.acquire(name);
        try {
          // Nothing tells the body.
          await body(() => true);
        } finally {
          await lock.release();
        }
      },
      close: () => redis.quit(),
    };
  },
};

/** What no documentation forbids, and all of them get: an ioredis with a limit for each command. */
function client({ url, sentinels, commandTimeout }) {
  const redis = sentinels ? new Redis({ ...sentinels, commandTimeout }) : new Redis(url, { commandTimeout });
  return redis.on('error', () => {});
}

function decorate(decorator, type) {
  const descriptor = Object.getOwnPropertyDescriptor(type.prototype, 'observed');
  Object.defineProperty(type.prototype, 'observed', decorator(type.prototype, 'observed', descriptor) ?? descriptor);
  Injectable()(type);
}

async function start(imports, provider) {
  class AppModule {}
  Module({ imports, providers: [provider] })(AppModule);
  return NestFactory.createApplicationContext(AppModule, { logger: false });
}
