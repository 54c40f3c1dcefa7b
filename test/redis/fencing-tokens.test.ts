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

  it.each(['reentrant', 'fenced'] as const)('of %s locks go on growing after Redis lost its data', async (type) => {
    const backend = world.backend();
    const key = world.key();
    const before = await token(backend, type, key);
    await world.redis.flushall();
    expect(await token(backend, type, key)).toBeGreaterThan(before);
    await world.redis.flushall();
    expect(await token(world.backend(), type, key)).toBeGreaterThan(before);
  });

  it('stay above what this process has seen, whatever the server lost', async () => {
    const backend = world.backend();
    const reply = await backend.acquire(world.request('reentrant', { reserve: 900_000 }));
    if (!reply.acquired) throw new Error('busy');
    await world.redis.flushall();
    expect(await token(backend)).toBeGreaterThan(reply.token + reply.reserved);
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
      const ahead = Date.now() * 1_000 + 3_600_000_000; // so that the clock of the server plays no part
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

  it.each([0, 10])('are given one by one to the locks of a batch, with %d reserved for each', async (reserve) => {
    const backend = world.backend();
    const replies = await Promise.all(
      Array.from({ length: 300 }, () => backend.acquire(world.request('reentrant', { reserve }))),
    );
    const tokens = replies.map((reply) => (reply.acquired ? reply.token : 0)).sort((a, b) => a - b);
    expect(tokens[0]).toBeGreaterThan(1_700_000_000_000_000);
    for (const [n, value] of tokens.slice(1).entries()) expect(value - tokens[n]).toBeGreaterThan(reserve);
    const key = 'nestjs_redis_lock_clock';
    expect(Number(await world.redis.get(key))).toBe(tokens[tokens.length - 1] + reserve);
  });

  it('are reserved as long as the clock leads by no more than a second', async () => {
    const backend = world.backend();
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => backend.acquire(world.request('reentrant', { reserve: 200_000 }))),
    );
    for (const reply of replies)
      expect(reply).toMatchObject({ acquired: true, reserved: replies[0].acquired && replies[0].reserved });
    const [seconds, micros] = (await world.redis.time()).map(Number);
    const clock = Number(await world.redis.get('nestjs_redis_lock_clock'));
    expect(clock - (seconds * 1_000_000 + micros)).toBeLessThanOrEqual(1_000_000);
    expect(replies[0]).toMatchObject({ reserved: expect.any(Number) });
  });

  it('need no key for each lock', async () => {
    await world.redis.flushall();
    const backend = world.backend();
    for (let n = 0; n < 50; n++) await token(backend);
    expect(await world.keys()).toEqual(['nestjs_redis_lock_clock']);
  });
});
