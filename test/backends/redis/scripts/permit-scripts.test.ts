import { expectBetween, LATER, ScriptWorld } from './script-world.js';

const MINUTE = 60_000;
/** For this long, the latest request of a session is remembered. */
const REMEMBERED = 30_000;
/** The value that Redisson writes for a permit without a lease. */
const FOREVER = 922_337_203_685_477;
/** Ids of permits, as they are sent, and as Redis has them. */
const [ONE, TWO, THREE, FOUR] = ['1', '2', '3', '4'].map((digit) => digit.repeat(32));
const raw = (id: string) => Buffer.from(id, 'hex');

class PermitWorld extends ScriptWorld {
  /** Permits that are held, each with the time from now until its lease ends. */
  async hold(permits: Record<string, number>): Promise<number> {
    const now = await this.now();
    for (const [id, left] of Object.entries(permits)) await this.redis.zadd('held', now + left, raw(id));
    return now;
  }

  held(): Promise<Record<string, number>> {
    return this.scores('held', 'hex');
  }
}

describe('take-permits-3', () => {
  const world = new PermitWorld();
  const take = (
    sequence: number,
    groups: readonly number[],
    { initial = '' as number | '', repeated = '', until = LATER as string | number } = {},
  ) =>
    world.run(
      'take-permits-3',
      ['sem', 'note', 'latest'],
      [until, sequence, REMEMBERED, repeated, 'PUBLISH', initial, ...groups],
    );

  it('serves groups in order until there are not enough permits for the next one', async () => {
    await world.redis.set('sem', 5);
    expect(await take(1, [2, 2, 2, 1])).toBe(2);
    expect(await world.redis.get('sem')).toBe('1');
    expect(await take(2, [1])).toBe(1);
    expect(await world.redis.get('sem')).toBe('0');
    expect(await take(3, [1])).toBe(0);
    expect(await world.redis.get('sem')).toBe('0');
  });

  it('answers a repetition as before, and takes nothing again', async () => {
    await world.redis.set('sem', 5);
    expect(await take(7, [1, 1])).toBe(2);
    await world.expectLease('latest', REMEMBERED);
    expect(await take(7, [1, 1])).toBe(2);
    expect(await take(6, [1, 1])).toBe(2);
    expect(await world.redis.get('sem')).toBe('3');
    await world.redis.set('latest', '7:'); // by a request that has no number for an answer
    expect(await take(7, [1, 1])).toBe(0);
  });

  it('remembers that it served nobody only if a copy may still be under way', async () => {
    await world.redis.set('sem', 0);
    expect(await take(1, [1])).toBe(0);
    expect(await world.redis.exists('latest')).toBe(0);
    expect(await take(2, [1], { repeated: '1' })).toBe(0);
    expect(await world.redis.get('latest')).toBe('2:0');
  });

  it('creates a missing semaphore with the given permits, and tells the waiters how many are left', async () => {
    let heard = await world.published(async () => {
      expect(await take(1, [1])).toBe(-1);
    });
    expect(heard).toEqual([]);
    expect(await world.redis.exists('sem', 'note', 'latest')).toBe(0);
    heard = await world.published(async () => {
      expect(await take(2, [2, 9], { initial: 5 })).toBe(1);
    });
    expect(heard).toEqual(['redisson_sc:{sem} 3']);
    expect(await world.redis.hgetall('note')).toEqual({ type: 'semaphore', total: '5' });
    expect(await world.redis.pttl('note')).toBe(-1);
    heard = await world.published(async () => {
      expect(await take(3, [1], { initial: 5 })).toBe(1);
    });
    expect(heard).toEqual([]);
    expect(await world.redis.get('sem')).toBe('2');
  });

  it('does not create a semaphore that has no permits left', async () => {
    await world.redis.set('sem', 0);
    expect(await take(1, [1], { initial: 5 })).toBe(0);
    expect(await world.redis.get('sem')).toBe('0');
    expect(await world.redis.hgetall('note')).toEqual({ type: 'semaphore', total: '' });
  });

  it('tells nobody of a semaphore whose permits it takes at once', async () => {
    expect(await world.published(() => take(1, [5], { initial: 5 }))).toEqual([]);
    expect(await world.redis.get('sem')).toBe('0');
  });

  it('does nothing after its deadline', async () => {
    await world.redis.set('sem', 5);
    const now = await world.now();
    const reply = (await take(1, [1], { until: now - 1 })) as [string, number];
    expect(reply).toEqual(['expired', expect.any(Number)]);
    expectBetween(reply[1], now, await world.now());
    expect(await world.redis.keys('*')).toEqual(['sem']);
    expect(await world.redis.get('sem')).toBe('5');
  });

  it('fails if the value is not a number', async () => {
    await world.redis.set('sem', 'five');
    await expect(take(1, [1])).rejects.toThrow(/not an integer/);
  });
});

