import type { Redis } from 'ioredis';
import { asleep } from '../../support/asleep.js';
import { ms, openWorld } from '../../support/lock-world.js';
import { woken } from '../../support/time-limits.js';
import { until } from '../../support/until.js';

const WITHOUT_LEASE = 922_337_203_685_477;

describe("semaphores and latches on Redisson's layout", () => {
  const world = openWorld('Redis');
  let redis: Redis;
  beforeAll(() => {
    redis = world.redis.client();
  });
  beforeEach(() => redis.flushall());

  const listen = async (channel: string) => {
    const messages: string[] = [];
    const subscriber = world.redis.client();
    subscriber.on('message', (_channel: string, message: string) => messages.push(message));
    await subscriber.subscribe(channel);
    return messages;
  };
  const keysOf = async (name: string) => (await redis.keys(`*${name}*`)).filter((key) => !key.startsWith('nestjs_'));
  const serverTime = async () => {
    const [seconds, micros] = await redis.time();
    return Number(seconds) * 1000 + Number(micros) / 1000;
  };

  it('a semaphore is a counter; its messages say how many permits are available', async () => {
    const semaphore = (await world.service()).getSemaphore('mail');
    const key = `${world.keyPrefix}mail`;
    const messages = await listen(`redisson_sc:{${key}}`);
    await semaphore.trySetPermits(3);
    await semaphore.acquire(2);
    expect(await redis.get(key)).toBe('1');
    await semaphore.release(4);
    await semaphore.addPermits(-6);
    await semaphore.addPermits(2);
    await until(() => messages.length === 3);
    expect(messages).toEqual(['3', '5', '1']);
    expect(await keysOf('mail')).toEqual([key]);
    expect(await redis.ttl(key)).toBe(-1);
  });

  it('a permit with a lease is a raw id in a zset, with the time at which its lease ends', async () => {
    const semaphore = (await world.service({ watchdogTimeout: ms(30_000) })).getPermitExpirableSemaphore('mail');
    const key = `${world.keyPrefix}mail`;
    const messages = await listen(`redisson_sc:{${key}}`);
    await semaphore.trySetPermits(3);
    const before = await serverTime();
    const [id, kept] = [await semaphore.acquire('10s'), await semaphore.acquire()];
    const after = await serverTime();
    expect(await redis.get(key)).toBe('1');
    const entries = await redis.zrangeBuffer(`{${key}}:timeout`, '0', '-1');
    expect(entries.map((entry) => entry.toString('hex'))).toEqual([id, kept]);
    for (const [entry, lease] of [
      [id, 10_000],
      [kept, 30_000],
    ] as const) {
      const end = Number(await redis.zscore(`{${key}}:timeout`, Buffer.from(entry, 'hex')));
      expect(end).toBeGreaterThanOrEqual(Math.floor(before) + lease);
      expect(end).toBeLessThanOrEqual(Math.ceil(after) + lease);
    }
    await semaphore.release([id, kept]);
    await until(() => messages.length === 2);
    expect(messages).toEqual(['3', '3']);
    expect(await keysOf('mail')).toEqual([key]);
  });

  it('counting permits sends no message unless the lease of one has ended', async () => {
    const semaphore = (await world.service()).getPermitExpirableSemaphore('mail');
    const messages = await listen(`redisson_sc:{${world.keyPrefix}mail}`);
    await semaphore.trySetPermits(3);
    const id = await semaphore.acquire('10s');
    expect([await semaphore.availablePermits(), await semaphore.acquiredPermits()]).toEqual([2, 1]);
    await semaphore.release(id);
    await until(() => messages.length >= 2);
    expect(messages).toEqual(['3', '3']);
  });

  it("a permit of Redisson's without a lease is held until it is released by its id", async () => {
    const locks = await world.service();
    const semaphore = locks.getPermitExpirableSemaphore('mail');
    const [key, id] = [`${world.keyPrefix}mail`, 'ff00e28880ff0a0d0000c3a9f09f9880'];
    await redis.set(key, 0);
    await redis.zadd(`{${key}}:timeout`, WITHOUT_LEASE, Buffer.from(id, 'hex'));
    expect([await semaphore.acquiredPermits(), await semaphore.tryAcquire(300)]).toEqual([1, null]);
    const acquired = semaphore.acquire();
    await asleep(locks);
    expect(await semaphore.tryRelease(id)).toBe(true);
    await acquired;
  });

  it("waiters are woken by Redisson's commands", async () => {
    const locks = await world.service();
    const [mail, licence] = [`${world.keyPrefix}mail`, `${world.keyPrefix}licence`];
    const acquired = [locks.getSemaphore('mail').acquire(2), locks.getPermitExpirableSemaphore('licence').acquire()];
    const opened = [locks.getCountDownLatch('done'), locks.getCountDownLatch('gone')];
    await redis.mset({ [`${world.keyPrefix}done`]: 1, [`${world.keyPrefix}gone`]: 9 });
    const waits = opened.map((latch) => latch.await());
    await asleep(locks, 4);
    await redis.multi().incrby(mail, 2).publish(`redisson_sc:{${mail}}`, '2').exec();
    await redis.multi().incrby(licence, 1).publish(`redisson_sc:{${licence}}`, '1').exec();
    await redis.multi().del(`${world.keyPrefix}done`).publish(channelOf('done'), '0').exec();
    await redis.multi().del(`${world.keyPrefix}gone`).publish(channelOf('gone'), '1').exec();
    await woken(Promise.all([...acquired, ...waits]));
  });

  const channelOf = (name: string) => `redisson_countdownlatch__channel__{${world.keyPrefix}${name}}`;

  it('a latch is a counter that is deleted at zero; its messages are 1 for a new count and 0 for none', async () => {
    const latch = (await world.service()).getCountDownLatch('done');
    const key = `${world.keyPrefix}done`;
    const messages = await listen(channelOf('done'));
    await latch.trySetCount(2);
    expect(await redis.get(key)).toBe('2');
    await latch.countDown();
    expect(await redis.get(key)).toBe('1');
    await latch.countDown();
    expect(await keysOf('done')).toEqual([]);
    await latch.trySetCount(5);
    await latch.delete();
    await until(() => messages.length === 4);
    expect(messages).toEqual(['1', '0', '1', '0']);
  });

  it('a name with braces gets no more braces, except in the channel of a latch', async () => {
    const locks = await world.service();
    const key = `${world.keyPrefix}{mail}`;
    const messages = await listen(`redisson_sc:${key}`);
    await locks.getPermitExpirableSemaphore('{mail}').trySetPermits(1);
    const id = await locks.getPermitExpirableSemaphore('{mail}').acquire();
    expect(await redis.zcard(`${key}:timeout`)).toBe(1);
    await locks.getPermitExpirableSemaphore('{mail}').release(id);
    await until(() => messages.length === 2);
    const latch = await listen(channelOf('{done}'));
    await locks.getCountDownLatch('{done}').trySetCount(1);
    await until(() => latch.length === 1);
  });

  it('permits with a lease live no longer than a semaphore that was given a time to live', async () => {
    const semaphore = (await world.service()).getPermitExpirableSemaphore('mail');
    const key = `${world.keyPrefix}mail`;
    await semaphore.trySetPermits(1);
    await redis.pexpire(key, 60_000);
    await semaphore.acquire('1h');
    expect(await redis.pttl(`{${key}}:timeout`)).toBeGreaterThan(50_000);
    expect(await redis.pttl(key)).toBeGreaterThan(50_000);
  });

  it('one remembered request for each process, session and object, which expires', async () => {
    const locks = await world.service();
    const semaphore = locks.getSemaphore('mail');
    await semaphore.trySetPermits(9);
    for (let n = 0; n < 5; n++) {
      await semaphore.acquire();
      await semaphore.release();
    }
    const remembered = await redis.keys('nestjs_redis_lock_request:*');
    expect(remembered.sort()).toEqual(
      ['change', 'permits'].map(
        (session) => `nestjs_redis_lock_request:{${world.keyPrefix}mail}:${locks.engine.services.clientId}:${session}`,
      ),
    );
    for (const key of remembered) expect(await redis.pttl(key)).toBeGreaterThan(60_000);
  });

  it('a note beside the number says what it is, for people', async () => {
    const locks = await world.service();
    const noteOf = (name: string) => `nestjs_redis_lock_counter:{${world.keyPrefix}${name}}`;
    await locks.getSemaphore('mail').trySetPermits(9);
    await locks.getSemaphore('mail').acquire(2);
    await locks.getSemaphore('mail').release(2);
    expect(await redis.hgetall(noteOf('mail'))).toEqual({ type: 'semaphore', total: '9' });
    expect(await redis.pttl(noteOf('mail'))).toBe(-1);
    await locks.getSemaphore('mail').addPermits(-2);
    expect(await redis.hget(noteOf('mail'), 'total')).toBe('7');
    await locks.getPermitExpirableSemaphore('cad').trySetPermits(3);
    expect(await redis.hget(noteOf('cad'), 'type')).toBe('permit-expirable-semaphore');
    await locks.getCountDownLatch('done').trySetCount(2);
    expect(await redis.hgetall(noteOf('done'))).toEqual({ type: 'count-down-latch', total: '2' });
    // Redisson deletes a latch without it.
    expect(await redis.pttl(noteOf('done'))).toBeGreaterThan(29 * 86_400_000);
    await locks.getCountDownLatch('done').countDown();
    await locks.getCountDownLatch('done').countDown();
    expect(await redis.exists(noteOf('done'))).toBe(0);
  });

  it('what Redisson has set up is a counter until this library finds it without permits, or refuses to set it up again', async () => {
    const locks = await world.service();
    for (const name of ['mail', 'cad', 'done', 'sent']) await redis.set(world.keyPrefix + name, 0);
    await redis.set(`${world.keyPrefix}done`, 4);
    const typeOf = async (name: string) => (await locks.inspect(name)).type;
    expect(await typeOf('mail')).toBe('counter');
    await locks.getSemaphore('mail').tryAcquire();
    await locks.getPermitExpirableSemaphore('cad').tryAcquire();
    await locks.getCountDownLatch('done').trySetCount(9);
    await locks.getSemaphore('sent').trySetPermits(9);
    expect(await Promise.all(['mail', 'cad', 'done', 'sent'].map(typeOf))).toEqual([
      'semaphore',
      'permit-expirable-semaphore',
      'count-down-latch',
      'semaphore',
    ]);
    expect((await locks.inspect('done')).synchronizer).toEqual({ type: 'count-down-latch', count: 4, permits: [] });
    await redis.zadd(
      `{${world.keyPrefix}java}:timeout`,
      WITHOUT_LEASE,
      Buffer.from('ff00e28880ff0a0d0000c3a9f09f9880', 'hex'),
    );
    await redis.set(`${world.keyPrefix}java`, 2);
    expect((await locks.inspect('java')).synchronizer).toEqual({
      type: 'permit-expirable-semaphore',
      count: 2,
      total: 3,
      taken: 1,
      permits: [{ id: 'ff00e28880ff0a0d', mine: false, remainingTime: -1 }],
    });
  });

  it('with the option permits, a semaphore is set up again after Redis has lost its data', async () => {
    const locks = await world.service();
    const semaphore = locks.getSemaphore('mail', { permits: 2 });
    expect(await semaphore.tryAcquire()).toBe(true);
    await redis.flushall();
    expect(await semaphore.tryAcquire(2)).toBe(true);
    expect(await semaphore.tryAcquire()).toBe(false);
  });

  it('failed tries and waits write nothing', async () => {
    const locks = await world.service();
    expect(await locks.getSemaphore('mail').tryAcquire()).toBe(false);
    expect(await locks.getSemaphore('mail').tryAcquire(1, 600)).toBe(false);
    expect(await locks.getSemaphore('mail').drainPermits()).toBe(0);
    expect(await locks.getPermitExpirableSemaphore('mail').tryAcquire(600)).toBeNull();
    expect(await locks.getPermitExpirableSemaphore('mail').tryRelease('0'.repeat(32))).toBe(false);
    expect(await locks.getCountDownLatch('mail').delete()).toBe(false);
    await locks.getCountDownLatch('mail').countDown();
    expect(await redis.keys('*')).toEqual([]);
  });

  it('rejects with LockKeyError when the name belongs to something else', async () => {
    const locks = await world.service();
    await redis.set(`${world.keyPrefix}word`, 'ten');
    await redis.hset(`${world.keyPrefix}hash`, 'ten', 10);
    for (const name of ['word', 'hash']) {
      const refused = { name: 'LockKeyError', lockName: name };
      await expect(locks.getSemaphore(name).acquire()).rejects.toMatchObject(refused);
      await expect(locks.getSemaphore(name).release()).rejects.toMatchObject(refused);
      await expect(locks.getPermitExpirableSemaphore(name).acquire()).rejects.toMatchObject(refused);
      await expect(locks.getPermitExpirableSemaphore(name).availablePermits()).rejects.toMatchObject(refused);
      await expect(locks.getCountDownLatch(name).await()).rejects.toMatchObject(refused);
      await expect(locks.getCountDownLatch(name).countDown()).rejects.toMatchObject(refused);
    }
    expect(await redis.get(`${world.keyPrefix}word`)).toBe('ten');
    expect(await redis.keys('*')).toHaveLength(2);
  });
});

