import { AHEAD, CLOCK, expectBetween, LATER, ScriptWorld } from './script-world.js';

const MINUTE = 60_000;
const READ_LEASE = (owner: string, lock = 'a') => `{${lock}}:${owner}:rwlock_timeout:1`;

class ReadWriteWorld extends ScriptWorld {
  /** Readers of the lock `a`, each with the time for which it may read. The lock lasts as long as the longest. */
  async read(readers: Record<string, number>): Promise<void> {
    const now = await this.now();
    await this.redis.hset('a', 'mode', 'read');
    for (const [owner, lease] of Object.entries(readers)) {
      await this.redis.hset('a', owner, '1');
      if (lease > 0) await this.redis.set(READ_LEASE(owner), '1', 'PXAT', now + lease);
    }
    await this.redis.pexpireat('a', now + Math.max(1_000, ...Object.values(readers)));
  }

  async write(owner: string, lease = MINUTE): Promise<void> {
    await this.redis.hset('a', { mode: 'write', [`${owner}:write`]: '1' });
    await this.redis.pexpire('a', lease);
  }

  /** Writers in the line of the lock `a`, in order, each with the time from now after which its place lapses. */
  wait(writers: Record<string, number>): Promise<number> {
    return this.addPlaces(writers, 't write');
  }

  /** When the places of the line lapse. */
  waiting(): Promise<Record<string, number>> {
    return this.scores('nestjs_redis_lock_turns_until:{a}');
  }
}