describe('drain-permits-2', () => {
  const world = new PermitWorld();
  const drain = (sequence: number, { repeated = '', until = LATER as string | number } = {}) =>
    world.run('drain-permits-2', ['sem', 'latest'], [until, sequence, REMEMBERED, repeated]);

  it('takes all permits, once', async () => {
    await world.redis.set('sem', 5);
    expect(await drain(3)).toBe(5);
    expect(await world.redis.get('sem')).toBe('0');
    await world.expectLease('latest', REMEMBERED);
    await world.redis.set('sem', 2);
    expect(await drain(3)).toBe(5);
    expect(await drain(2)).toBe(5);
    expect(await world.redis.get('sem')).toBe('2');
  });

  it.each([
    ['-3', 0],
    [undefined, 0],
    ['0', 0],
  ])('takes nothing from %s', async (number, taken) => {
    if (number !== undefined) await world.redis.set('sem', number);
    expect(await drain(1)).toBe(taken);
    expect(await world.redis.get('sem')).toBe(number ?? null);
    expect(await world.redis.exists('latest')).toBe(0);
    expect(await drain(1, { repeated: '1' })).toBe(0);
    expect(await world.redis.get('latest')).toBe('1:0');
  });

  it('does nothing after its deadline', async () => {
    await world.redis.set('sem', 5);
    expect(await drain(1, { until: (await world.now()) - 1 })).toEqual(['expired', expect.any(Number)]);
    expect(await world.redis.get('sem')).toBe('5');
  });
});