describe('what semaphores and latches cost Redis', () => {
  const world = openWorld('Redis');

  /** How many scripts were called and subscriptions made while `work` ran. */
  const commands = async (work: () => Promise<unknown>) => {
    const redis = world.redis.client();
    await redis.config('RESETSTAT');
    await work();
    const stats = await redis.info('commandstats');
    const calls = [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name, count]) => [name, Number(count)]);
    const { evalsha = 0, eval: sources = 0, subscribe = 0 } = Object.fromEntries(calls);
    return { scripts: evalsha + sources, subscribe };
  };

  it('one command to acquire and one to release', async () => {
    const locks = await world.service();
    const [counted, leased] = [locks.getSemaphore('mail'), locks.getPermitExpirableSemaphore('licences')];
    await counted.trySetPermits(1);
    await leased.trySetPermits(1);
    const once = async () => {
      await counted.acquire();
      await counted.release();
      await leased.release(await leased.acquire());
    };
    await once();
    expect(await commands(once)).toEqual({ scripts: 4, subscribe: 0 });
  });

  it('a few commands for many callers that start at the same moment', async () => {
    const locks = await world.service();
    const [counted, leased] = [locks.getSemaphore('mail'), locks.getPermitExpirableSemaphore('licences')];
    await counted.trySetPermits(100);
    await leased.trySetPermits(100);
    const callers = Array.from({ length: 100 });
    const { scripts } = await commands(async () => {
      await Promise.all(callers.map(() => counted.acquire()));
      await Promise.all(callers.map(() => counted.release()));
      const ids = await Promise.all(callers.map(() => leased.acquire()));
      await Promise.all(ids.map((id) => leased.release(id)));
    });
    expect(scripts).toBeLessThan(20);
  });

  it('one subscription for all waiters of a process, and no command while they wait', async () => {
    const [ann, bob] = await world.services(2);
    const acquired = Array.from({ length: 1_000 }, () => ann.getSemaphore('mail').acquire());
    await asleep(ann);
    expect(await world.redis.client().pubsub('NUMSUB', `redisson_sc:{${world.keyPrefix}mail}`)).toEqual([
      `redisson_sc:{${world.keyPrefix}mail}`,
      1,
    ]);
    const idle = await commands(() => new Promise((resolve) => setTimeout(resolve, 500)));
    expect(idle).toEqual({ scripts: 0, subscribe: 0 });
    const served = await commands(async () => {
      await bob.getSemaphore('mail').release(1_000);
      await woken(Promise.all(acquired));
    });
    expect(served.scripts).toBeLessThan(40);
  });

  it('continues after SCRIPT FLUSH', async () => {
    const locks = await world.service();
    const semaphore = locks.getSemaphore('mail');
    await semaphore.trySetPermits(1);
    await semaphore.acquire();
    await world.redis.client().script('FLUSH');
    await semaphore.release();
    await world.redis.client().script('FLUSH');
    await semaphore.acquire();
    expect(await semaphore.availablePermits()).toBe(0);
  });
});
