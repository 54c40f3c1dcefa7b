import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createLockService } from 'nestjs-redis-lock';
import type { Contestant, LockClient } from './contestant.js';

const KEY = 'probe';
/** The position of a request's time limit, a time of the server in milliseconds, behind the hash of the script. */
const DEADLINE = 3;
/** Milliseconds until the time limit. Server and client are on one machine, so their clocks agree. */
const TIME_LIMIT = 2_000;

/**
 * The two commands that this library sends for one lock, sent by hand through ioredis. It shows how much of the time is
 * what the scripts do, and how much is the code of the library. It has nothing else: no renewal, and no wait.
 */
export const scriptsByHand: Contestant = {
  name: 'the scripts of nestjs-redis-lock, by hand',
  waits: 'nothing',
  does: 'the two scripts of nestjs-redis-lock straight on ioredis',
  async open(port): Promise<LockClient<string>> {
    const [acquire, release] = await commandsOf(port);
    const redis = new Redis(port, '127.0.0.1', { lazyConnect: true });
    await redis.connect();
    const of = ([sha1, ...args]: readonly string[], key: string) =>
      [sha1, ...args.map((arg) => arg.replace(KEY, key))] as [string, ...string[]];
    return {
      async acquire(key) {
        const [sha1, ...args] = of(acquire, key);
        args[DEADLINE] = String(Date.now() + TIME_LIMIT);
        const token = await redis.call('evalsha', sha1, ...args);
        if (typeof token !== 'number') throw new Error(`${key} was not acquired: ${token}`);
        return key;
      },
      async release(key) {
        await redis.call('evalsha', ...of(release, key));
      },
      close: () => redis.quit(),
    };
  },
};

/** What the library sends to acquire and to release a lock, without the name of the command. */
async function commandsOf(port: number): Promise<[acquire: readonly string[], release: readonly string[]]> {
  const locks = createLockService({ connection: `redis://127.0.0.1:${port}` });
  const client = new Redis(port, '127.0.0.1');
  const monitor = await client.monitor();
  const sent: string[][] = [];
  monitor.on('monitor', (_: string, [name, ...args]: string[]) => {
    if (/^evalsha$/i.test(name) && args.some((arg) => arg.endsWith(`:${KEY}`))) sent.push(args);
  });
  // The first requests also load the scripts.
  for (let lock = 1; lock <= 3; lock++) await (await locks.acquire(KEY)).release();
  while (sent.length < 6) await sleep(10);
  monitor.disconnect();
  client.disconnect();
  await locks.close();
  return [sent[sent.length - 2], sent[sent.length - 1]];
}