describe('add-permits-3', () => {
  const world = new PermitWorld();
  const add = (sequence: number, permits: number, { existing = '', kind = '' } = {}) =>
    world.run('add-permits-3', ['sem', 'note', 'latest'], ['PUBLISH', sequence, REMEMBERED, permits, existing, kind]);

  it('gives permits back, once, and tells how many are available', async () => {
    await world.redis.set('sem', 1);
    const heard = await world.published(async () => {
      expect(await add(1, 2)).toBe(1);
      expect(await add(1, 2)).toBe(1);
    });
    expect(heard).toEqual(['redisson_sc:{sem} 3']);
    expect(await world.redis.get('sem')).toBe('3');
    await world.expectLease('latest', REMEMBERED);
    expect(await world.redis.exists('note')).toBe(0);
  });

  it('gives permits back, once, when the memory is full', async () => {
    await world.redis.set('sem', 1);
    for (const sequence of [1, 1, 2, 2]) {
      expect(await world.withFullMemory(() => add(sequence, 2, { existing: '1' }))).toBe(1);
    }
    expect(await world.redis.mget('sem', 'latest')).toEqual(['5', '2:']);
    await world.expectLease('latest', REMEMBERED);
  });

  it('adds to a missing semaphore, unless it is told not to', async () => {
    expect(await add(1, 2, { existing: '1' })).toBe(0);
    expect(await world.redis.keys('*')).toEqual([]);
    expect(await add(2, 2)).toBe(1);
    expect(await world.redis.get('sem')).toBe('2');
    expect(await add(3, 2, { existing: '1' })).toBe(1);
    expect(await world.redis.get('sem')).toBe('4');
  });

  it('tells nobody when permits are removed, or none is available afterwards', async () => {
    await world.redis.set('sem', 1);
    const heard = await world.published(async () => {
      expect(await add(1, -4)).toBe(1);
      expect(await add(2, 3)).toBe(1);
    });
    expect(heard).toEqual([]);
    expect(await world.redis.get('sem')).toBe('0');
  });

  it('counts the total for people to read', async () => {
    await add(1, 4, { kind: 'semaphore' });
    expect(await world.redis.hgetall('note')).toEqual({ type: 'semaphore', total: '4' });
    await add(2, 3, { kind: 'semaphore' });
    expect(await world.redis.hget('note', 'total')).toBe('7');
    await add(3, -2, { kind: 'semaphore' });
    expect(await world.redis.hget('note', 'total')).toBe('5');
  });

  it('does not guess a total that it does not know', async () => {
    await world.redis.set('sem', 4);
    await add(1, 3, { kind: 'semaphore' });
    expect(await world.redis.hgetall('note')).toEqual({ type: 'semaphore', total: '' });
    await world.redis.hset('note', { type: 'latch', total: '9' });
    await add(2, 3, { kind: 'semaphore' });
    expect(await world.redis.hgetall('note')).toEqual({ type: 'semaphore', total: '' });
  });

  it('changes the number although the note has another type', async () => {
    await world.redis.set('note', 'of somebody else');
    expect(await add(1, 3, { kind: 'semaphore' })).toBe(1);
    expect(await world.redis.get('sem')).toBe('3');
  });
});

