import { RedisWorld } from './redis-world.js';

describe('fencing tokens in Redis', () => {
  const world = new RedisWorld();

  async function token(backend = world.backend(), type: 'reentrant' | 'fenced' = 'reentrant', key = world.key()) {
    const lock = world.request(type, { key });
    const reply = await backend.acquire(lock);
    await backend.release(lock);
    if (!reply.acquired) throw new Error('busy');
    return reply.token;
  }

  it.each(['reentrant', 'fenced'] as const)('of %s locks continue to grow after Redis lost its data', async (type) => {
    const backend = world.backend();
    const key = world.key();
    const before = await token(backend, type, key);
    await world.redis.flushall();
    expect(await token(backend, type, key)).toBeGreaterThan(before);
    await world.redis.flushall();
    expect(await token(world.backend(), type, key)).toBeGreaterThan(before);
  });

  it.each(['reentrant', 'fenced'] as const)(
    'of %s locks start above all that were given before a loss of all data, to a process that has seen none of them',
    async (type) => {
      const keys = Array.from({ length: 600 }, () => world.key());
      const before = new Map<string, number>();
      const busy = world.backend();
      for (let round = 0; round < 5; round++) {
        for (const reply of await Promise.all(
          keys.map(async (key) => ({ key, reply: await busy.acquire(world.request(type, { key, reserve: 8_192 })) })),
        )) {
          if (!reply.reply.acquired) throw new Error('busy');
          before.set(reply.key, reply.reply.token + reply.reply.reserved);
        }
        await Promise.all(keys.map((key) => busy.forceRelease(key)));
      }
      const stranger = world.backend();
      await stranger.inspect(keys[0]); // connected
      await world.redis.flushall();
      const after = await Promise.all(keys.map((key) => token(stranger, type, key)));
      expect(keys.filter((key, n) => after[n] <= (before.get(key) as number))).toEqual([]);
    },
    60_000,
  );

  it.each(['reentrant', 'fenced'] as const)(
    'of %s locks start ahead after a loss of all data, also where a quorum has raised them first',
    async (type) => {
      const [key, backend] = [world.key(), world.backend()];
      const before = await token(backend, type, key);
      await world.redis.flushall();
      const [seconds, micros] = await world.redis.time();
      await backend.raiseToken(key, type, before);
      expect(await token(world.backend(), type, key)).toBeGreaterThan(seconds * 1e6 + Number(micros) + 150_000);
    },
  );

  it('of a fenced lock start right above the clock of all locks, without a jump', async () => {
    const backend = world.backend();
    await token(backend);
    const first = await token(backend, 'fenced');
    expect(first).toBe(Number(await world.redis.get('nestjs_redis_lock_clock')) + 1);
  });

  it('stay above what this process has seen, whatever the server lost', async () => {
    const backend = world.backend();
    const ahead = Date.now() * 1_000 + 3_600_000_000;
    await world.redis.set('nestjs_redis_lock_clock', ahead);
    expect(await token(backend)).toBe(ahead + 1);
    await world.redis.flushall();
    expect(await token(backend)).toBeGreaterThan(ahead + 1);
    await world.redis.flushall();
  });

  it('stay above the clock in Redis when the clock of the server was set back', async () => {
    const ahead = Date.now() * 1_000 + 3_600_000_000;
    await world.redis.set('nestjs_redis_lock_clock', ahead);
    expect(await token()).toBe(ahead + 1);
    await world.redis.del('nestjs_redis_lock_clock');
  });

  it.each(['reentrant', 'fenced'] as const)(
    'of %s locks are never given twice, however close what a process has seen is to the last one',
    async (type) => {
      const [ann, bob] = [world.backend(), world.backend()];
      const key = world.key();
      const ahead = Date.now() * 1_000 + 3_600_000_000; // so that the server's clock does not matter
      await bob.raiseToken(key, type, ahead);
      const tokens: number[] = [];
      for (const backend of [ann, bob, ann, ann, bob, bob, ann]) tokens.push(await token(backend, type, key));
      await world.redis.flushall();
      for (const [n, value] of tokens.entries()) expect(value).toBeGreaterThan(n === 0 ? ahead : tokens[n - 1]);
    },
  );

  it('are kept to the last digit', async () => {
    const last = await token();
    expect(await world.redis.get('nestjs_redis_lock_clock')).toBe(String(last));
    expect(last).toBeGreaterThan(1_700_000_000_000_000);
  });

  const batches = (['reentrant', 'fair', 'read', 'write'] as const).flatMap((type) =>
    [0, 10].map((reserve) => [type, reserve] as const),
  );

  it.each(batches)(
    'are given one by one to the %s locks of a batch, with %d reserved for each',
    async (type, reserve) => {
      const backend = world.backend();
      await world.redis.set('nestjs_redis_lock_clock', 1);
      const replies = await Promise.all(
        Array.from({ length: 300 }, () => backend.acquire(world.request(type, { reserve }))),
      );
      const tokens = replies.map((reply) => (reply.acquired ? reply.token : 0)).sort((a, b) => a - b);
      expect(tokens[0]).toBeGreaterThan(1_700_000_000_000_000);
      for (const [n, value] of tokens.slice(1).entries()) expect(value - tokens[n]).toBeGreaterThan(reserve);
      const key = 'nestjs_redis_lock_clock';
      expect(Number(await world.redis.get(key))).toBe(tokens[tokens.length - 1] + reserve);
    },
  );

  it('are reserved as long as the clock leads by no more than a tenth of a second', async () => {
    const backend = world.backend();
    await world.redis.set('nestjs_redis_lock_clock', 1);
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => backend.acquire(world.request('reentrant', { reserve: 20_000 }))),
    );
    for (const reply of replies)
      expect(reply).toMatchObject({ acquired: true, reserved: replies[0].acquired && replies[0].reserved });
    const [seconds, micros] = (await world.redis.time()).map(Number);
    const clock = Number(await world.redis.get('nestjs_redis_lock_clock'));
    expect(clock - (seconds * 1_000_000 + micros)).toBeLessThanOrEqual(100_000);
    expect(replies[0]).toMatchObject({ acquired: true, reserved: 4_999 });
  });

  it('need no key for each lock', async () => {
    await world.redis.flushall();
    const backend = world.backend();
    for (let n = 0; n < 50; n++) await token(backend);
    expect(await world.keys()).toEqual(['nestjs_redis_lock_clock']);
  });
});
