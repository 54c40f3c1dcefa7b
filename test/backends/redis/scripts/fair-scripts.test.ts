import { AHEAD, CLOCK, expectBetween, LATER, ScriptWorld } from './script-world.js';

const MINUTE = 60_000;
const KEYS = ['a', 'queue', 'timeouts', 'heartbeats'];

class FairWorld extends ScriptWorld {
  /**
   * Puts owners into the queue, each with the time from now for which it counts as alive. Java's owners send no
   * heartbeats.
   */
  async wait(...waiters: readonly { owner: string; for?: number; java?: boolean }[]): Promise<number> {
    const now = await this.now();
    for (const { owner, for: time = MINUTE, java = false } of waiters) {
      await this.redis.rpush('queue', owner);
      await this.redis.zadd('timeouts', now + time, owner);
      if (!java) await this.redis.zadd('heartbeats', now + time, owner);
    }
    return now;
  }

  waiting(): Promise<string[]> {
    return this.redis.lrange('queue', 0, -1);
  }
}

describe('acquire-fair', () => {
  const world = new FairWorld();
  const acquire = (owner: string, waiterTimeout = 0) =>
    world.run('acquire-fair', [CLOCK, ...KEYS], [LATER, 0, MINUTE, 0, waiterTimeout, owner]);

  it('gives free locks of a batch to their owners, and counts their tokens', async () => {
    await world.redis.set(CLOCK, 1);
    const keys = [CLOCK, ...KEYS, 'b', 'queueOfB', 'timeoutsOfB', 'heartbeatsOfB'];
    const reply = (await world.run('acquire-fair', keys, [LATER, 0, MINUTE, 3, MINUTE, 'c:1', 'c:2'])) as number[];
    expect(reply).toEqual([3, expect.any(Number), reply[1] + 4]);
    expect(await world.redis.get(CLOCK)).toBe(String(reply[1] + 7));
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    expect(await world.redis.hgetall('b')).toEqual({ 'c:2': '1' });
    await world.expectLease('a', MINUTE);
    expect((await world.redis.keys('*')).sort()).toEqual(['a', 'b', CLOCK]);
  });

  it('lists the types of the keys of a lock that fails', async () => {
    await world.redis.set('a', 'of somebody else');
    await world.wait({ owner: 'c:1' });
    const failed = [[expect.stringContaining('WRONGTYPE'), 'string', 'list', 'zset', 'zset']];
    expect(await acquire('c:1')).toEqual([0, failed]);
    expect(await world.run('release-fair', KEYS, ['PUBLISH', 'c:1'])).toEqual([failed]);
    expect(await world.redis.exists(CLOCK)).toBe(0);
  });

  it('gives a free lock to the head of the queue only, which then leaves the queue', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.wait({ owner: 'c:1' }, { owner: 'c:2' });
    const [reserved, [left, head]] = (await acquire('c:2')) as [number, [number, string]];
    expect([reserved, head]).toEqual([0, 'c:1']);
    expectBetween(left, MINUTE - 5_000, MINUTE);
    expect(await world.redis.exists('a')).toBe(0);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD));
    expect(await acquire('c:1')).toEqual([0, AHEAD + 1]);
    expect(await world.waiting()).toEqual(['c:2']);
    expect(Object.keys(await world.scores('timeouts'))).toEqual(['c:2']);
    expect(Object.keys(await world.scores('heartbeats'))).toEqual(['c:2']);
  });

  it('gives its holder a fresh lease although others wait', async () => {
    await world.redis.hset('a', 'c:9', '1');
    await world.wait({ owner: 'c:1' });
    expect(await acquire('c:9')).toEqual([0, expect.any(Number)]);
    await world.expectLease('a', MINUTE);
    expect(await world.waiting()).toEqual(['c:1']);
  });

  it('names the holder to the head of the queue as well', async () => {
    await world.redis.hset('a', 'c:9', '1');
    await world.wait({ owner: 'c:1' });
    expect(await acquire('c:1')).toEqual([0, [-1, 'c:9']]);
  });

  it('passes over owners that count as dead, and removes them', async () => {
    await world.wait({ owner: 'c:1', for: -1 }, { owner: 'j:1', for: -1, java: true }, { owner: 'c:2' });
    expect(await acquire('c:2')).toEqual([0, expect.any(Number)]);
    expect(await world.redis.exists('queue', 'timeouts', 'heartbeats')).toBe(0);
  });

  it('passes over an owner in the ms in which its time ends', async () => {
    const now = await world.now();
    const ends = Array.from({ length: 5_000 }, (_, i) => now + i);
    await world.redis.rpush('queue', ...ends.map((end) => `c:${end}`));
    await world.redis.zadd('heartbeats', ...ends.flatMap((end) => [end, `c:${end}`]));
    expect(await acquire('d:1')).toEqual([0, [1, expect.stringMatching(/^c:/)]]);
  });

  it('lets an owner wait at the end of the queue for a while, if it wants to', async () => {
    await world.redis.hset('a', 'c:9', '1');
    const before = await world.now();
    expect(await acquire('c:1')).toEqual([0, [-1, 'c:9']]);
    expect(await world.redis.exists('queue', 'timeouts', 'heartbeats')).toBe(0);
    await acquire('c:1', MINUTE);
    await acquire('c:2', MINUTE);
    const after = await world.now();
    expect(await world.waiting()).toEqual(['c:1', 'c:2']);
    for (const key of ['timeouts', 'heartbeats']) {
      const scores = await world.scores(key);
      expect(Object.keys(scores)).toEqual(['c:1', 'c:2']);
      expectBetween(scores['c:1'], before + MINUTE, after + MINUTE);
    }
    await world.expectLease('heartbeats', MINUTE);
  });

  it('keeps the place of an owner that asks again, and lets it stay longer', async () => {
    await world.redis.hset('a', 'c:9', '1');
    const now = await world.wait({ owner: 'c:1', for: 10_000 }, { owner: 'c:2', for: 3 * MINUTE });
    await world.redis.pexpire('heartbeats', 3 * MINUTE);
    await acquire('c:1', MINUTE);
    await acquire('c:2', MINUTE);
    const after = await world.now();
    expect(await world.waiting()).toEqual(['c:1', 'c:2']);
    const [timeouts, heartbeats] = [await world.scores('timeouts'), await world.scores('heartbeats')];
    expectBetween(timeouts['c:1'], now + MINUTE, after + MINUTE);
    expect(timeouts['c:2']).toBe(now + 3 * MINUTE);
    expectBetween(heartbeats['c:1'], now + MINUTE, after + MINUTE);
    expectBetween(heartbeats['c:2'], now + MINUTE, after + MINUTE);
    await world.expectLease('heartbeats', 3 * MINUTE);
  });

  it('lets an owner that counted as dead wait at the end', async () => {
    await world.redis.hset('a', 'c:9', '1');
    const now = await world.wait({ owner: 'c:1' }, { owner: 'c:2' }, { owner: 'c:3' });
    await world.redis.zadd('heartbeats', now - 1, 'c:2'); // its timeout for Java is later
    await acquire('c:2', MINUTE);
    expect(await world.waiting()).toEqual(['c:1', 'c:3', 'c:2']);
  });

  it('lets an owner of which only a heartbeat is left wait at the end', async () => {
    await world.redis.hset('a', 'c:9', '1');
    const now = await world.wait({ owner: 'c:1' });
    await world.redis.zadd('heartbeats', now + MINUTE, 'c:2');
    await acquire('c:2', MINUTE);
    expect(await world.waiting()).toEqual(['c:1', 'c:2']);
    expect(Object.keys(await world.scores('timeouts'))).toEqual(['c:1', 'c:2']);
  });

  it('gives an owner behind Java owners a timeout that these can make shorter by 300 s each', async () => {
    await world.redis.hset('a', 'c:9', '1');
    const now = await world.wait(
      { owner: 'j:1', java: true },
      { owner: 'j:2', java: true },
      { owner: 'c:1', for: 2 * MINUTE },
    );
    await acquire('c:2', MINUTE);
    const { 'c:2': timeout } = await world.scores('timeouts');
    expectBetween(timeout, now + MINUTE + 600_000, (await world.now()) + MINUTE + 600_000);
    const { 'c:2': alive } = await world.scores('heartbeats');
    expectBetween(alive, now + MINUTE, (await world.now()) + MINUTE);
  });

  it('gives an owner behind a Java owner a timeout after that one', async () => {
    await world.redis.hset('a', 'c:9', '1');
    const now = await world.wait({ owner: 'j:1', java: true, for: 20 * MINUTE });
    await acquire('c:1', MINUTE);
    expect((await world.scores('timeouts'))['c:1']).toBe(now + 21 * MINUTE);
  });

  it('keeps an owner in the queue that asks again when the memory is full', async () => {
    await world.redis.hset('a', 'c:9', '1');
    const now = await world.wait({ owner: 'c:1', for: 5_000 }, { owner: 'c:2', for: 5_000 });
    await world.withFullMemory(async () => {
      expect(await acquire('c:1', MINUTE)).toEqual([0, [-1, 'c:9']]);
    });
    expect(await world.waiting()).toEqual(['c:1', 'c:2']);
    const { 'c:1': first, 'c:2': second } = await world.scores('heartbeats');
    expectBetween(first, now + MINUTE, (await world.now()) + MINUTE);
    expect(second).toBe(now + 5_000);
  });
});