describe('take-leased-permits-4', () => {
  const world = new PermitWorld();
  const take = (
    sequence: number,
    groups: readonly (readonly string[])[],
    { initial = '' as number | '', repeated = '', until = LATER as string | number } = {},
  ) =>
    world.run(
      'take-leased-permits-4',
      ['sem', 'held', 'note', 'latest'],
      [
        ...[until, sequence, REMEMBERED, repeated, 'PUBLISH', MINUTE, initial, groups.length],
        ...groups.map(({ length }) => length),
        ...groups.flat(),
      ],
    );

  it('serves groups in order until there are not enough permits for the next one', async () => {
    await world.redis.set('sem', 3);
    const before = await world.now();
    const [served, left, isMissing] = (await take(1, [[ONE, TWO], [THREE, FOUR], [FOUR]])) as number[];
    expect([served, isMissing]).toEqual([1, 0]);
    expect(left).toBe(MINUTE);
    expect(await world.redis.get('sem')).toBe('1');
    const held = await world.held();
    expect(Object.keys(held).sort()).toEqual([ONE, TWO]);
    expectBetween(held[ONE], before + MINUTE, (await world.now()) + MINUTE);
    await world.expectLease('latest', REMEMBERED);
    expect(await world.redis.pttl('held')).toBe(-1);
  });

  it('says when the earliest lease ends if it served nobody', async () => {
    await world.redis.set('sem', 1);
    await world.hold({ [ONE]: 20_000, [TWO]: 5_000 });
    const [served, left] = (await take(1, [[THREE, FOUR]])) as number[];
    expect(served).toBe(0);
    expect(left).toBeLessThanOrEqual(5_000);
    expect(left).toBeGreaterThan(0);
    expect(await world.redis.get('sem')).toBe('1');
    expect(await world.redis.exists('latest')).toBe(0);
    expect(await world.redis.hgetall('note')).toEqual({ type: 'permit-expirable-semaphore', total: '' });
  });

  it('says that no lease ends when only permits without a lease are held, or none', async () => {
    await world.redis.set('sem', 0);
    expect(await take(1, [[ONE]])).toEqual([0, -1, 0]);
    await world.redis.zadd('held', FOREVER, raw(TWO));
    expect(await take(2, [[ONE]])).toEqual([0, -1, 0]);
  });

  it('makes permits available again whose leases have ended, and tells how many are left', async () => {
    await world.redis.set('sem', 0);
    await world.hold({ [ONE]: -1, [TWO]: -1, [THREE]: MINUTE });
    const heard = await world.published(async () => {
      expect(await take(1, [[FOUR]])).toEqual([1, expect.any(Number), 0]);
    });
    expect(heard).toEqual(['redisson_sc:{sem} 1']);
    expect(await world.redis.get('sem')).toBe('1');
    expect(Object.keys(await world.held()).sort()).toEqual([THREE, FOUR]);
  });

  it('gives a repetition a fresh lease of the permits that it still has, and no others', async () => {
    await world.redis.set('sem', 5);
    await take(4, [[ONE], [TWO], [THREE]]);
    await world.redis.zrem('held', raw(TWO));
    await world.hold({ [ONE]: 5_000 });
    const before = await world.now();
    expect(await take(4, [[ONE], [TWO], [THREE]])).toEqual([1, expect.any(Number), 0]);
    expect(await world.redis.get('sem')).toBe('2');
    const held = await world.held();
    expect(Object.keys(held).sort()).toEqual([ONE, THREE]);
    expect(held[ONE]).toBeGreaterThanOrEqual(before + MINUTE);
  });

  it('answers a repetition that has no permits any more with the end of its lease', async () => {
    await world.redis.set('sem', 5);
    await take(4, [[ONE]]);
    await world.redis.del('held');
    expect(await take(4, [[ONE]])).toEqual([0, 0, 0]);
    expect(await world.redis.exists('held')).toBe(0);
  });

  it('does nothing when it arrives after a later request', async () => {
    await world.redis.set('sem', 5);
    await take(4, [[ONE]]);
    expect(await take(3, [[TWO]])).toEqual([0, -1, 0]);
    expect(Object.keys(await world.held())).toEqual([ONE]);
  });

  it('remembers that it served nobody if a copy may still be under way, and then serves nobody', async () => {
    await world.redis.set('sem', 0);
    expect(await take(1, [[ONE]], { repeated: '1' })).toEqual([0, -1, 0]);
    expect(await world.redis.get('latest')).toBe('1:');
    await world.expectLease('latest', REMEMBERED);
    await world.redis.set('sem', 1);
    await world.redis.pexpire('latest', 1_000);
    expect(await take(1, [[ONE]], { repeated: '1' })).toEqual([0, 0, 0]);
    expect(await world.redis.get('sem')).toBe('1');
    expect(await world.redis.pttl('latest')).toBeLessThanOrEqual(1_000);
  });

  it('creates a missing semaphore with the given permits', async () => {
    expect(await take(1, [[ONE]])).toEqual([0, -1, 1]);
    expect(await world.redis.keys('*')).toEqual([]);
    const heard = await world.published(async () => {
      expect(await take(2, [[ONE]], { initial: 3 })).toEqual([1, expect.any(Number), 0]);
    });
    expect(heard).toEqual(['redisson_sc:{sem} 2']);
    expect(await world.redis.hgetall('note')).toEqual({ type: 'permit-expirable-semaphore', total: '3' });
    expect(await world.published(() => take(3, [[TWO]], { initial: 3 }))).toEqual([]);
    expect(await world.redis.get('sem')).toBe('1');
  });

  it('keeps the leases for as long as a semaphore that expires, and not when it takes none', async () => {
    await world.redis.set('sem', 1, 'PX', 2 * MINUTE);
    await take(1, [[ONE]]);
    await world.expectLease('held', 2 * MINUTE);
    await world.redis.persist('held');
    await take(2, [[TWO]]);
    expect(await world.redis.pttl('held')).toBe(-1);
  });

  it('does nothing after its deadline', async () => {
    await world.redis.set('sem', 5);
    expect(await take(1, [[ONE]], { until: (await world.now()) - 1 })).toEqual(['expired', expect.any(Number)]);
    expect(await world.redis.keys('*')).toEqual(['sem']);
  });
});

