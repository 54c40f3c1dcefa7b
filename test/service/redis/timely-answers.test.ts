import { setTimeout as sleep } from 'node:timers/promises';
import { LockAbortedError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { type LockProcess, openWorld } from '../../support/lock-world.js';
import { startTcpProxy } from '../../support/network/tcp-proxy.js';
import { errorOf } from '../../support/section.js';
import { freePort } from '../../support/servers/free-port.js';
import { until } from '../../support/until.js';

describe('a lock service on Redis', () => {
  const world = openWorld('Redis');
  const admin = () => world.redis.client();
  const keyOf = (name: string) => `${world.keyPrefix}${name}`;

  describe('answers in time', () => {
    /** A process that learns from no command within this time that Redis does not answer. */
    const COMMAND_TIMEOUT = 20_000;

    const inTime = async ({ locks }: LockProcess) => {
      const began = performance.now();
      const abort = new AbortController();
      setTimeout(() => abort.abort(), 200);
      const answers = [
        locks.acquire('a', { waitTime: 200 }),
        locks.acquire('b', { waitTime: 400 }),
        locks.acquire('b', { waitTime: 300 }),
        locks.acquire(['c', 'd'], { waitTime: 300 }),
        locks.tryAcquire('e', { waitTime: 300 }),
        locks.withLock('f', { waitTime: 300 }, async () => {}),
      ].map(errorOf);
      const aborted = [
        locks.acquire('g', { signal: abort.signal }),
        locks.acquire(['h', 'i'], { signal: abort.signal }),
      ].map(errorOf);
      for (const error of await Promise.all(answers)) expect(error).toBeInstanceOf(LockUnavailableError);
      for (const error of await Promise.all(aborted)) expect(error).toBeInstanceOf(LockAbortedError);
      expect(performance.now() - began).toBeLessThan(COMMAND_TIMEOUT - 1_000);
    };

    it('while the server is paused, and releases what reached it', async () => {
      const process = await world.process();
      const patient = await world.process({ commandTimeout: COMMAND_TIMEOUT });
      for (const { locks } of [process, patient]) await locks.withLock('a', async () => {});
      world.redis.pause();
      try {
        await inTime(patient);
        const once = process.locks.acquire('j', { waitTime: 0 });
        expect(await errorOf(once)).toBeInstanceOf(LockUnavailableError);
      } finally {
        world.redis.resume();
      }
      const client = admin();
      const held = async () => (await client.keys(`${world.keyPrefix}*`)).length;
      await until(async () => (await held()) === 0);
      await sleep(300);
      expect(await held()).toBe(0);
      await process.locks.withLock(['a', 'b', 'j'], async () => {});
    });

    it('when nobody listens on the port', async () => {
      const connection = `redis://127.0.0.1:${await freePort()}`;
      const process = await world.process({ connection });
      await inTime(await world.process({ connection, commandTimeout: COMMAND_TIMEOUT }));
      expect(await errorOf(process.locks.acquire('j', { waitTime: 0 }))).toBeInstanceOf(LockUnavailableError);
      const began = performance.now();
      await process.locks.close();
      expect(performance.now() - began).toBeLessThan(5_000);
    });

    it('when answers get lost, and gives back what was acquired', async () => {
      const proxy = await startTcpProxy(world.redis.port);
      try {
        const process = await world.process({ connection: proxy.url, commandTimeout: 500 });
        await process.locks.withLock('a', async () => {});
        proxy.dropReplies();
        expect(await errorOf(process.locks.acquire('b', { waitTime: 300 }))).toBeInstanceOf(LockUnavailableError);
        const client = admin();
        await until(async () => (await client.exists(keyOf('b'))) === 1).catch(() => {});
        await proxy.heal();
        await until(async () => (await client.exists(keyOf('b'))) === 0);
        const lease = await process.locks.acquire('b', { waitTime: '10s' });
        await lease.release();
      } finally {
        await proxy.stop();
      }
    });
  });
});