describe('release-fair', () => {
  const world = new FairWorld();

  it('tells the head of the queue, and says how many listened', async () => {
    await world.redis.hset('a', 'c:1', '1');
    await world.wait({ owner: 'c:2', for: -1 }, { owner: 'c:3' }, { owner: 'c:4' });
    const heard = await world.published(async () => {
      expect(await world.run('release-fair', KEYS, ['PUBLISH', 'c:1'])).toEqual([[1, 'c:3']]);
    });
    expect(heard).toEqual(['redisson_lock__channel:{a}:c:3 0']);
    expect(await world.redis.exists('a')).toBe(0);
    expect(await world.waiting()).toEqual(['c:3', 'c:4']);
  });

  it('tells waiters of other types when the queue is empty, and says how many listened', async () => {
    await world.redis.hset('a', 'c:1', '1');
    const heard = await world.published(async () => {
      expect(await world.run('release-fair', KEYS, ['PUBLISH', 'c:1'])).toEqual([[1]]);
    });
    expect(heard).toEqual(['redisson_lock__channel:{a} 0']);
  });

  it('answers for each lock of a batch', async () => {
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.hset('b', 'd:1', '1');
    const before = await world.now();
    const keys = [...KEYS, 'b', 'queueOfB', 'timeoutsOfB', 'heartbeatsOfB'];
    const reply = (await world.run('release-fair', keys, ['PUBLISH', 'c:1', 'c:1'])) as [[number], [number, number]];
    expect(reply).toEqual([[0], [-1, expect.any(Number)]]);
    expectBetween(reply[1][1], before, await world.now());
    expect(await world.redis.exists('a', 'b')).toBe(1);
  });
});