describe('give-leased-permits-3', () => {
  const world = new PermitWorld();
  const give = (sequence: number, ...ids: string[]) =>
    world.run('give-leased-permits-3', ['sem', 'held', 'latest'], ['PUBLISH', sequence, REMEMBERED, ...ids]);

  it('gives back each permit that is held, once, and tells how many are available', async () => {
    await world.redis.set('sem', 1);
    await world.hold({ [ONE]: MINUTE, [TWO]: MINUTE, [THREE]: MINUTE });
    const heard = await world.published(async () => {
      expect(await give(1, ONE, FOUR, THREE, ONE)).toBe('1010');
      expect(await give(1, ONE, FOUR, THREE, ONE)).toBe('1010');
    });
    expect(heard).toEqual(['redisson_sc:{sem} 3']);
    expect(await world.redis.get('sem')).toBe('3');
    expect(Object.keys(await world.held())).toEqual([TWO]);
    await world.expectLease('latest', REMEMBERED);
  });

  it('gives permits back, once, when the memory is full', async () => {
    await world.redis.set('sem', 1);
    await world.hold({ [ONE]: MINUTE, [TWO]: MINUTE, [THREE]: -1, [FOUR]: MINUTE });
    await world.withFullMemory(async () => {
      for (let copy = 0; copy < 2; copy++) expect(await give(1, ONE)).toBe('1');
      for (let copy = 0; copy < 2; copy++) expect(await give(2, TWO)).toBe('1');
    });
    expect(Object.keys(await world.held())).toEqual([FOUR]);
    expect(await world.redis.mget('sem', 'latest')).toEqual(['4', '2:1']);
    await world.expectLease('latest', REMEMBERED);
  });

  it('gives back no permit whose lease has ended, which others may have', async () => {
    await world.redis.set('sem', 0);
    await world.hold({ [ONE]: -1 });
    const heard = await world.published(async () => {
      expect(await give(1, ONE)).toBe('0');
      expect(await give(2, ONE)).toBe('0');
    });
    expect(heard).toEqual(['redisson_sc:{sem} 1']);
    expect(await world.redis.get('sem')).toBe('1');
    expect(await world.redis.exists('latest', 'held')).toBe(0);
  });

  it('tells nobody when nothing is available afterwards', async () => {
    await world.redis.set('sem', -1);
    await world.hold({ [ONE]: MINUTE });
    expect(await world.published(() => give(1, ONE))).toEqual([]);
    expect(await world.redis.get('sem')).toBe('0');
  });
});

describe('renew-permits-1', () => {
  const world = new PermitWorld();

  it('sets the leases of permits that are held', async () => {
    const now = await world.hold({ [ONE]: 5_000, [TWO]: -1, [FOUR]: 5_000 });
    expect(await world.run('renew-permits-1', ['held'], ['', MINUTE, ONE, TWO, THREE, FOUR])).toBe('1001');
    const held = await world.held();
    expect(Object.keys(held).sort()).toEqual([ONE, TWO, FOUR]);
    for (const id of [ONE, FOUR]) {
      expectBetween(held[id], now + MINUTE, (await world.now()) + MINUTE);
    }
    expect(held[TWO]).toBe(now - 1);
  });

  it('renews when the memory is full', async () => {
    const now = await world.hold({ [ONE]: 5_000, [TWO]: -1 });
    await world.withFullMemory(async () => {
      expect(await world.run('renew-permits-1', ['held'], ['', MINUTE, TWO, ONE])).toBe('01');
    });
    expectBetween((await world.held())[ONE], now + MINUTE, (await world.now()) + MINUTE);
  });

  it('does not renew a permit in the ms in which its lease ends, because others may have it then', async () => {
    const ids = Array.from({ length: 5_000 }, (_, i) => i.toString(16).padStart(32, '0'));
    const now = await world.now();
    const ends = new Map(ids.map((id, i) => [id, now + i]));
    await world.redis.zadd('held', ...ids.flatMap((id) => [ends.get(id) as number, raw(id)]));
    const digits = (await world.run('renew-permits-1', ['held'], ['', MINUTE, ...ids])) as string;
    const renewedAt = Math.max(...Object.values(await world.held())) - MINUTE;
    expect(renewedAt).toBeGreaterThanOrEqual(now);
    expect(digits).toBe(ids.map((id) => ((ends.get(id) as number) > renewedAt ? '1' : '0')).join(''));
  });
});

