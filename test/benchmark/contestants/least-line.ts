import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { type Contestant, LEASE_TIME, type LockClient } from './contestant.js';

/** Takes a lock that is free, or joins the end of its line. KEYS: lock, line. ARGV: client, ms. */
const TAKE_OR_JOIN = `
if redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return 1 end
redis.call('RPUSH', KEYS[2], ARGV[1])
return 0`;

/** Gives the lock to the first client in line, and tells it. KEYS: lock, line. ARGV: ms. */
const GIVE_TO_FIRST = `
local first = redis.call('LPOP', KEYS[2])
if not first then return redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], first, 'PX', ARGV[1])
redis.call('PUBLISH', first, '')`;

/** Leaves the line. Returns 0 if the lock has been given to this client meanwhile. KEYS: line. ARGV: client. */
const LEAVE = `return redis.call('LREM', KEYS[1], 1, ARGV[1])`;

/**
 * The least that a first-come, first-served lock on Redis can cost if a message tells the next owner that it has the lock.
 * It has no renewal and no tokens, and it does not survive the death of a client or the loss of a message. A client has one caller.
 */
export const leastLine: Contestant = {
  name: 'least-line',
  waits: 'listens',
  does: 'a list of clients, and a message to the first one, straight on ioredis; safe only if nobody dies',
  async open(port): Promise<LockClient<string>> {
    const client = randomUUID();
    const [redis, subscriber] = [0, 1].map(() => new Redis(port, '127.0.0.1', { lazyConnect: true }));
    await Promise.all([redis.connect(), subscriber.connect()]);
    const scripts = [TAKE_OR_JOIN, GIVE_TO_FIRST, LEAVE].map((source) => redis.script('LOAD', source));
    const [takeOrJoin, giveToFirst, leave] = (await Promise.all(scripts)) as string[];
    let granted: (() => void) | undefined;
    subscriber.on('message', () => granted?.());
    await subscriber.subscribe(client);

    const lineOf = (key: string) => `${key}:line`;
    /** Settles with the message that says that this client has the lock. */
    const grant = () =>
      new Promise<void>((resolve) => {
        granted = resolve;
      });
    const take = (key: string) => redis.evalsha(takeOrJoin, 2, key, lineOf(key), client, LEASE_TIME);
    return {
      async acquire(key) {
        const told = grant();
        if ((await take(key)) !== 1) await told;
        return key;
      },
      async tryFor(key, waitTime) {
        const told = grant();
        if ((await take(key)) === 1) return key;
        const ended = new AbortController();
        const late = delay(waitTime, true, { signal: ended.signal }).catch(() => false);
        const isLate = await Promise.race([told.then(() => false), late]);
        ended.abort();
        if (isLate && (await redis.evalsha(leave, 1, lineOf(key), client)) === 1) return undefined;
        await told;
        return key;
      },
      release: (key) => redis.evalsha(giveToFirst, 2, key, lineOf(key), LEASE_TIME),
      close: () => Promise.all([redis.quit(), subscriber.quit()]),
    };
  },
};