describe('remove-fair-waiter-4', () => {
  const world = new FairWorld();
  const remove = (owner: string) => world.run('remove-fair-waiter-4', KEYS, ['PUBLISH', owner]);

  it('tells the next owner when the head leaves a free lock', async () => {
    await world.wait({ owner: 'c:1' }, { owner: 'c:2' });
    const heard = await world.published(async () => {
      expect(await remove('c:1')).toBe(1);
    });
    expect(heard).toEqual(['redisson_lock__channel:{a}:c:2 0']);
    expect(await world.waiting()).toEqual(['c:2']);
  });

  it('tells nobody when another owner leaves, or the lock is held, or the owner did not wait', async () => {
    await world.wait({ owner: 'c:1' }, { owner: 'c:2' }, { owner: 'c:3' });
    const heard = await world.published(async () => {
      expect(await remove('c:2')).toBe(1);
      expect(await remove('c:9')).toBe(0);
      await world.redis.hset('a', 'd:1', '1');
      expect(await remove('c:1')).toBe(1);
    });
    expect(heard).toEqual([]);
    expect(await world.waiting()).toEqual(['c:3']);
    expect(Object.keys(await world.scores('heartbeats'))).toEqual(['c:3']);
  });
});

describe('refresh-fair-waiters-4', () => {
  const world = new FairWorld();
  const refresh = (...owners: string[]) =>
    world.run('refresh-fair-waiters-4', KEYS, ['PUBLISH', 2 * MINUTE, ...owners]);

  it('keeps the owners that wait, and says which have lost their place', async () => {
    const now = await world.wait({ owner: 'c:1' }, { owner: 'c:2' }, { owner: 'c:3', for: -1 });
    await world.redis.zadd('heartbeats', now + MINUTE, 'c:4');
    await world.redis.hset('a', 'd:1', '1');
    const heard = await world.published(async () => {
      expect(await refresh('c:4', 'c:3', 'c:1')).toEqual([0, 0, 1]);
    });
    expect(heard).toEqual([]);
    expect(await world.waiting()).toEqual(['c:1', 'c:2']);
    const heartbeats = await world.scores('heartbeats');
    expect(Object.keys(heartbeats).sort()).toEqual(['c:1', 'c:2']);
    expectBetween(heartbeats['c:1'], now + 2 * MINUTE, (await world.now()) + 2 * MINUTE);
    expect(heartbeats['c:2']).toBe(now + MINUTE);
    await world.expectLease('heartbeats', 2 * MINUTE);
  });

  it('gives owners behind Java owners a timeout that these can make shorter by 300 s each', async () => {
    const now = await world.wait(
      { owner: 'c:1' },
      { owner: 'j:1', java: true },
      { owner: 'c:2' },
      { owner: 'j:2', java: true },
      { owner: 'c:3' },
    );
    expect(await refresh('c:1', 'c:3')).toEqual([1, 1]);
    const timeouts = await world.scores('timeouts');
    const after = await world.now();
    expectBetween(timeouts['c:1'], now + 2 * MINUTE, after + 2 * MINUTE);
    expect(timeouts['c:2']).toBe(now + MINUTE);
    expectBetween(timeouts['c:3'], now + 2 * MINUTE + 600_000, after + 2 * MINUTE + 600_000);
  });

  it('keeps them when the memory is full', async () => {
    const now = await world.wait({ owner: 'c:1' }, { owner: 'c:2' });
    await world.redis.hset('a', 'd:1', '1');
    await world.withFullMemory(async () => {
      expect(await refresh('c:2', 'c:1')).toEqual([1, 1]);
    });
    for (const key of ['timeouts', 'heartbeats']) {
      const { 'c:1': first, 'c:2': second } = await world.scores(key);
      for (const time of [first, second]) expectBetween(time, now + 2 * MINUTE, (await world.now()) + 2 * MINUTE);
    }
  });

  it('tells the head again while the lock is free', async () => {
    await world.wait({ owner: 'c:1', for: -1 }, { owner: 'c:2' }, { owner: 'c:3' });
    const heard = await world.published(() => refresh('c:3'));
    expect(heard).toEqual(['redisson_lock__channel:{a}:c:2 0']);
  });
});