describe('count-permits-2', () => {
  const world = new PermitWorld();
  const count = () => world.run('count-permits-2', ['sem', 'held'], ['PUBLISH']);

  it('counts what is available and what is held, and tells waiters of leases that have ended', async () => {
    await world.redis.set('sem', 2);
    await world.hold({ [ONE]: MINUTE, [TWO]: -1, [THREE]: -1 });
    expect(
      await world.published(async () => {
        expect(await count()).toEqual([4, 1]);
      }),
    ).toEqual(['redisson_sc:{sem} 4']);
    expect(await world.published(count)).toEqual([]);
    expect(Object.keys(await world.held())).toEqual([ONE]);
  });

  it('makes permits available when the memory is full', async () => {
    await world.redis.set('sem', 2);
    await world.hold({ [ONE]: MINUTE, [TWO]: -1 });
    expect(await world.withFullMemory(count)).toEqual([3, 1]);
  });

  it('finds none where there is no semaphore', async () => {
    expect(await count()).toEqual([0, 0]);
    expect(await world.redis.keys('*')).toEqual([]);
  });
});

describe('set-permits-4', () => {
  const world = new PermitWorld();
  const set = (sequence: number, permits: number) =>
    world.run('set-permits-4', ['sem', 'held', 'note', 'latest'], ['PUBLISH', sequence, REMEMBERED, permits]);

  it('counts those that are held, once, and tells waiters of more', async () => {
    await world.hold({ [ONE]: MINUTE, [TWO]: MINUTE });
    const heard = await world.published(async () => {
      expect(await set(1, 5)).toBe(1);
      expect(await set(1, 9)).toBe(1);
    });
    expect(heard).toEqual(['redisson_sc:{sem} 3']);
    expect(await world.redis.get('sem')).toBe('3');
    expect(await world.redis.hget('note', 'type')).toBe('permit-expirable-semaphore');
    await world.expectLease('latest', REMEMBERED);
  });

  it('tells nobody of fewer permits, or as many', async () => {
    await world.redis.set('sem', 5);
    const heard = await world.published(async () => {
      await set(1, 5);
      await set(2, 4);
    });
    expect(heard).toEqual([]);
    expect(await world.redis.get('sem')).toBe('4');
  });

  it('tells waiters of a single permit whose lease has ended', async () => {
    await world.redis.set('sem', 5);
    await world.hold({ [ONE]: -1 });
    expect(await world.published(() => set(1, 4))).toEqual(['redisson_sc:{sem} 4']);
    expect(await world.redis.get('sem')).toBe('4');
    expect(await world.redis.exists('held')).toBe(0);
  });
});