describe('acquire-read', () => {
  const world = new ReadWriteWorld();
  const acquire = (owner: string, { lease = MINUTE, past = '0' } = {}) =>
    world.run('acquire-read', [CLOCK, 'a', READ_LEASE(owner)], [LATER, 0, lease, 0, past, owner]);

  it('gives free locks of a batch to their readers, and counts their tokens', async () => {
    await world.redis.set(CLOCK, 1);
    const keys = [CLOCK, 'a', READ_LEASE('c:1'), 'b', READ_LEASE('c:2', 'b')];
    const reply = (await world.run('acquire-read', keys, [LATER, 0, MINUTE, 3, '0', 'c:1', 'c:2'])) as number[];
    expect(reply).toEqual([3, expect.any(Number), reply[1] + 4]);
    expect(await world.redis.get(CLOCK)).toBe(String(reply[1] + 7));
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'read', 'c:1': '1' });
    expect(await world.redis.hgetall('b')).toEqual({ mode: 'read', 'c:2': '1' });
    for (const key of ['a', 'b', READ_LEASE('c:1'), READ_LEASE('c:2', 'b')]) await world.expectLease(key, MINUTE);
  });

  it('lets nobody read whose lease may not be written, and leaves only other readers in the lock', async () => {
    const asLimited = () =>
      world.runWithout(['set'], 'acquire-read', [CLOCK, 'a', READ_LEASE('c:1')], [LATER, 0, MINUTE, 0, '0', 'c:1']);
    await world.redis.set(CLOCK, 1);
    expect(await asLimited()).toEqual([0, [[expect.any(String), 'none', 'none']]]);
    expect(await world.keys()).toEqual([CLOCK]);
    await world.read({ 'd:1': 2 * MINUTE });
    expect(await asLimited()).toEqual([0, [[expect.any(String), 'hash', 'none']]]);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'read', 'd:1': '1' });
  });

  it('lets readers share a lock, which lasts as long as the longest of them', async () => {
    await world.read({ 'd:1': 2 * MINUTE });
    expect(await acquire('c:1')).toEqual([0, expect.any(Number)]);
    await world.expectLease('a', 2 * MINUTE);
    await world.expectLease(READ_LEASE('c:1'), MINUTE);
    await acquire('c:2', { lease: 3 * MINUTE });
    await world.expectLease('a', 3 * MINUTE);
  });

  it('gives a reader that asks again no shorter lease than it has', async () => {
    await world.read({ 'd:1': MINUTE, 'c:1': 2 * MINUTE });
    for (const lease of [MINUTE, 3 * MINUTE]) {
      await acquire('c:1', { lease });
      const longest = Math.max(lease, 2 * MINUTE);
      for (const key of ['a', READ_LEASE('c:1')]) await world.expectLease(key, longest);
    }
  });

  it('waits for the writer, and names it', async () => {
    await world.write('d:1');
    const [reserved, [left, holder]] = (await acquire('c:1', { past: '1' })) as [number, [number, string]];
    expect([reserved, holder]).toEqual([0, 'd:1']);
    expect(left).toBeGreaterThan(MINUTE - 5_000);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'write', 'd:1:write': '1' });
    expect(await world.redis.exists(CLOCK)).toBe(0);
  });

  it('lets the writer itself read, and keeps the mode', async () => {
    await world.write('c:1');
    expect(await acquire('c:1')).toEqual([0, expect.any(Number)]);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'write', 'c:1:write': '1', 'c:1': '1' });
  });

  it('gives way to a writer that waits, unless it reads already or may pass', async () => {
    await world.wait({ 'd:1': 10_000, 'd:2': MINUTE });
    const [, [left, writer]] = (await acquire('c:1')) as [number, [number, string]];
    expect(writer).toBe('d:1');
    expect(left).toBeLessThanOrEqual(10_000);
    expect(left).toBeGreaterThan(5_000);
    expect(await acquire('c:1', { past: '1' })).toEqual([0, expect.any(Number)]);
    expect(await acquire('c:1')).toEqual([0, expect.any(Number)]);
    await world.redis.del('nestjs_redis_lock_turns:{a}');
    await world.wait({ 'd:3': -1 });
    expect(await acquire('c:2')).toEqual([0, expect.any(Number)]);
  });

  it('gives way although its own lease has ended and left its field', async () => {
    await world.read({ 'e:1': MINUTE, 'c:1': 0 });
    await world.wait({ 'd:1': MINUTE });
    expect(await acquire('c:1')).toEqual([0, [expect.any(Number), 'd:1']]);
  });

  it('does not share a lock of another kind, and says of which kind it is', async () => {
    await world.redis.hset('a', 'd:1', '1');
    expect(await acquire('c:1', { past: '1' })).toEqual([0, [-1, 'd:1', 'reentrant']]);
  });

  it.each([{ mode: 'read', color: 'red' }, { mode: 'idle' }])(
    'does not touch a hash of another program: %j',
    async (hash) => {
      await world.redis.hset('a', hash);
      expect(await acquire('c:1', { past: '1' })).toEqual([0, [[expect.stringContaining('NOTALOCK'), 'hash', 'none']]]);
      expect(await world.redis.hgetall('a')).toEqual(hash);
    },
  );
});

