import type { AcquireRequest, LockType } from '../../../lib/backends/lock-backend.js';
import { until } from '../../support/until.js';
import { CLIENT, RedisWorld } from './redis-world.js';

/** The keys in Redis and the messages on its channels: exactly Redisson's layout. */
describe('the layout in Redis', () => {
  // Scripts over thousands of dead readers take seconds of a busy machine, after which Redis answers others with BUSY.
  const world = new RedisWorld({ args: ['--lua-time-limit', '60000'] });
  const java = '99999999-8888-7777-6666-555555555555:42';

  /** The messages that are published on any channel while `work` runs. */
  async function published(count: number, work: () => Promise<unknown>): Promise<string[]> {
    const listener = world.redis.duplicate();
    const heard: string[] = [];
    listener.on('pmessage', (_pattern, channel, message) => heard.push(`${channel} ${message}`));
    await listener.psubscribe('*');
    await work();
    await world.redis.publish('end', '');
    await until(() => heard.includes('end '));
    listener.disconnect();
    heard.pop();
    expect(heard).toHaveLength(count);
    return heard;
  }

  async function take(type: LockType, request: Partial<AcquireRequest> = {}) {
    const backend = world.backend({ commandTimeout: 20_000 });
    const lock = world.request(type, request);
    const reply = await backend.acquire(lock);
    if (!reply.acquired) throw new Error('busy');
    return { backend, lock, ...lock, token: reply.token };
  }

  /** How many ms are left of a reader's lease, and of its lock. */
  async function leases(key: string, owner: string): Promise<[left: number, ttl: number]> {
    const replies = await world.redis.multi().pttl(`{${key}}:${owner}:rwlock_timeout:1`).pttl(key).exec();
    return replies?.map(([, left]) => left) as [number, number];
  }

  beforeEach(() => world.redis.flushall());

  it.each(['reentrant', 'fair', 'fenced'] as const)(
    'of a %s lock is a hash: owner → 1, with the lease',
    async (type) => {
      const { key, owner } = await take(type);
      expect(await world.redis.hgetall(key)).toEqual({ [owner]: '1' });
      expect(await world.redis.pttl(key)).toBeGreaterThan(55_000);
    },
  );

  it('of a fenced lock has its own token counter', async () => {
    const { key, token, backend, lock } = await take('fenced', { key: 'lock:f' });
    expect(await world.keys()).toEqual([key, 'nestjs_redis_lock_clock', 'redisson_lock_token:{lock:f}']);
    expect(await world.redis.get('redisson_lock_token:{lock:f}')).toBe(String(token));
    await world.redis.incrby('redisson_lock_token:{lock:f}', 10_000_000); // as Java would, and ahead of the clock
    await backend.release(lock);
    expect(await backend.acquire(lock)).toMatchObject({ token: token + 10_000_001 });
  });

  it.each([
    ['lock:a', 'redisson_lock__channel:{lock:a} 0'],
    ['lock:{a}b', 'redisson_lock__channel:lock:{a}b 0'],
  ])('reports the release of %s on %s', async (key, message) => {
    const { backend, lock } = await take('reentrant', { key });
    expect(await published(1, () => backend.release(lock))).toEqual([message]);
    await backend.acquire(lock);
    const forced = await published(3, () => backend.forceRelease(key));
    expect(forced).toContain(message);
    const removal = JSON.stringify({ key, owners: [lock.owner] });
    expect(forced.map(sorted)).toContain(sorted(`nestjs_redis_lock_client:{${CLIENT}} ${removal}`));
  });

  it('of a fair lock has a queue, and only its head is notified', async () => {
    const { backend, lock } = await take('fair', { key: 'lock:q' });
    const [first, second] = [world.owner(), world.owner()];
    for (const owner of [first, second]) await backend.acquire({ ...lock, owner, waiterTimeout: 5_000 });
    expect(await world.redis.lrange('redisson_lock_queue:{lock:q}', 0, -1)).toEqual([first, second]);
    const lapse = Number(await world.redis.zscore('redisson_lock_timeout:{lock:q}', first));
    expect(lapse - Date.now()).toBeGreaterThan(3_000);
    expect(lapse - Date.now()).toBeLessThan(6_000);
    const messages = await published(1, () => backend.release(lock));
    expect(messages).toEqual([`redisson_lock__channel:{lock:q}:${first} 0`]);
    await backend.acquire({ ...lock, owner: first });
    expect(await world.redis.lrange('redisson_lock_queue:{lock:q}', 0, -1)).toEqual([second]);
    await backend.removeWaiter({ ...lock, owner: second });
    await backend.release({ ...lock, owner: first });
    expect(await world.keys()).toEqual(['nestjs_redis_lock_clock']);
  });

  it('of a read lock has a lease for each reader', async () => {
    const { backend, lock, owner } = await take('read', { key: 'lock:rw' });
    const other = { ...lock, owner: world.owner(), leaseTime: 90_000 };
    await backend.acquire(other);
    expect(await world.redis.hgetall('lock:rw')).toEqual({ mode: 'read', [owner]: '1', [other.owner]: '1' });
    expect(await world.redis.get(`{lock:rw}:${owner}:rwlock_timeout:1`)).toBe('1');
    expect(await world.redis.pttl(`{lock:rw}:${owner}:rwlock_timeout:1`)).toBeLessThanOrEqual(60_000);
    expect(await world.redis.pttl('lock:rw')).toBeGreaterThan(85_000);
    const brief = { ...lock, owner: world.owner(), leaseTime: 30_000 };
    await backend.acquire(brief);
    expect(await published(0, () => backend.release(brief))).toEqual([]);
    // Now the lock can end earlier than its waiters know.
    expect(await published(1, () => backend.release(other))).toEqual(['redisson_rwlock:{lock:rw} 0']);
    expect(await world.redis.pttl('lock:rw')).toBeLessThanOrEqual(60_000);
    expect(await published(1, () => backend.release(lock))).toEqual(['redisson_rwlock:{lock:rw} 0']);
    expect(await world.keys()).toEqual(['nestjs_redis_lock_clock']);
  });

  // Until 7.2, the clock of Redis advances while a script runs. A lock that outlasts its last reader by two ms would
  // look like one that somebody else reads, and the waiting writer would not be notified.
  it('of a read lock sets the lease of the lock before that of its reader', async () => {
    const monitor = await world.redis.monitor();
    const set: string[] = [];
    monitor.on('monitor', (_time: string, [command = '', key = '']: string[]) => {
      if (/^(set|pexpire)$/i.test(command) && key.includes('lock:rw')) set.push(key);
    });
    try {
      const { backend, lock, owner } = await take('read', { key: 'lock:rw' });
      await backend.renew({ ...lock, leaseTime: 70_000 });
      const both = ['lock:rw', `{lock:rw}:${owner}:rwlock_timeout:1`];
      await until(() => set.length >= 4);
      expect(set).toEqual([...both, ...both]);
    } finally {
      monitor.disconnect();
    }
  });

  it('of a read lock does not outlast its readers, however many dead ones were checked', async () => {
    for (const key of ['lock:a', 'lock:b', 'lock:c']) {
      const { backend, lock, owner } = await take('write', { key });
      await backend.acquire({ ...lock, type: 'read' });
      for (let batch = 0; batch < 20; batch++) {
        await world.redis.hset(key, Object.fromEntries(Array.from({ length: 1_000 }, () => [world.owner(), '1'])));
      }
      await backend.release(lock); // and continues to read
      const [left, ttl] = await leases(key, owner);
      expect(ttl).toBeLessThanOrEqual(left + 1);
      expect(ttl).toBeGreaterThan(left - 1_000);
    }
  });

  it('of a write lock names the writer, who may read as well', async () => {
    const { backend, lock, owner } = await take('write', { key: 'lock:rw' });
    expect(await world.redis.hgetall('lock:rw')).toEqual({ mode: 'write', [`${owner}:write`]: '1' });
    await backend.acquire({ ...lock, type: 'read' });
    expect(await world.redis.hgetall('lock:rw')).toEqual({ mode: 'write', [`${owner}:write`]: '1', [owner]: '1' });
    expect(await published(1, () => backend.release(lock))).toEqual(['redisson_rwlock:{lock:rw} 1']);
    expect(await world.redis.hgetall('lock:rw')).toEqual({ mode: 'read', [owner]: '1' });
    await backend.release({ ...lock, type: 'read' });
    expect(await world.keys()).toEqual(['nestjs_redis_lock_clock']);
  });

  it('keeps the line beside the lock, for at most twice the waiterTimeout of its places', async () => {
    const { backend, lock } = await take('read', { key: 'lock:rw' });
    const writer = { ...lock, type: 'write' as const, owner: world.owner(), waiterTimeout: 5_000 };
    await backend.acquire(writer);
    expect(await world.redis.zrange('nestjs_redis_lock_turns:{lock:rw}', '0', '-1')).toEqual([writer.owner]);
    expect(await world.redis.hgetall('nestjs_redis_lock_turns_terms:{lock:rw}')).toEqual({ [writer.owner]: 't write' });
    for (const key of ['turns', 'turns_until', 'turns_terms'])
      expect(await world.redis.pttl(`nestjs_redis_lock_${key}:{lock:rw}`)).toBeLessThanOrEqual(10_000);
  });

  describe('as Java writes it', () => {
    it('makes a lock busy that Java holds more than once', async () => {
      const backend = world.backend();
      const lock = world.request();
      await world.redis.hset(lock.key, java, 3);
      await world.redis.pexpire(lock.key, 30_000);
      expect(await backend.acquire(lock)).toMatchObject({ acquired: false, holder: java });
      expect(await backend.inspect(lock.key)).toMatchObject({ mode: 'exclusive', owners: [{ owner: java }] });
    });

    it('keeps a reader of Java that holds the lock more than once', async () => {
      const backend = world.backend();
      const lock = world.request('write', { key: 'lock:rw' });
      await world.redis.hset('lock:rw', { mode: 'read', [java]: 2 });
      await world.redis.pexpire('lock:rw', 30_000);
      await world.redis.set(`{lock:rw}:${java}:rwlock_timeout:2`, 1, 'PX', 30_000);
      expect(await backend.acquire(lock)).toMatchObject({ acquired: false, holder: java });
      await world.redis.del(`{lock:rw}:${java}:rwlock_timeout:2`);
      expect(await backend.acquire(lock)).toMatchObject({ acquired: true });
    });

    it('keeps the place of a waiter behind Java waiters, which subtract their waiting time from every score', async () => {
      const { backend, lock } = await take('fair', { key: 'lock:q' });
      await world.redis.rpush('redisson_lock_queue:{lock:q}', java);
      const javaWaitsUntil = Date.now() + 330_000;
      await world.redis.zadd('redisson_lock_timeout:{lock:q}', javaWaitsUntil, java);
      const waiter = { ...lock, owner: world.owner(), waiterTimeout: 5_000 };
      await backend.acquire(waiter);
      const score = async () => Number(await world.redis.zscore('redisson_lock_timeout:{lock:q}', waiter.owner));
      expect((await score()) - 300_000).toBeGreaterThan(Date.now());
      expect(await score()).toBeGreaterThanOrEqual(javaWaitsUntil + 5_000); // Java drops waiters from the front
      expect(await backend.refreshWaiters([waiter], 5_000)).toEqual([true]);
      expect((await score()) - 300_000).toBeGreaterThan(Date.now());
      await world.redis.lrem('redisson_lock_queue:{lock:q}', 1, java);
      await world.redis.zrem('redisson_lock_timeout:{lock:q}', java);
      expect(await backend.refreshWaiters([waiter], 5_000)).toEqual([true]);
      expect(await score()).toBeLessThan(Date.now() + 6_000);
    });

    it('lets a waiter that Java dropped enter the queue again when it asks', async () => {
      const { backend, lock } = await take('fair', { key: 'lock:q' });
      const waiter = { ...lock, owner: world.owner(), waiterTimeout: 5_000 };
      await backend.acquire(waiter);
      await world.redis.del('redisson_lock_queue:{lock:q}', 'redisson_lock_timeout:{lock:q}');
      expect(await backend.refreshWaiters([waiter], 5_000)).toEqual([false]);
      await backend.acquire(waiter);
      expect(await backend.inspect('lock:q')).toMatchObject({ queue: [waiter.owner] });
    });

    it('skips a Java waiter whose time is over', async () => {
      const { backend, lock } = await take('fair', { key: 'lock:q' });
      await world.redis.rpush('redisson_lock_queue:{lock:q}', java);
      await world.redis.zadd('redisson_lock_timeout:{lock:q}', Date.now() - 1, java);
      await backend.release(lock);
      expect(await backend.acquire({ ...lock, owner: `${CLIENT}:77` })).toMatchObject({ acquired: true });
    });
  });
});

/** The fields of a JSON message may be in any order. */
function sorted(message: string): string {
  const [channel, text = ''] = message.split(/ (.*)/s);
  return text.startsWith('{') ? `${channel} ${JSON.stringify(Object.entries(JSON.parse(text)).sort())}` : message;
}