describe('try-set-count-3 and get-count-1', () => {
  const world = new PermitWorld();
  const trySet = (sequence: number, count: number, kind = 'count-down-latch', publish = 'PUBLISH') =>
    world.run(
      'try-set-count-3',
      ['latch', 'note', 'latest'],
      [publish, sequence, REMEMBERED, count, 'channel', 'message', kind],
    );
  const get = () => world.run('get-count-1', ['latch']);

  it('set a number once, and tell the waiters', async () => {
    expect(await get()).toBe(0);
    const heard = await world.published(async () => {
      expect(await trySet(1, 3)).toBe(1);
      expect(await trySet(1, 3)).toBe(1);
      expect(await trySet(2, 9)).toBe(0);
    });
    expect(heard).toEqual(['channel message']);
    expect(await get()).toBe(3);
    expect(await world.redis.hgetall('note')).toEqual({ type: 'count-down-latch', total: '3' });
    await world.expectLease('latest', REMEMBERED);
    expect(await world.redis.get('latest')).toBe('1:');
  });

  it('keep the note of a latch for 30 days, and that of a semaphore for ever', async () => {
    await trySet(1, 3);
    await world.expectLease('note', 30 * 24 * 3_600_000);
    await world.redis.del('latch');
    await trySet(2, 3, 'semaphore');
    expect(await world.redis.pttl('note')).toBe(-1);
  });

  it('write the type of a number that others have set', async () => {
    await world.redis.set('latch', 3);
    expect(await trySet(1, 9)).toBe(0);
    expect(await world.redis.hgetall('note')).toEqual({ type: 'count-down-latch', total: '' });
    await world.redis.hset('note', 'total', '3');
    expect(await trySet(2, 9)).toBe(0);
    expect(await world.redis.hget('note', 'total')).toBe('3');
    expect(await world.redis.exists('latest')).toBe(0);
  });

  it('set a number although the note cannot be written', async () => {
    expect(
      await world.runWithout(
        ['hset', 'hget', 'pexpire'],
        'try-set-count-3',
        ['latch', 'note', 'latest'],
        ['', 1, REMEMBERED, 3, 'channel', 'message', 'count-down-latch'],
      ),
    ).toBe(1);
    expect(await get()).toBe(3);
  });

  it('read negative numbers, and fail if the value is not a number', async () => {
    await world.redis.set('latch', '-4');
    expect(await get()).toBe(-4);
    await world.redis.set('latch', '4.5');
    await expect(get()).rejects.toThrow(/not an integer/);
  });
});

describe('count-down-3', () => {
  const world = new PermitWorld();
  const countDown = (sequence: number, steps: number) =>
    world.run('count-down-3', ['latch', 'note', 'latest'], ['PUBLISH', sequence, REMEMBERED, steps]);

  it('counts each request once, and opens the latch at zero', async () => {
    await world.redis.set('latch', 5);
    await world.redis.hset('note', 'type', 'count-down-latch');
    expect(
      await world.published(async () => {
        expect(await countDown(1, 2)).toBe(1);
        expect(await countDown(1, 2)).toBe(1);
        expect(await world.redis.get('latch')).toBe('3');
        expect(await countDown(2, 2)).toBe(1);
      }),
    ).toEqual([]);
    await world.expectLease('latest', REMEMBERED);
    expect(
      await world.published(async () => {
        expect(await countDown(3, 1)).toBe(1);
        expect(await countDown(3, 1)).toBe(1);
      }),
    ).toEqual(['redisson_countdownlatch__channel__{latch} 0']);
    expect(await world.redis.keys('*')).toEqual(['latest']);
  });

  it('counts each request once when the memory is full', async () => {
    await world.redis.set('latch', 3);
    for (const sequence of [1, 1, 2, 2]) expect(await world.withFullMemory(() => countDown(sequence, 1))).toBe(1);
    expect(await world.redis.mget('latch', 'latest')).toEqual(['1', '2:']);
    await world.expectLease('latest', REMEMBERED);
  });

  it('opens the latch when there are more steps than are left', async () => {
    await world.redis.set('latch', 1);
    expect(await countDown(1, 7)).toBe(1);
    expect(await world.redis.exists('latch')).toBe(0);
  });

  it('finds no latch, and remembers nothing', async () => {
    const heard = await world.published(async () => {
      expect(await countDown(1, 1)).toBe(0);
    });
    expect(heard).toEqual([]);
    expect(await world.redis.keys('*')).toEqual([]);
  });
});