describe('acquire-write', () => {
  const world = new ReadWriteWorld();
  const acquire = (owner: string, { lease = MINUTE } = {}) =>
    world.run('acquire-write', [CLOCK, 'a', READ_LEASE(owner)], [LATER, 0, lease, 0, owner]);

  it('gives free locks of a batch to their writers, and counts their tokens', async () => {
    await world.redis.set(CLOCK, 1);
    await world.wait({ 'c:1': MINUTE, 'e:1': MINUTE });
    const keys = [CLOCK, 'a', READ_LEASE('c:1'), 'b', READ_LEASE('c:2', 'b')];
    const reply = (await world.run('acquire-write', keys, [LATER, 0, MINUTE, 3, 'c:1', 'c:2'])) as number[];
    expect(reply).toEqual([3, expect.any(Number), reply[1] + 4]);
    expect(await world.redis.get(CLOCK)).toBe(String(reply[1] + 7));
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'write', 'c:1:write': '1' });
    expect(await world.redis.hgetall('b')).toEqual({ mode: 'write', 'c:2:write': '1' });
    for (const key of ['a', 'b']) await world.expectLease(key, MINUTE);
    expect(Object.keys(await world.waiting())).toEqual(['e:1']);
  });

  it('waits for the reader with the longest lease, and removes dead readers', async () => {
    await world.read({ 'c:7': MINUTE, 'c:8': 2 * MINUTE, 'c:9': 0 });
    const [reserved, [left, reader]] = (await acquire('c:1')) as [number, [number, string]];
    expect([reserved, reader]).toEqual([0, 'c:8']);
    expect(left).toBeGreaterThan(2 * MINUTE - 5_000);
    expect(left).toBeLessThanOrEqual(2 * MINUTE);
    expect(Object.keys(await world.redis.hgetall('a')).sort()).toEqual(['c:7', 'c:8', 'mode']);
    expect(await world.redis.exists(CLOCK)).toBe(0);
  });

  it('counts each lease of a Java reader', async () => {
    await world.read({ 'j:1': MINUTE });
    await world.redis.hset('a', 'j:1', '3');
    await world.redis.set('{a}:j:1:rwlock_timeout:3', '1', 'PX', 3 * MINUTE);
    const [, [left]] = (await acquire('c:1')) as [number, [number]];
    expect(left).toBeGreaterThan(2 * MINUTE);
  });

  it('takes a lock whose readers are dead', async () => {
    await world.read({ 'c:8': 0, 'c:9': 0 });
    expect(await acquire('c:1')).toEqual([0, expect.any(Number)]);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'write', 'c:1:write': '1' });
  });

  it('waits for another writer, and gives its own a fresh lease', async () => {
    await world.write('d:1');
    expect(await acquire('c:1')).toEqual([0, [expect.any(Number), 'd:1']]);
    await world.redis.pexpire('a', 1_000);
    expect(await acquire('d:1')).toEqual([0, expect.any(Number)]);
    await world.expectLease('a', MINUTE);
  });

  it('keeps a lock for as long as its writer may read', async () => {
    await world.write('c:1');
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.set(READ_LEASE('c:1'), '1', 'PX', 2 * MINUTE);
    await acquire('c:1');
    await world.expectLease('a', 2 * MINUTE);
  });

  it('gives a writer that asks again no shorter lease than it has, and each a fresh one', async () => {
    await world.write('c:1', 2 * MINUTE);
    await acquire('c:1');
    await world.expectLease('a', 2 * MINUTE);
    await acquire('c:1', { lease: 3 * MINUTE });
    await world.expectLease('a', 3 * MINUTE);
  });
});

