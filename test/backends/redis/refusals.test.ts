import { inspect } from 'node:util';
import { until } from '../../support/until.js';
import { CLIENT, failure, RedisWorld, succeeds } from './redis-world.js';

/** What Redis answers with an error, and which callers that affects. */
describe('what Redis refuses', () => {
  const world = new RedisWorld();

  afterEach(async () => {
    await world.redis.config('SET', 'maxmemory', '0');
    await world.redis.flushall();
  });

  it('for a key of another type is refused to that lock alone', async () => {
    const backend = world.backend();
    const locks = Array.from({ length: 20 }, () => world.request());
    await world.redis.set(locks[7].key, 'a value of yours');
    const outcomes = await Promise.allSettled(locks.map((lock) => backend.acquire(lock)));
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    const error = await failure(backend.acquire(locks[7]));
    expect(error).toMatchObject({ kind: 'key', outcome: 'refused' });
    expect(error.message).toContain(locks[7].key);
    expect(error.message).toMatch(/is not a lock of this kind but a string\. Choose another lock name/);
    expect(await world.redis.get(locks[7].key)).toBe('a value of yours');
  });

  it.each([
    ['release', 'reentrant'],
    ['renew', 'reentrant'],
    ['release', 'write'],
    ['renew', 'read'],
  ] as const)('for a key of another type is refused to a %s of a %s lock alone', async (verb, type) => {
    const backend = world.backend();
    const [good, bad] = [world.request(type), world.request(type)];
    await backend.acquire(good);
    await world.redis.set(bad.key, 'a value of yours');
    const [fine, refused] = await Promise.allSettled([backend[verb](good), backend[verb](bad)]);
    expect(fine.status).toBe('fulfilled');
    expect(refused).toMatchObject({ status: 'rejected', reason: { kind: 'key' } });
  });

  it('names the companion of a lock that is of another type, alone and in a batch', async () => {
    const backend = world.backend();
    const [one, two] = [world.request('fair'), world.request('fair')];
    await world.redis.set(`redisson_lock_queue:{${two.key}}`, 'no list');
    const [fine, refused] = await Promise.allSettled([backend.acquire(one), backend.acquire(two)]);
    expect(fine.status).toBe('fulfilled');
    const message = expect.stringContaining(`redisson_lock_queue:{${two.key}} is not a lock of this kind but a string`);
    expect(refused).toMatchObject({ status: 'rejected', reason: { kind: 'key', message } });
    expect(await failure(backend.acquire(two))).toMatchObject({ kind: 'key', message });
  });

  it('for a key of another type is refused to single commands, with the key', async () => {
    const backend = world.backend();
    const lock = world.request();
    await world.redis.set(lock.key, 'a value of yours');
    const transfer = {
      key: lock.key,
      type: lock.type,
      from: lock.owner,
      to: world.owner(),
      leaseTime: 1_000,
      reserve: 0,
    };
    for (const call of [
      backend.inspect(lock.key),
      backend.forceRelease(lock.key),
      backend.transfer(transfer),
      backend.acquireAll([lock]),
    ]) {
      const error = await failure(call);
      expect(error.kind).toBe('key');
      expect(error.message).toContain(lock.key);
    }
    expect(await world.redis.get(lock.key)).toBe('a value of yours');
  });

  it('to a user without rights on one name is refused for that name alone', async () => {
    const rights = ['~lock:*', '~nestjs_redis_lock_*', '&*', '+@all', '-@dangerous', '+info'];
    await world.redis.acl('SETUSER', 'clerk', 'on', '>secret-word', ...rights);
    const backend = world.backend({ connection: world.server.url.replace('//', '//clerk:secret-word@') });
    const good = [world.request(), world.request()];
    const bad = world.request('reentrant', { key: 'foreign:1' });
    const outcomes = await Promise.allSettled([good[0], bad, good[1]].map((lock) => backend.acquire(lock)));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await failure(backend.acquire(bad))).toMatchObject({ kind: 'denied' });
    expect(await backend.release(good[0])).toMatchObject({ released: true });
  });

  it('to a user who may not publish is still executed, without a message', async () => {
    await world.redis.acl('SETUSER', 'mute', 'on', '>secret-word', 'allkeys', 'allchannels', '+@all', '-publish');
    const backend = world.backend({ connection: world.server.url.replace('//', '//mute:secret-word@') });
    for (const type of ['reentrant', 'fenced', 'fair', 'read', 'write'] as const) {
      const lock = world.request(type);
      const listening = backend.subscribe(lock.key, type, CLIENT, () => {});
      await listening.ready;
      await backend.acquire(lock);
      expect(await backend.release(lock)).toEqual({ released: true, listeners: 0, published: false, resent: false });
      listening.close();
    }
    const writer = world.request('write');
    await backend.acquire(writer);
    await backend.acquire({ ...writer, type: 'read' });
    const transfer = {
      key: writer.key,
      type: writer.type,
      from: writer.owner,
      to: world.owner(),
      leaseTime: 60_000,
      reserve: 0,
    };
    // It continues to read, so nobody can write at the same time.
    expect(await backend.transfer(transfer)).toBeUndefined();
    expect(await backend.inspect(writer.key)).toMatchObject({ mode: 'read', owners: [{ owner: writer.owner }] });
  });

  it('to a wrong password is denied, and no message contains that password', async () => {
    await world.redis.acl('SETUSER', 'clerk', 'on', '>secret-word', 'allkeys', 'allchannels', '+@all');
    const url = world.server.url.replace('//', '//clerk:wrong-word@');
    const backend = world.backend({ connection: url, commandTimeout: 1_000 });
    const error = await failure(backend.acquire(world.request()));
    expect(error.kind).toMatch(/denied|unavailable/);
    backend.subscribe('lock:x', 'reentrant', 'client', () => {});
    await until(() => world.errors.some((reported) => /WRONGPASS/.test(String(reported))));
    for (const text of [backend.description, ...[error, ...world.errors].map((each) => inspect(each, { depth: 9 }))]) {
      expect(text).not.toMatch(/wrong-word|secret-word/);
    }
  });

  it('at its memory limit is refused to acquisitions, while renewals and releases still work', async () => {
    const backend = world.backend();
    const held = world.request();
    await backend.acquire(held);
    await world.redis.config('SET', 'maxmemory', '1');
    const lock = world.request();
    const error = await failure(backend.acquire(lock));
    expect(error).toMatchObject({ kind: 'unavailable', outcome: 'refused' });
    expect(error.message).toContain('OOM');
    expect(await world.redis.exists(lock.key)).toBe(0);
    expect(await backend.renew(held)).toBe(true);
    expect(await backend.release(held)).toMatchObject({ released: true });
  });

  it('on a replica is unavailable, and ends the connection that led there', async () => {
    const backend = world.backend();
    const lock = world.request();
    await backend.acquire(lock);
    const [before] = await world.connections('normal');
    await world.redis.replicaof('127.0.0.1', '1');
    try {
      expect(await failure(backend.renew(lock))).toMatchObject({ kind: 'unavailable', outcome: 'refused' });
      await until(async () => !(await world.connections('normal')).includes(before));
    } finally {
      await world.redis.replicaof('NO', 'ONE');
    }
    expect(await backend.renew(lock)).toBe(true);
  });

  it('on a replica ends a connection once, and less and less often while the next ones lead there as well', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => void warnings.push(warning);
    process.on('warning', onWarning);
    const backend = world.backend();
    const locks = Array.from({ length: 12 }, () => world.request());
    await Promise.all(locks.map((lock) => backend.acquire(lock)));
    const connected = async () =>
      Number(/total_connections_received:(\d+)/.exec(await world.redis.info('stats'))?.[1] ?? 0);
    await world.redis.replicaof('127.0.0.1', '1');
    try {
      const before = await connected();
      const end = performance.now() + 3_000;
      const ask = async (lock: (typeof locks)[number], n: number) => {
        while (performance.now() < end) {
          await (n % 2 === 0 ? failure(backend.renew(lock)) : failure(backend.acquire(world.request())));
          await new Promise((resolve) => setTimeout(resolve, 20 + n));
        }
      };
      await Promise.all(locks.map(ask));
      expect(await connected()).toBeGreaterThan(before);
      // Pauses of about 50, 100, 200, 400 and 800 ms, and then one a second.
      expect((await connected()) - before).toBeLessThan(12);
      expect(warnings).toEqual([]);
    } finally {
      process.off('warning', onWarning);
      await world.redis.replicaof('NO', 'ONE');
    }
    await until(() => succeeds(backend.acquire(world.request())));
  });

  it('while a script runs forever is unavailable', async () => {
    const backend = world.backend({ commandTimeout: 3_000 });
    await backend.acquire(world.request());
    await world.redis.config('SET', 'lua-time-limit', '50');
    const endless = world.server.client();
    const run = endless.eval('while true do end', 0).catch(() => {});
    await until(() =>
      world.redis.ping().then(
        () => false,
        () => true,
      ),
    );
    const error = await failure(backend.acquire(world.request()));
    await world.redis.script('KILL');
    await run;
    expect(error).toMatchObject({ kind: 'unavailable', outcome: 'refused' });
    expect(error.message).toContain('BUSY');
    await world.redis.config('SET', 'lua-time-limit', '5000');
  });
});