describe('delete-latch-3', () => {
  const world = new PermitWorld();
  const remove = (sequence: number) =>
    world.run('delete-latch-3', ['latch', 'note', 'latest'], ['PUBLISH', sequence, REMEMBERED]);

  it('deletes the latch and its note, once, and tells the waiters', async () => {
    await world.redis.set('latch', 5);
    await world.redis.hset('note', 'type', 'count-down-latch');
    const heard = await world.published(async () => {
      expect(await remove(1)).toBe(1);
      expect(await remove(1)).toBe(1);
      expect(await remove(2)).toBe(0);
    });
    expect(heard).toEqual(['redisson_countdownlatch__channel__{latch} 0']);
    expect(await world.redis.keys('*')).toEqual(['latest']);
    await world.expectLease('latest', REMEMBERED);
  });

  it('deletes the latch when the memory is full', async () => {
    await world.redis.set('latch', 5);
    expect(await world.withFullMemory(() => remove(1))).toBe(1);
    expect(await world.redis.keys('*')).toEqual(['latest']);
  });
});

describe('inspect-count-3', () => {
  const world = new PermitWorld();
  const inspect = (most = 10, bytes = 4) => world.run('inspect-count-3', ['sem', 'held', 'note'], [most, bytes]);

  it('shows the number, the note, and the permits that are held', async () => {
    await world.redis.set('sem', 2);
    await world.redis.hset('note', { type: 'permit-expirable-semaphore', total: '5' });
    await world.hold({ [ONE]: -1, [TWO]: MINUTE });
    await world.redis.zadd('held', FOREVER, raw(THREE));
    const [number, kind, total, acquired, permits] = (await inspect()) as [number, string, string, number, unknown[]];
    expect([number, kind, total, acquired]).toEqual([3, 'permit-expirable-semaphore', '5', 2]);
    expect(permits).toEqual(['22222222', expect.any(Number), '33333333', -1]);
    expect(permits[1]).toBeGreaterThan(MINUTE - 5_000);
    expect(permits[1]).toBeLessThanOrEqual(MINUTE);
    expect(await world.redis.zcard('held')).toBe(3);
  });

  it('shows a limited number of permits', async () => {
    await world.redis.set('sem', 2);
    await world.hold({ [ONE]: MINUTE, [TWO]: MINUTE, [THREE]: MINUTE });
    const [, , , acquired, permits] = (await inspect(2, 1)) as [number, string, string, number, unknown[]];
    expect(acquired).toBe(3);
    expect(permits).toEqual(['11', expect.any(Number), '22', expect.any(Number)]);
  });

  it.each([
    ['nothing', async () => {}, null],
    ['a number alone', async () => world.redis.set('sem', '-3'), [-3, '', '', 0, []]],
    ['text', async () => world.redis.set('sem', 'five'), null],
    ['a number of too many digits', async () => world.redis.set('sem', '123456789012'), null],
    ['the longest number', async () => world.redis.set('sem', '-2147483648'), [-2147483648, '', '', 0, []]],
    ['a key of another type', async () => world.redis.rpush('sem', 'x'), null],
    [
      'a note of another type',
      async () => {
        await world.redis.set('sem', '3');
        await world.redis.set('note', 'of somebody else');
      },
      [3, '', '', 0, []],
    ],
    [
      'a note without fields',
      async () => {
        await world.redis.set('sem', '3');
        await world.redis.hset('note', 'color', 'red');
      },
      [3, '', '', 0, []],
    ],
  ])('finds %s', async (_what, prepare, shown) => {
    await prepare();
    expect(await inspect()).toEqual(shown);
  });

  it('shows a semaphore of which only permits that are held are left', async () => {
    await world.hold({ [ONE]: MINUTE });
    expect(await inspect()).toEqual([0, '', '', 1, ['11111111', expect.any(Number)]]);
    await world.redis.del('held');
    await world.hold({ [ONE]: -1 });
    expect(await inspect()).toEqual([1, '', '', 0, []]);
  });
});