describe('release-read', () => {
  const world = new ReadWriteWorld();
  const release = (...owners: string[]) =>
    world.run(
      'release-read',
      owners.flatMap((owner) => ['a', READ_LEASE(owner)]),
      ['PUBLISH', CLOCK, ...owners],
    );

  it('frees the lock when the last reader leaves, and wakes a writer', async () => {
    await world.read({ 'c:1': MINUTE });
    const heard = await world.published(async () => {
      expect(await release('c:1')).toEqual([1]);
    });
    expect(heard).toEqual(['redisson_rwlock:{a} 0']);
    expect(await world.redis.keys('*')).toEqual([]);
  });

  it('takes no field for a reader that does not say how often it holds the lock', async () => {
    await world.read({ 'c:1': MINUTE, 'd:1': MINUTE });
    await world.redis.hset('a', 'd:1', 'once');
    expect(await release('c:1')).toEqual([0]);
    expect(await world.redis.exists('a')).toBe(0);
  });

  it('leaves fields that it does not know', async () => {
    await world.read({ 'c:1': MINUTE });
    await world.redis.hset('a', 'last read', 'today');
    expect(await release('c:1')).toEqual([0]);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'read', 'last read': 'today' });
  });

  it('wakes nobody while another reader has a longer lease', async () => {
    await world.read({ 'c:1': MINUTE, 'd:1': 2 * MINUTE });
    const heard = await world.published(async () => {
      expect(await release('c:1')).toEqual([-2]);
    });
    expect(heard).toEqual([]);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'read', 'd:1': '1' });
    await world.expectLease('a', 2 * MINUTE);
    expect(await world.redis.exists(READ_LEASE('c:1'))).toBe(0);
  });

  it('does not read the other leases when its own was not the longest', async () => {
    await world.read({ 'c:1': MINUTE, 'd:1': 2 * MINUTE, 'e:1': 0 });
    await release('c:1');
    expect(Object.keys(await world.redis.hgetall('a')).sort()).toEqual(['d:1', 'e:1', 'mode']);
  });

  it('wakes the waiters if the lock ends earlier without this reader', async () => {
    await world.read({ 'c:1': 2 * MINUTE, 'd:1': MINUTE });
    const heard = await world.published(async () => {
      expect(await release('c:1')).toEqual([-2]);
    });
    expect(heard).toEqual(['redisson_rwlock:{a} 0']);
    await world.expectLease('a', MINUTE);
  });

  it('leaves the lock to its writer', async () => {
    await world.write('c:1');
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.set(READ_LEASE('c:1'), '1', 'PX', 2 * MINUTE);
    const heard = await world.published(async () => {
      expect(await release('c:1')).toEqual([-2]);
    });
    expect(heard).toEqual([]);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'write', 'c:1:write': '1' });
    await world.expectLease('a', MINUTE);
  });

  it('says for each reader of a batch whether it held the lock', async () => {
    await world.read({ 'c:1': MINUTE, 'd:1': MINUTE, 'e:1': 0 });
    const before = await world.now();
    const reply = (await release('c:1', 'd:9', 'e:1', 'd:1')) as [number, [number, number], unknown, number];
    expect(reply).toEqual([-2, [-1, expect.any(Number)], [-1, expect.any(Number)], 0]);
    expectBetween(reply[1][1], before, await world.now());
    expect(await world.redis.exists('a')).toBe(0);
  });
});

describe('release-write', () => {
  const world = new ReadWriteWorld();
  const release = (owner: string) => world.run('release-write', ['a', READ_LEASE(owner)], ['PUBLISH', CLOCK, owner]);

  it('frees the lock, and wakes all who wait', async () => {
    await world.write('c:1');
    const heard = await world.published(async () => {
      expect(await release('c:1')).toEqual([1]);
    });
    expect(heard).toEqual(['redisson_rwlock:{a} 1']);
    expect(await world.redis.exists('a')).toBe(0);
  });

  it('leaves a writer that also reads its read side', async () => {
    await world.write('c:1', 3 * MINUTE);
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.set(READ_LEASE('c:1'), '1', 'PX', MINUTE);
    expect(await release('c:1')).toEqual([0]);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'read', 'c:1': '1' });
    await world.expectLease('a', MINUTE);
  });

  it('says for each writer of a batch whether it held its lock', async () => {
    await world.write('c:1');
    await world.redis.hset('b', { mode: 'write', 'c:2:write': '1' });
    const before = await world.now();
    let reply: unknown;
    const heard = await world.published(async () => {
      const keys = ['a', READ_LEASE('d:1'), 'b', READ_LEASE('c:2', 'b')];
      reply = await world.run('release-write', keys, ['PUBLISH', CLOCK, 'd:1', 'c:2']);
    });
    expect(reply).toEqual([[-1, expect.any(Number)], 1]);
    expect((reply as [number, number][])[0][1]).toBeGreaterThanOrEqual(before);
    expect(heard).toEqual(['redisson_rwlock:{b} 1']);
    expect(await world.redis.exists('a', 'b')).toBe(1);
  });
});

describe('renew-read and renew-write', () => {
  const world = new ReadWriteWorld();

  it('renew the leases of the readers that are still there', async () => {
    await world.read({ 'c:1': 2_000, 'c:2': 0, 'c:3': 2_000 });
    const before = await world.now();
    const owners = ['c:1', 'c:2', 'd:1', 'c:3'];
    const keys = owners.flatMap((owner) => ['a', READ_LEASE(owner)]);
    const reply = (await world.run('renew-read', keys, ['PUBLISH', MINUTE, ...owners])) as number[];
    expect(reply).toEqual([expect.any(Number), 1, 0, 0, 1]);
    expect(reply[0]).toBeGreaterThanOrEqual(before);
    for (const key of ['a', READ_LEASE('c:1'), READ_LEASE('c:3')]) await world.expectLease(key, MINUTE);
    expect(await world.redis.exists(READ_LEASE('c:2'), READ_LEASE('d:1'))).toBe(0);
  });

  it('list the types of the keys of a lock that fails', async () => {
    await world.redis.set('text', 'of somebody else');
    await world.redis.rpush('list', 'of somebody else');
    await world.read({ 'c:1': 2_000 });
    const keys = ['a', READ_LEASE('c:1'), 'text', 'list'];
    const failed = [[expect.stringContaining('WRONGTYPE'), 'string', 'list']];
    expect(await world.run('renew-read', keys, ['PUBLISH', MINUTE, 'c:1', 'c:1'])).toEqual([
      expect.any(Number),
      1,
      failed,
    ]);
    expect(await world.run('renew-write', keys, ['PUBLISH', MINUTE, 'c:1', 'c:1'])).toEqual([
      expect.any(Number),
      0,
      failed,
    ]);
    expect(await world.run('release-read', keys, ['PUBLISH', CLOCK, 'c:1', 'c:1'])).toEqual([0, failed]);
    expect(await world.run('release-write', keys, ['PUBLISH', CLOCK, 'c:1', 'c:1'])).toEqual([
      [-1, expect.any(Number)],
      failed,
    ]);
  });

  it('renew a reader beside one with a longer lease when the memory is full', async () => {
    await world.read({ 'c:1': 2_000, 'd:1': 2 * MINUTE });
    await world.withFullMemory(async () => {
      const args = ['PUBLISH', MINUTE, 'c:1'];
      expect(await world.run('renew-read', ['a', READ_LEASE('c:1')], args)).toEqual([expect.any(Number), 1]);
    });
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'read', 'c:1': '1', 'd:1': '1' });
    await world.expectLease(READ_LEASE('c:1'), MINUTE);
    await world.expectLease('a', 2 * MINUTE);
  });

  it('renew the lease of the writer, and of nobody else', async () => {
    await world.write('c:1', 2_000);
    await world.redis.hset('b', { mode: 'write', 'c:2:write': '1' });
    const before = await world.now();
    const keys = ['b', READ_LEASE('d:1', 'b'), 'a', READ_LEASE('c:1')];
    const reply = (await world.run('renew-write', keys, ['PUBLISH', MINUTE, 'd:1', 'c:1'])) as number[];
    expect(reply).toEqual([expect.any(Number), 0, 1]);
    expect(reply[0]).toBeGreaterThanOrEqual(before);
    await world.expectLease('a', MINUTE);
    expect(await world.redis.pttl('b')).toBe(-1);
  });
});

describe('refresh-places-1 and remove-place-1, of readers and writers', () => {
  const world = new ReadWriteWorld();
  const refresh = (...owners: string[]) =>
    world.run('refresh-places-1', ['a'], ['PUBLISH', CLOCK, MINUTE, ...owners.flatMap((owner) => [owner, ''])]);
  const remove = (owner: string) => world.run('remove-place-1', ['a'], ['PUBLISH', CLOCK, owner]);

  it('keep those that are still alive', async () => {
    const now = await world.wait({ 'c:1': 5_000, 'c:2': -1, 'c:3': 5_000, 'd:1': 5_000 });
    await world.write('e:1');
    expect(await refresh('c:1', 'c:2', 'c:9', 'c:3')).toEqual([1, 0, 0, 1]);
    const kept = await world.waiting();
    for (const owner of ['c:1', 'c:3']) expectBetween(kept[owner], now + MINUTE, (await world.now()) + MINUTE);
    expect(kept['d:1']).toBe(now + 5_000);
    for (const key of ['', '_until', '_terms'])
      await world.expectLease(`nestjs_redis_lock_turns${key}:{a}`, 2 * MINUTE);
  });

  it('wake the readers of a quorum when the last writer that is alive has left', async () => {
    await world.wait({ 'c:1': MINUTE, 'c:2': MINUTE, 'c:3': -1 });
    await world.read({ 'd:1': MINUTE });
    const heard = await world.published(async () => {
      expect(await remove('c:9')).toBe(0);
      expect(await remove('c:2')).toBe(1);
    });
    expect(heard).toEqual([]);
    expect(await world.published(() => remove('c:1'))).toEqual(['redisson_rwlock:{a} 1']);
  });

  it('wake nobody while a writer holds the lock', async () => {
    await world.wait({ 'b:1': MINUTE, 'c:1': MINUTE });
    await world.write('d:1');
    const heard = await world.published(async () => {
      expect(await remove('c:1')).toBe(1);
    });
    expect(heard).toEqual([]);
  });
});

describe('transfer-write-4', () => {
  const world = new ReadWriteWorld();
  const transfer = (lease = MINUTE) =>
    world.run(
      'transfer-write-4',
      [CLOCK, 'a', READ_LEASE('c:1'), READ_LEASE('c:2')],
      [LATER, 0, lease, 0, 'c:1', 'c:2', 'PUBLISH'],
    );
  beforeEach(() => world.redis.set(CLOCK, AHEAD));

  it('gives the write side to the next owner, also when it is sent twice', async () => {
    await world.write('c:1', 2 * MINUTE);
    await world.wait({ 'c:2': MINUTE, 'c:3': MINUTE });
    const heard = await world.published(async () => {
      expect(await transfer()).toEqual([AHEAD + 1, 0]);
    });
    expect(heard).toEqual(['redisson_rwlock:{a} 1', 'nestjs_redis_lock_turn:{a}:c c:3']);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'write', 'c:2:write': '1' });
    await world.expectLease('a', MINUTE);
    expect(Object.keys(await world.waiting())).toEqual(['c:3']);
    expect(await world.published(() => transfer())).toEqual([]);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'write', 'c:2:write': '1' });
  });

  it('releases the write side when its owner also reads, and tells the line', async () => {
    await world.write('c:1', 2 * MINUTE);
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.set(READ_LEASE('c:1'), '1', 'PX', MINUTE);
    await world.wait({ 'd:1': MINUTE, 'e:1': MINUTE });
    const heard = await world.published(async () => {
      expect(await transfer()).toBeNull();
    });
    expect(heard).toEqual(['redisson_rwlock:{a} 1', 'nestjs_redis_lock_turn:{a}:d d:1']);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'read', 'c:1': '1' });
    await world.expectLease('a', MINUTE);
  });

  it('takes the write side from nobody else', async () => {
    await world.write('d:1');
    expect(await transfer()).toBeNull();
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'write', 'd:1:write': '1' });
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD));
  });
});

describe('find-holders-1', () => {
  const world = new ReadWriteWorld();
  const find = () => world.run('find-holders-1', ['a']);

  it('lists the owners of a lock of any kind', async () => {
    expect(await find()).toEqual([]);
    await world.redis.hset('a', 'c:1', '1');
    expect(await find()).toEqual(['c:1']);
    await world.redis.del('a');
    await world.write('c:1');
    await world.redis.hset('a', 'c:1', '1');
    expect(await find()).toEqual(['c:1']);
    await world.redis.del('a');
    await world.read({ 'c:1': MINUTE, 'c:2': 0, 'c:3': MINUTE });
    expect(((await find()) as string[]).sort()).toEqual(['c:1', 'c:3']);
  });

  it('fails for a hash of another program', async () => {
    await world.redis.hset('a', 'color', 'red');
    await expect(find()).rejects.toThrow(/NOTALOCK/);
  });
});
