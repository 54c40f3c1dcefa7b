import { until } from '../../../support/until.js';
import {
  AHEAD,
  CLOCK,
  expectBetween,
  GRANT,
  grantTerms,
  HEAD_START,
  LAPSES,
  LATER,
  LONGEST_HEAD_START,
  PERMIT,
  PLACES,
  ScriptWorld,
  TERMS,
} from './script-world.js';

const MINUTE = 60_000;
const FREED = 'redisson_lock__channel:{a} 0';
const DENIED = /NOPERM|permissions|can't run this command/;
const told = (owner: string, rest = '') => `nestjs_redis_lock_turn:{a}:${owner.split(':')[0]} ${owner}${rest}`;

/** The reply of a script, or the error with which it failed. */
const outcome = (reply: Promise<unknown>) => reply.then(JSON.stringify, String);

/** Locks that n owners may hold: zsets of owners, each with the time at which its lease ends. */
class SharedLockWorld extends ScriptWorld {
  /** Holders of a lock, each with the time from now until its lease ends. The key lasts for 10 s at least. */
  async hold(holders: Record<string, number>, lock = 'a'): Promise<number> {
    const now = await this.now();
    for (const [owner, left] of Object.entries(holders)) await this.redis.zadd(lock, now + left, owner);
    await this.redis.pexpireat(lock, now + Math.max(10_000, ...Object.values(holders)));
    return now;
  }

  /** The owners that hold the lock, or whose leases have ended, in the order in which their leases end. */
  async holders(lock = 'a'): Promise<string[]> {
    return this.redis.zrange(lock, '0', '-1');
  }

  /** Places in the line of the lock `a`, in order, each with how many may hold the lock. 0: it wants a whole lock. */
  wait(places: Record<string, number>, time = MINUTE): Promise<number> {
    return this.addPlaces(
      Object.fromEntries(Object.entries(places).map(([owner, permits]) => [owner, time + permits * PERMIT])),
    );
  }

  /** In the first tenth of a second, the time has fewer digits, so a single free lock is acquired as others are. */
  async passFirstTenth(): Promise<void> {
    await until(async () => {
      const ms = (await this.now()) % 1_000;
      return ms >= 100 && ms < 900;
    });
  }

  /** Expects that the lease of this holder lasts as long as this from a time between `before` and now. */
  async expectHold(owner: string, before: number, lease = MINUTE, lock = 'a'): Promise<void> {
    expectBetween(Number(await this.redis.zscore(lock, owner)), before + lease, (await this.now()) + lease);
  }

  /** Locks with one holder each, `d:0`, `d:1`, …, whose leases end in consecutive ms from now on. */
  async edge(): Promise<{ locks: string[]; ends: number[] }> {
    await this.redis.flushall();
    const now = await this.now();
    const commands = this.redis.pipeline();
    for (let i = 0; i < 500; i++) commands.zadd(`lock:${i}`, now + i, `d:${i}`).pexpire(`lock:${i}`, MINUTE);
    await commands.exec();
    const locks = Array.from({ length: 500 }, (_, i) => `lock:${i}`);
    return { locks, ends: locks.map((_, i) => now + i) };
  }
}

describe('acquire-permits', () => {
  const world = new SharedLockWorld();
  const acquire = (owner: string, permits = 2, { lease = MINUTE, reserve = 0, seen = 0 } = {}) =>
    world.run('acquire-permits', [CLOCK, 'a'], [LATER, seen, lease, reserve, permits, owner]);
  const acquireAll = (locks: string[], owners: string[], permits = 2, reserve = 0) =>
    world.run('acquire-permits', [CLOCK, ...locks], [LATER, 0, MINUTE, reserve, permits, ...owners]);

  it('answers with the token alone for a lock that nobody held, unless the time has few digits', async () => {
    await world.redis.set(CLOCK, 1);
    const kinds = new Set<string>();
    let locks = 0;
    await until(async () => {
      const lock = `lock:${locks++}`;
      const before = await world.now();
      const reply = await world.run('acquire-permits', [CLOCK, lock], [LATER, 0, MINUTE, 0, 2, 'c:1']);
      const token = (Array.isArray(reply) ? reply[1] : reply) as number;
      expect(reply).toEqual(token % 1_000_000 < 100_000 ? [0, token] : token);
      expectBetween(token, before * 1_000, (await world.now()) * 1_000 + 999);
      expect(await world.redis.get(CLOCK)).toBe(String(token));
      expect(await world.holders(lock)).toEqual(['c:1']);
      await world.expectHold('c:1', before, MINUTE, lock);
      await world.expectLease(lock, MINUTE);
      kinds.add(typeof reply);
      return kinds.size === 2;
    });
  });

  it('gives a token above the clock and above the highest that was seen', async () => {
    await world.passFirstTenth();
    await world.redis.set(CLOCK, AHEAD);
    expect(await acquire('c:1')).toEqual([0, AHEAD + 1]);
    await world.redis.del('a');
    expect(await acquire('c:1', 2, { seen: AHEAD + 7 })).toEqual([0, AHEAD + 8]);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + 8));
    await world.redis.del('a');
    await world.redis.set(CLOCK, 1);
    expect(await acquire('c:1', 2, { seen: AHEAD })).toEqual([0, AHEAD + 1]);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + 1));
    expect(await world.holders()).toEqual(['c:1']);
  });

  it('gives no token of a batch if the clock cannot be written', async () => {
    await world.redis.rpush(CLOCK, 'of another program');
    const failed = [[expect.stringContaining('WRONGTYPE'), 'none']];
    expect(await acquireAll(['a', 'b'], ['c:1', 'c:2'])).toEqual([0, failed, failed]);
    expect(await world.redis.exists('a', 'b')).toBe(0);
  });

  it('starts a clock that does not exist ahead of the time', async () => {
    await world.passFirstTenth();
    const before = await world.now();
    const [reserved, token] = (await acquire('c:1')) as number[];
    expect(reserved).toBe(0);
    expectBetween(token, before * 1_000 + 150_000, (await world.now()) * 1_000 + 150_999);
    expect(await world.redis.get(CLOCK)).toBe(String(token));
  });

  it('reserves as many tokens with each acquisition of a batch', async () => {
    await world.redis.set(CLOCK, 1);
    const [one, alone] = (await acquire('c:1', 2, { reserve: 5 })) as number[];
    expect(one).toBe(5);
    expect(await world.redis.get(CLOCK)).toBe(String(alone + 5));
    await world.redis.set(CLOCK, 1);
    const [reserved, first, second] = (await acquireAll(['b', 'c'], ['c:1', 'c:2'], 2, 5)) as number[];
    expect(reserved).toBe(5);
    expect(second).toBe(first + 6);
    expect(await world.redis.get(CLOCK)).toBe(String(first + 11));
  });

  it('counts the tokens of a batch once', async () => {
    await world.redis.set(CLOCK, AHEAD);
    expect(await acquireAll(['a', 'b', 'c'], ['c:1', 'c:2', 'c:3'])).toEqual([0, AHEAD + 1, AHEAD + 2, AHEAD + 3]);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + 3));
    for (const [i, lock] of ['a', 'b', 'c'].entries()) {
      expect(await world.holders(lock)).toEqual([`c:${i + 1}`]);
      await world.expectLease(lock, MINUTE);
    }
  });

  it('lets as many owners hold a lock as the caller permits', async () => {
    await world.redis.set(CLOCK, AHEAD);
    expect(await acquireAll(['a', 'a', 'a', 'a'], ['c:1', 'c:2', 'c:3', 'c:4'], 3)).toEqual([
      0,
      AHEAD + 1,
      AHEAD + 2,
      AHEAD + 3,
      [expect.any(Number), 'c:1'],
    ]);
    expect(await world.holders()).toEqual(['c:1', 'c:2', 'c:3']);
    expect(await acquire('c:5', 2)).toEqual([0, [expect.any(Number), 'c:1']]);
    expect(await acquire('c:5', 4)).toEqual([0, expect.any(Number)]);
    expect(await world.holders()).toEqual(['c:1', 'c:2', 'c:3', 'c:5']);
  });

  it('names the holder whose lease ends first, and when', async () => {
    await world.hold({ 'd:1': 2 * MINUTE, 'd:2': MINUTE, 'd:3': -1, 'd:4': 3 * MINUTE });
    const [reserved, [left, holder]] = (await acquire('c:1', 3, { reserve: 4 })) as [number, [number, string]];
    expect([reserved, holder]).toEqual([0, 'd:2']);
    expectBetween(left, MINUTE - 5_000, MINUTE);
    expect(await world.redis.exists(CLOCK)).toBe(0);
    expect(await world.holders()).toEqual(['d:3', 'd:2', 'd:1', 'd:4']);
  });

  it('gives an owner that holds the lock a fresh lease, but no shorter one, however many hold it', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.hold({ 'c:1': 20_000, 'd:1': 2 * MINUTE });
    const before = await world.now();
    expect(await acquire('c:1', 1)).toEqual([0, AHEAD + 1]);
    await world.expectHold('c:1', before);
    await world.expectLease('a', 2 * MINUTE);
    const { 'd:1': ends } = await world.scores('a');
    expect(await acquire('d:1', 1)).toEqual([0, AHEAD + 2]);
    expect((await world.scores('a'))['d:1']).toBe(ends);
    await world.expectLease('a', 2 * MINUTE);
    expect(await acquire('c:1', 1, { lease: 3 * MINUTE })).toEqual([0, AHEAD + 3]);
    await world.expectLease('a', 3 * MINUTE);
    expect(await world.holders()).toEqual(['d:1', 'c:1']);
  });

  it('does not count those whose leases have ended, and removes them', async () => {
    await world.hold({ 'd:1': -5_000, 'd:2': -1, 'd:3': MINUTE });
    expect(await acquire('c:1', 2, { lease: MINUTE / 2 })).toEqual([0, expect.any(Number)]);
    expect(await world.holders()).toEqual(['c:1', 'd:3']);
    await world.expectLease('a', MINUTE);
  });

  it('gives an owner whose own lease has ended nothing that others hold', async () => {
    await world.hold({ 'c:1': -1, 'd:1': MINUTE });
    expect(await acquire('c:1', 1)).toEqual([0, [expect.any(Number), 'd:1']]);
  });

  it('takes a lock whose leases have all ended', async () => {
    await world.hold({ 'd:1': -1, 'd:2': -2 });
    expect(await acquire('c:1', 1)).toEqual([0, expect.any(Number)]);
    expect(await world.holders()).toEqual(['c:1']);
  });

  it('takes a permit in the very ms in which the lease before it ends', async () => {
    await until(async () => {
      const { locks, ends } = await world.edge();
      const owners = locks.map(() => 'c:1');
      const [, ...answers] = (await acquireAll(locks, owners, 1)) as (number | [number, string])[];
      const busy = answers.flatMap((answer, i) => (Array.isArray(answer) ? [ends[i] - answer[0]] : []));
      if (busy.length === 0 || busy.length === ends.length) return false;
      const now = busy[0];
      expect(new Set(busy)).toEqual(new Set([now]));
      expect(answers.map((answer) => Array.isArray(answer))).toEqual(ends.map((end) => end > now));
      return true;
    });
  });

  it.each([
    ['with other members than owners', { red: MINUTE }],
    ['whose first member is no owner', { 'c:1': 2 * MINUTE, 'c:9:write': MINUTE }],
    ['whose members have all lapsed', { red: -1 }],
  ])('refuses a zset %s, and leaves it unchanged', async (_what, members: Record<string, number>) => {
    await world.hold(members);
    await world.redis.pexpire('a', 2 * MINUTE);
    const before = await world.holders();
    const refused = [[expect.stringMatching(/^NOTALOCK /), 'zset']];
    expect(await acquire('c:1', 9)).toEqual([0, refused]);
    expect(await acquire('c:2', 1)).toEqual([0, refused]);
    expect(await world.holders()).toEqual(before);
    await world.expectLease('a', 2 * MINUTE);
    expect(await world.redis.exists(CLOCK)).toBe(0);
  });

  it('refuses a zset that lasts forever, even if its members look like owners', async () => {
    await world.hold({ 'c:1': MINUTE });
    await world.redis.persist('a');
    expect(await acquire('c:1', 9)).toEqual([0, [[expect.stringMatching(/^NOTALOCK /), 'zset']]]);
    expect(await world.holders()).toEqual(['c:1']);
    expect(await world.redis.pttl('a')).toBe(-1);
  });

  it.each([
    [{ 'd:1': '1' }, ['d:1']],
    [{ 'c:1': '1' }, ['c:1']],
    [{ mode: 'write', 'd:1:write': '1' }, ['d:1', 'write']],
    [{ mode: 'read', 'd:1': '1', 'd:2': '1' }, ['d:1', 'write']],
    [{ mode: 'read' }, ['']],
  ])('waits for a lock that is held in another way, as %j', async (fields, holder) => {
    await world.redis.hset('a', fields);
    await world.redis.pexpire('a', MINUTE);
    const [reserved, [left, ...rest]] = (await acquire('c:1', 9)) as [number, [number, ...string[]]];
    expect([reserved, rest]).toEqual([0, holder]);
    expectBetween(left, MINUTE - 5_000, MINUTE);
    expect(await world.redis.hgetall('a')).toEqual(fields);
  });

  it.each([{ color: 'red' }, { mode: 'idle', 'd:1': '1' }, { 'd:1': '1', color: 'red' }, { color: 'red', 'd:1': '1' }])(
    'refuses a hash of another program: %j',
    async (fields) => {
      await world.redis.hset('a', fields);
      expect(await acquire('c:1', 9)).toEqual([0, [[expect.stringMatching(/^NOTALOCK /), 'hash']]]);
    },
  );

  it('reads the fields of no more than 100,000 owners', async () => {
    const fill = async (count: number) => {
      const owners = Array.from({ length: count }, (_, i) => [`d:${i + 1}`, '1'] as const);
      for (let i = 0; i < count; i += 10_000)
        await world.redis.hset('a', Object.fromEntries(owners.slice(i, i + 10_000)));
    };
    await fill(100_000);
    expect(await acquire('c:1')).toEqual([0, [-1, expect.stringMatching(/^d:\d+$/), 'write']]);
    await fill(100_001);
    expect(await acquire('c:1')).toEqual([0, [[expect.stringMatching(/^NOTALOCK /), 'hash']]]);
  });

  it('reports for each lock its token, its holder or an error with the type of the lock', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.redis.set('text', 'of somebody else');
    await world.redis.rpush('list', 'of somebody else');
    await world.hold({ 'd:1': MINUTE }, 'busy');
    await world.hold({ 'c:5': MINUTE }, 'mine');
    const locks = ['text', 'free', 'busy', 'list', 'mine'];
    expect(await acquireAll(locks, ['c:1', 'c:2', 'c:3', 'c:4', 'c:5'], 1)).toEqual([
      0,
      [[expect.stringMatching(/^WRONGTYPE /), 'string']],
      AHEAD + 1,
      [expect.any(Number), 'd:1'],
      [[expect.stringMatching(/^WRONGTYPE /), 'list']],
      AHEAD + 2,
    ]);
    expect(await world.holders('free')).toEqual(['c:2']);
    expect(await world.holders('busy')).toEqual(['d:1']);
    expect(await acquireAll(['text'], ['c:1'])).toEqual([0, [[expect.stringMatching(/^WRONGTYPE /), 'string']]]);
  });

  it.each([
    ['a free lock', ['free'], 0],
    ['two free locks', ['free', 'other'], 0],
    ['a free lock and tokens in reserve', ['free'], 5],
    ['a lock that the owner holds', ['mine'], 0],
  ])('does nothing after its deadline with %s', async (_what, locks, reserve) => {
    const before = await world.hold({ 'c:1': 20_000 }, 'mine');
    await world.redis.set(CLOCK, 1);
    const args = [before - 1, 0, MINUTE, reserve, 2, ...locks.map(() => 'c:1')];
    const reply = (await world.run('acquire-permits', [CLOCK, ...locks], args)) as [string, number];
    expect(reply).toEqual(['expired', expect.any(Number)]);
    expectBetween(reply[1], before, await world.now());
    expect(await world.keys()).toEqual(['mine', CLOCK]);
    expect(await world.redis.get(CLOCK)).toBe('1');
    expect(await world.scores('mine')).toEqual({ 'c:1': before + 20_000 });
  });

  it('takes nothing when the memory is full, and says of each lock that it failed', async () => {
    await world.passFirstTenth();
    await world.redis.set(CLOCK, 1);
    await world.hold({ 'd:1': MINUTE }, 'held');
    await world.withFullMemory(async () => {
      expect(await outcome(acquire('c:1'))).toMatch(/OOM/);
      expect(await acquire('c:1', 2, { reserve: 1 })).toEqual([0, [[expect.stringContaining('OOM'), 'none']]]);
      expect(await acquireAll(['a', 'held'], ['c:1', 'c:1'])).toEqual([
        0,
        [[expect.stringContaining('OOM'), 'none']],
        [[expect.stringContaining('OOM'), 'zset']],
      ]);
      expect(await acquireAll(['held'], ['c:1'], 1)).toEqual([0, [expect.any(Number), 'd:1']]);
      expect(await world.keys()).toEqual(['held', CLOCK]);
      expect(await world.holders('held')).toEqual(['d:1']);
      expect(await world.redis.get(CLOCK)).toBe('1');
    });
  });

  it('leaves no lock without a lease when the user may not set one', async () => {
    await world.passFirstTenth();
    await world.redis.set(CLOCK, 1);
    const run = (locks: string[], reserve: number) => {
      const args = [LATER, 0, MINUTE, reserve, 2, ...locks.map(() => 'c:1')];
      return world.runWithout(['pexpire'], 'acquire-permits', [CLOCK, ...locks], args);
    };
    expect(await outcome(run(['a'], 0))).toMatch(DENIED);
    expect(await run(['a', 'b'], 1)).toEqual([
      expect.any(Number),
      [[expect.stringMatching(DENIED), 'none']],
      [[expect.stringMatching(DENIED), 'none']],
    ]);
    expect(await world.keys()).toEqual([CLOCK]);
  });

  it('fails as a whole on a replica', async () => {
    await world.redis.set(CLOCK, 1);
    await world.redis.replicaof('127.0.0.1', 1);
    try {
      await expect(acquireAll(['a', 'b'], ['c:1', 'c:2'])).rejects.toThrow(/READONLY/);
    } finally {
      await world.redis.replicaof('NO', 'ONE');
    }
  });

  it.each([
    [{ lease: 0 }, /lease time/],
    [{ lease: 0.5 }, /lease time/],
    [{ lease: 315_576_000_001 }, /lease time/],
    [{ seen: -1 }, /highest fencing token/],
  ])('refuses what cannot be: %j', async (options, message) => {
    await expect(acquire('c:1', 2, options)).rejects.toThrow(message);
    expect(await world.keys()).toEqual([]);
  });
});

describe('enter-permits-line', () => {
  const world = new SharedLockWorld();
  const WAIT = 30_000;
  const enter = (owner: string, permits = 2, { reserve = 0, until = LATER as string | number, seen = 0 } = {}) =>
    world.run(
      'enter-permits-line',
      [CLOCK, 'a'],
      [until, seen, MINUTE, reserve, owner, WAIT, 'PUBLISH', '', GRANT, permits],
    );

  it('takes a free lock, and makes no line', async () => {
    await world.redis.set(CLOCK, AHEAD);
    const before = await world.now();
    expect(await enter('c:1')).toEqual([AHEAD + 1, 0, 1]);
    await world.expectHold('c:1', before);
    await world.expectLease('a', MINUTE);
    expect(await world.keys()).toEqual(['a', CLOCK]);
  });

  it('reserves tokens, above the highest that was seen', async () => {
    await world.redis.set(CLOCK, 1);
    const [token, reserved, last] = (await enter('c:1', 2, { reserve: 5 })) as number[];
    expect([reserved, last]).toEqual([5, 1]);
    expect(await world.redis.get(CLOCK)).toBe(String(token + 5));
    expect(await enter('c:2', 2, { seen: AHEAD })).toEqual([AHEAD + 1, 0, 1]);
  });

  it('lets the owner in beside others, or renews the lease that it has', async () => {
    await world.hold({ 'd:1': MINUTE / 2, 'd:2': -1 });
    expect(await enter('c:1')).toEqual([expect.any(Number), 0, 1]);
    expect(await world.holders()).toEqual(['d:1', 'c:1']);
    const before = await world.now();
    expect(await enter('d:1', 1)).toEqual([expect.any(Number), 0, 1]);
    await world.expectHold('d:1', before);
    expect(await world.redis.exists(PLACES, LAPSES)).toBe(0);
  });

  it('makes a place when as many hold the lock, and notes how many may', async () => {
    await world.hold({ 'd:1': 2 * MINUTE, 'd:2': MINUTE });
    const before = await world.now();
    const [left, ...rest] = (await enter('c:1', 2)) as [number, ...unknown[]];
    expect(rest).toEqual(['d:2', '', 1]);
    expectBetween(left, MINUTE - 5_000, MINUTE);
    const lapse = Number(await world.redis.zscore(LAPSES, 'c:1'));
    expect(lapse % 1).toBe(2 * PERMIT);
    expectBetween(Math.floor(lapse), before + WAIT, (await world.now()) + WAIT);
    expect(await enter('c:2', 1)).toEqual([expect.any(Number), 'd:2', '', 0]);
    expect(await enter('c:1', 2)).toEqual([expect.any(Number), 'd:2', '', 1]);
    expect(await world.line()).toEqual(['c:1', 'c:2']);
    for (const key of [PLACES, LAPSES]) await world.expectLease(key, 2 * WAIT);
    expect(await world.keys()).toEqual(['a', PLACES, LAPSES, TERMS].sort());
  });

  it('leaves the line with its permit, and keeps those behind', async () => {
    await world.wait({ 'c:1': 1, 'c:2': 1 });
    const heard = await world.published(async () => {
      expect(await enter('c:1', 1)).toEqual([expect.any(Number), 0, 1]);
    });
    expect(heard).toEqual([]);
    expect(await world.line()).toEqual(['c:2']);
    expect(Object.keys(await world.scores(LAPSES))).toEqual(['c:2']);
    expect(await world.holders()).toEqual(['c:1']);
  });

  it('grants room to those in front, and waits if none is left', async () => {
    await world.wait({ 'd:1': 2, 'e:2': 2 });
    const before = await world.now();
    const heard = await world.published(async () => {
      expect(await enter('c:1', 2)).toEqual([expect.any(Number), 'd:1', '', 1]);
    });
    expect(heard).toEqual([told('d:1', ' granted'), told('e:2', ' granted')]);
    for (const owner of ['d:1', 'e:2']) await world.expectHold(owner, before, GRANT);
    await world.expectLease('a', GRANT);
    expect(await world.line()).toEqual(['c:1']);
    expect(await world.redis.exists(CLOCK)).toBe(0);
  });

  it('takes the room that those in front leave', async () => {
    await world.wait({ 'd:1': 3, 'd:2': 3 });
    expect(await enter('c:1', 3)).toEqual([expect.any(Number), 0, 1]);
    expect((await world.holders()).sort()).toEqual(['c:1', 'd:1', 'd:2']);
    expect(await world.redis.exists(PLACES, LAPSES)).toBe(0);
  });

  it('takes the permit that it was granted, and leaves the room for others as it is', async () => {
    await world.hold({ 'c:1': MINUTE / 2 });
    await world.wait({ 'd:1': 2 });
    const heard = await world.published(async () => {
      expect(await enter('c:1', 2)).toEqual([expect.any(Number), 0, 1]);
    });
    expect(heard).toEqual([]);
    expect(await world.holders()).toEqual(['c:1']);
    expect(await world.line()).toEqual(['d:1']);
    await world.expectLease('a', MINUTE);
  });

  it('passes those in front whose places have lapsed', async () => {
    await world.wait({ 'd:1': 1 }, -1);
    expect(await enter('c:1', 1)).toEqual([expect.any(Number), 0, 1]);
    expect(await world.holders()).toEqual(['c:1']);
    expect(await world.redis.exists(PLACES, LAPSES)).toBe(0);
  });

  it('waits behind one in front that wants the whole lock, which is granted to it', async () => {
    await world.wait({ 'd:1': 0 });
    expect(await enter('c:1', 2)).toEqual([expect.any(Number), 'd:1', '', 1]);
    expect(await world.redis.hgetall('a')).toEqual({ 'd:1': '1' });
    expect(await world.line()).toEqual(['c:1']);
  });

  it('waits until the head start of those outside the line is over', async () => {
    const now = await world.wait({ 'd:1': 0 });
    await world.redis.zadd(LAPSES, now + LONGEST_HEAD_START, 'outside');
    const heard = await world.published(async () => {
      const [left, ...rest] = (await enter('c:1', 2)) as [number, ...unknown[]];
      expect(rest).toEqual(['', '', 0]);
      expectBetween(left, 1, LONGEST_HEAD_START);
      expect(left).toBeGreaterThan(HEAD_START);
    });
    expect(heard).toEqual([told('d:1', ' free')]);
    expect(await world.redis.exists('a')).toBe(0);
    expect(await world.line()).toEqual(['d:1', 'c:1']);
  });

  it.each(['t read', 't write'])('tells one in front that it may ask, and waits for it: %s', async (terms) => {
    await world.addPlaces({ 'd:1': MINUTE }, terms);
    const heard = await world.published(async () => {
      const [left, ...rest] = (await enter('c:1', 2)) as [number, ...unknown[]];
      expect(rest).toEqual(['d:1', '', 0]);
      expectBetween(left, 1, HEAD_START);
    });
    expect(heard).toEqual([told('d:1')]);
    expect(await world.redis.exists('a', CLOCK)).toBe(0);
    expect(await world.line()).toEqual(['d:1', 'c:1']);
  });

  it.each(['t read', 't write', grantTerms()])(
    'passes one in front while a permit is left beside other holders: %s',
    async (terms) => {
      await world.addPlaces({ 'd:1': MINUTE }, terms);
      await world.hold({ 'e:1': MINUTE });
      const heard = await world.published(async () => {
        expect(await enter('c:1', 2)).toEqual([expect.any(Number), 0, 1]);
      });
      expect(heard).toEqual([]);
      expect((await world.holders()).sort()).toEqual(['c:1', 'e:1']);
      expect(await world.line()).toEqual(['d:1']);
    },
  );

  it('waits for a lock that is held in another way, and says in which', async () => {
    await world.redis.hset('a', { mode: 'write', 'd:1:write': '1' });
    expect(await enter('c:1', 9)).toEqual([-1, 'd:1', 'write', 1]);
    await world.redis.del('a');
    await world.redis.hset('a', 'd:1', '1');
    expect(await enter('c:1', 9)).toEqual([-1, 'd:1', '', 1]);
    expect(await world.line()).toEqual(['c:1']);
  });

  it('enters no line of a key of another program', async () => {
    await world.redis.set('a', 'of somebody else');
    await expect(enter('c:1')).rejects.toThrow(/WRONGTYPE/);
    await world.redis.del('a');
    await world.hold({ red: MINUTE });
    await expect(enter('c:1')).rejects.toThrow(/NOTALOCK/);
    expect(await world.keys()).toEqual(['a']);
  });

  it('names the holder of a busy lock even if the memory is full', async () => {
    await world.hold({ 'd:1': MINUTE });
    await world.withFullMemory(async () => {
      expect(await enter('c:1', 1)).toEqual([expect.any(Number), 'd:1', '', 1]);
      expect(await world.holders()).toEqual(['d:1']);
    });
  });

  it('does nothing after its deadline', async () => {
    const before = await world.now();
    const reply = (await enter('c:1', 2, { until: before - 1 })) as [string, number];
    expect(reply).toEqual(['expired', expect.any(Number)]);
    expectBetween(reply[1], before, await world.now());
    expect(await world.keys()).toEqual([]);
  });
});

describe('release-permits', () => {
  const world = new SharedLockWorld();
  const release = (owners: string[], { locks = owners.map(() => 'a'), publish = 'PUBLISH', clock = CLOCK } = {}) =>
    world.run('release-permits', locks, [publish, clock, ...owners]);

  it('frees the lock of its only holder, and answers with how many listened', async () => {
    await world.hold({ 'c:1': MINUTE });
    expect(await release(['c:1'])).toBe(0);
    expect(await world.keys()).toEqual([]);
    await world.hold({ 'c:1': MINUTE });
    const heard = await world.published(async () => {
      expect(await release(['c:1'])).toBe(1);
    });
    expect(heard).toEqual([FREED]);
    expect(await world.keys()).toEqual([]);
  });

  it('leaves the lock to the other holders, and as long as the last of them', async () => {
    await world.hold({ 'c:1': 3 * MINUTE, 'd:1': MINUTE, 'd:2': 2 * MINUTE, 'd:3': -1 });
    const heard = await world.published(async () => {
      expect(await release(['c:1'])).toEqual([1]);
    });
    expect(heard).toEqual([FREED]);
    expect(await world.holders()).toEqual(['d:1', 'd:2']);
    await world.expectLease('a', 2 * MINUTE);
  });

  it('says of each owner of a batch whether it held its lock', async () => {
    await world.hold({ 'c:1': MINUTE, 'c:2': -1, 'd:1': MINUTE });
    await world.hold({ 'c:4': MINUTE }, 'b{x}');
    await world.redis.hset('hash', 'c:5', '1');
    await world.redis.set('text', 'of somebody else');
    await world.redis.rpush('list', 'of somebody else');
    const locks = ['a', 'a', 'a', 'b{x}', 'hash', 'text', 'free', 'list'];
    const owners = locks.map((_, i) => `c:${i + 1}`);
    const before = await world.now();
    let reply: unknown;
    const heard = await world.published(async () => {
      reply = await release(owners, { locks });
    });
    const notHeld = [-1, expect.any(Number)];
    const [text, list] = ['string', 'list'].map((type) => [[expect.stringMatching(/^WRONGTYPE /), type]]);
    expect(reply).toEqual([1, notHeld, notHeld, 1, notHeld, text, notHeld, list]);
    expectBetween((reply as [number, number][])[1][1], before, await world.now());
    expect(heard).toEqual([FREED, 'redisson_lock__channel:b{x} 0']);
    expect(await world.keys()).toEqual(['a', 'hash', 'list', 'text']);
    expect(await world.holders()).toEqual(['d:1']);
    expect(await world.redis.hgetall('hash')).toEqual({ 'c:5': '1' });
  });

  it('does not release what a single owner does not hold, in whatever way others do', async () => {
    const notHeld = [[-1, expect.any(Number)]];
    expect(await release(['c:1'])).toEqual(notHeld);
    await world.hold({ 'd:1': MINUTE });
    expect(await release(['c:1'])).toEqual(notHeld);
    expect(await world.holders()).toEqual(['d:1']);
    await world.redis.del('a');
    await world.redis.hset('a', 'c:1', '1');
    expect(await release(['c:1'])).toEqual(notHeld);
    await world.redis.set('a', 'of somebody else');
    expect(await release(['c:1'])).toEqual([[[expect.stringMatching(/^WRONGTYPE /), 'string']]]);
    expect(await world.redis.get('a')).toBe('of somebody else');
  });

  it('does not release what has ended in this very ms', async () => {
    await until(async () => {
      const { locks, ends } = await world.edge();
      const owners = locks.map((_, i) => `d:${i}`);
      const answers = (await release(owners, { locks })) as (number | [number, number])[];
      const now = answers.flatMap((answer) => (Array.isArray(answer) ? [answer[1]] : []))[0];
      if (now === undefined || now >= ends[ends.length - 1]) return false;
      expect(answers).toEqual(ends.map((end) => (end > now ? 0 : [-1, now])));
      return true;
    });
  });

  it('notifies nobody without a command to publish with, and serves no line', async () => {
    await world.hold({ 'c:1': MINUTE, 'c:2': MINUTE });
    await world.wait({ 'd:1': 9 });
    const heard = await world.published(async () => {
      expect(await release(['c:1'], { publish: '' })).toEqual([-2]);
      expect(await release(['c:2'], { publish: '' })).toBe(0);
    });
    expect(heard).toEqual([]);
    expect(await world.redis.exists('a')).toBe(0);
    expect(await world.line()).toEqual(['d:1']);
  });

  it('is done although the user may not publish', async () => {
    const run = (...args: string[]) =>
      world.runWithout(
        ['publish'],
        'release-permits',
        args.map(() => 'a'),
        ['PUBLISH', CLOCK, ...args],
      );
    await world.hold({ 'c:1': MINUTE, 'c:2': MINUTE, 'c:3': MINUTE });
    await world.wait({ 'd:1': 9 });
    expect(await run('c:1', 'c:2')).toEqual([-3, -3]);
    expect(await world.holders()).toEqual(['c:3']);
    await world.expectLease('a', MINUTE);
    await world.redis.del('a');
    await world.hold({ 'c:1': MINUTE });
    expect(await run('c:1')).toBe(-3);
    expect(await world.redis.exists('a')).toBe(0);
  });

  it('is done although the user may not look at the line', async () => {
    await world.hold({ 'c:1': MINUTE });
    await world.wait({ 'd:1': 1 });
    expect(await world.runWithout(['exists'], 'release-permits', ['a'], ['PUBLISH', CLOCK, 'c:1'])).toBe(-3);
    expect(await world.redis.exists('a')).toBe(0);
    await world.hold({ 'c:1': MINUTE, 'c:2': MINUTE });
    expect(await world.runWithout(['zscore'], 'release-permits', ['a', 'a'], ['PUBLISH', CLOCK, 'c:1', 'c:2'])).toEqual(
      [[[expect.stringMatching(DENIED), 'zset']], [[expect.stringMatching(DENIED), 'zset']]],
    );
    await world.redis.del(PLACES);
    await world.redis.set(PLACES, 'of somebody else');
    expect(await release(['c:1', 'c:2'])).toEqual([0, 0]);
    await world.hold({ 'c:1': MINUTE });
    expect(await release(['c:1'])).toBe(0);
    expect(await world.redis.exists('a')).toBe(0);
  });

  it('grants the permit to the first in line', async () => {
    await world.hold({ 'c:1': MINUTE, 'c:2': MINUTE });
    await world.wait({ 'd:1': 2, 'e:2': 2 });
    const before = await world.now();
    const heard = await world.published(async () => {
      expect(await release(['c:1'])).toEqual([1]);
    });
    expect(heard).toEqual([FREED, told('d:1', ' granted')]);
    expect(await world.holders()).toEqual(['d:1', 'c:2']);
    await world.expectHold('d:1', before, GRANT);
    await world.expectLease('a', MINUTE);
    expect(await world.line()).toEqual(['e:2']);
    await world.redis.zrem('a', 'd:1');
    expect(await release(['c:2'])).toBe(0);
    expect(await world.holders()).toEqual(['e:2']);
    await world.expectLease('a', GRANT);
    expect(await world.redis.exists(PLACES, LAPSES, TERMS, CLOCK)).toBe(0);
  });

  it('keeps the lock for as long as a grant lasts', async () => {
    const now = await world.hold({ 'c:1': MINUTE, 'c:2': MINUTE });
    await world.redis.zadd('a', now + 500, 'c:2');
    await world.wait({ 'd:1': 9 });
    await release(['c:1']);
    const left = await world.redis.pttl('a');
    expect(left).toBeLessThanOrEqual(GRANT);
    expect(left).toBeGreaterThan(Number(await world.redis.zscore('a', 'd:1')) - (await world.now()) - 50);
  });

  it('grants as many permits as there is room for, to each place according to its own n', async () => {
    await world.hold({ 'b:1': MINUTE, 'b:2': MINUTE, 'c:1': MINUTE });
    await world.wait({ 'd:1': 2, 'd:2': 4, 'd:3': 3, 'd:4': 4, 'd:5': 5, 'd:6': 5 });
    const heard = await world.published(() => release(['c:1']));
    expect(heard).toEqual([FREED, told('d:2', ' granted'), told('d:4', ' granted'), told('d:5', ' granted')]);
    expect(await world.line()).toEqual(['d:1', 'd:3', 'd:6']);
    expect((await world.holders()).sort()).toEqual(['b:1', 'b:2', 'd:2', 'd:4', 'd:5']);
  });

  it('tells nobody if there is room for nobody', async () => {
    await world.hold({ 'b:1': MINUTE, 'c:1': MINUTE });
    await world.wait({ 'd:1': 1, 'd:2': 1 });
    expect(await world.published(() => release(['c:1']))).toEqual([FREED]);
    expect(await world.holders()).toEqual(['b:1']);
    expect(await world.line()).toEqual(['d:1', 'd:2']);
  });

  it('grants what is left to those behind a place that wants the whole lock, as newcomers may pass it, too', async () => {
    await world.hold({ 'b:1': MINUTE, 'c:1': MINUTE });
    await world.wait({ 'd:1': 0, 'd:2': 2, 'd:3': 3, 'd:4': 0, 'd:5': 9 });
    const heard = await world.published(() => release(['c:1']));
    expect(heard).toEqual([FREED, ...['d:2', 'd:3', 'd:5'].map((owner) => told(owner, ' granted'))]);
    expect((await world.holders()).sort()).toEqual(['b:1', 'd:2', 'd:3', 'd:5']);
    expect(await world.line()).toEqual(['d:1', 'd:4']);
  });

  it('grants the whole free lock to the first place, and no permit beside it', async () => {
    await world.hold({ 'c:1': MINUTE });
    await world.wait({ 'd:1': 0, 'd:2': 9 });
    expect(await world.told(() => release(['c:1']))).toEqual(['{a}:d d:1 granted']);
    expect(await world.redis.hgetall('a')).toEqual({ 'd:1': '1' });
    expect(await world.line()).toEqual(['d:2']);
  });

  it('gives permits back that it may not publish, and keeps the lock no longer for them', async () => {
    await world.hold({ 'b:1': 5_000, 'c:1': MINUTE });
    await world.wait({ 'd:1': 9 });
    expect(await world.runWithout(['publish'], 'release-permits', ['a'], ['PUBLISH', CLOCK, 'c:1'])).toEqual([-3]);
    expect(await world.holders()).toEqual(['b:1']);
    expect(await world.redis.pttl('a')).toBeLessThanOrEqual(5_000);
    expect(await world.line()).toEqual(['d:1']);
  });

  it('serves the line of each lock of a batch', async () => {
    await world.hold({ 'c:1': MINUTE }, 'b');
    await world.hold({ 'c:1': MINUTE });
    await world.wait({ 'd:1': 1 });
    expect(await world.told(() => release(['c:1', 'c:1'], { locks: ['b', 'a'] }))).toEqual(['{a}:d d:1 granted']);
    expect(await world.holders()).toEqual(['d:1']);
  });

  describe.each([
    ['alone', ['a']],
    ['in a batch', ['a', 'b']],
  ])('%s, when the first in line wants the whole lock', (_how, locks) => {
    const prepare = async () => {
      for (const lock of locks) await world.hold({ 'c:1': MINUTE }, lock);
      await world.wait({ 'd:1': 0 });
    };
    const releaseBoth = (clock: string) =>
      release(
        locks.map(() => 'c:1'),
        { locks, clock },
      );

    it('leaves it to others who listen, for a short head start', async () => {
      await prepare();
      const before = await world.now();
      const heard = await world.published(() => releaseBoth(CLOCK));
      expect(heard.slice(0, 2)).toEqual([FREED, told('d:1', ' free')]);
      expect(await world.redis.exists('a')).toBe(0);
      const headStart = Number(await world.redis.zscore(LAPSES, 'outside'));
      expectBetween(headStart, before + HEAD_START, (await world.now()) + HEAD_START);
    });

    it('grants it at once when nobody else listens', async () => {
      await prepare();
      await releaseBoth(CLOCK);
      expect(await world.redis.hgetall('a')).toEqual({ 'd:1': '1' });
      await world.expectLease('a', GRANT);
    });

    it('leaves it to others without a head start when they may listen uncounted', async () => {
      await prepare();
      await releaseBoth(`${CLOCK}:{a}`);
      expect(await world.redis.exists('a')).toBe(0);
      expect(await world.redis.zscore(LAPSES, 'outside')).toBe('0');
      expect(await world.line()).toEqual(['d:1']);
    });
  });
});

describe('renew-permits', () => {
  const world = new SharedLockWorld();
  const renew = (owners: string[], { locks = owners.map(() => 'a'), lease = MINUTE } = {}) =>
    world.run('renew-permits', locks, ['PUBLISH', lease, ...owners]);

  it('gives each holder a fresh lease, and reports for each whether it still held its lock', async () => {
    await world.hold({ 'c:1': 20_000, 'c:2': -1, 'c:3': 30_000, 'd:1': 40_000 });
    await world.redis.hset('hash', 'c:4', '1');
    await world.redis.set('text', 'of somebody else');
    await world.redis.rpush('list', 'of somebody else');
    const before = await world.now();
    const locks = ['text', 'a', 'a', 'a', 'hash', 'free', 'list'];
    const owners = ['c:0', 'c:1', 'c:2', 'c:3', 'c:4', 'c:5', 'c:6'];
    const [text, list] = ['string', 'list'].map((type) => [[expect.stringMatching(/^WRONGTYPE /), type]]);
    const reply = (await renew(owners, { locks })) as [number];
    expect(reply).toEqual([expect.any(Number), text, 1, 0, 1, 0, 0, list]);
    expectBetween(reply[0], before, await world.now());
    expect(await world.scores('a')).toEqual({
      'd:1': expect.any(Number),
      'c:1': reply[0] + MINUTE,
      'c:3': reply[0] + MINUTE,
    });
    await world.expectLease('a', MINUTE);
    expect(await world.redis.pttl('hash')).toBe(-1);
    expect(await world.redis.exists('free')).toBe(0);
  });

  it('keeps the lock as long as the last of its holders', async () => {
    await world.hold({ 'c:1': 2 * MINUTE, 'd:1': 3 * MINUTE });
    expect(await renew(['c:1'])).toEqual([expect.any(Number), 1]);
    await world.expectLease('a', 3 * MINUTE);
    expect(await renew(['d:1'])).toEqual([expect.any(Number), 1]);
    await world.expectLease('a', MINUTE);
    expect(await renew(['d:1'], { lease: 4 * MINUTE })).toEqual([expect.any(Number), 1]);
    await world.expectLease('a', 4 * MINUTE);
  });

  it('renews nothing that has ended in this very ms', async () => {
    await until(async () => {
      const { locks, ends } = await world.edge();
      const owners = locks.map((_, i) => `d:${i}`);
      const [now, ...answers] = (await renew(owners, { locks })) as number[];
      if (now >= ends[ends.length - 1]) return false;
      expect(answers).toEqual(ends.map((end) => Number(end > now)));
      return true;
    });
  });

  it('wakes waiters and the line if the first lease to end becomes shorter', async () => {
    await world.hold({ 'c:1': 2 * MINUTE, 'd:1': 3 * MINUTE, 'd:2': -1 });
    await world.wait({ 'e:1': 2 });
    expect(await world.published(() => renew(['c:1']))).toEqual([FREED, told('e:1')]);
    await world.hold({ 'c:1': 2 * MINUTE });
    expect(await world.published(() => renew(['d:1']))).toEqual([FREED, told('e:1')]);
    expect((await world.holders()).sort()).toEqual(['c:1', 'd:1']);
    expect(await world.line()).toEqual(['e:1']);
  });

  it('wakes nobody if the first lease to end does not become shorter', async () => {
    await world.hold({ 'c:1': MINUTE, 'd:1': 3 * MINUTE });
    await world.wait({ 'e:1': 2 });
    const heard = await world.published(async () => {
      await renew(['c:1']);
      await renew(['d:1'], { lease: 2 * MINUTE });
      await renew(['c:1'], { lease: 3 * MINUTE });
    });
    expect(heard).toEqual([]);
  });

  it('tells the line of permits that it finds free when it wakes it', async () => {
    await world.hold({ 'c:1': 2 * MINUTE });
    await world.wait({ 'e:1': 2 });
    expect(await world.published(() => renew(['c:1']))).toEqual([FREED, told('e:1')]);
    expect(await world.holders()).toEqual(['c:1']);
  });

  it('renews when the memory is full', async () => {
    await world.hold({ 'c:1': 20_000 });
    await world.withFullMemory(async () => {
      const before = await world.now();
      expect(await renew(['c:1'])).toEqual([expect.any(Number), 1]);
      await world.expectHold('c:1', before);
      await world.expectLease('a', MINUTE);
    });
  });

  it('renews although the user may not publish', async () => {
    await world.hold({ 'c:1': 2 * MINUTE });
    expect(await world.runWithout(['publish'], 'renew-permits', ['a'], ['PUBLISH', MINUTE, 'c:1'])).toEqual([
      expect.any(Number),
      1,
    ]);
    await world.expectLease('a', MINUTE);
  });

  it('changes nothing of a zset of another program', async () => {
    await world.hold({ red: MINUTE, 'c:1': 2 * MINUTE });
    const before = await world.scores('a');
    expect(await renew(['c:1'])).toEqual([expect.any(Number), [[expect.stringMatching(/^NOTALOCK /), 'zset']]]);
    expect(await world.scores('a')).toEqual(before);
    await world.redis.zrem('a', 'red');
    await world.redis.persist('a');
    expect(await renew(['c:1'])).toEqual([expect.any(Number), [[expect.stringMatching(/^NOTALOCK /), 'zset']]]);
    expect(await world.redis.pttl('a')).toBe(-1);
  });
});

describe('transfer-permits-2', () => {
  const world = new SharedLockWorld();
  const transfer = ({ lease = MINUTE, reserve = 0, until = LATER as string | number, seen = 0 } = {}) =>
    world.run('transfer-permits-2', [CLOCK, 'a'], [until, seen, lease, reserve, 'c:1', 'c:2', 'PUBLISH']);

  it('gives the permit to the next owner with a token and a fresh lease, once', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.hold({ 'c:1': MINUTE / 2, 'd:1': 2 * MINUTE, 'd:2': -1 });
    const before = await world.now();
    expect(await transfer()).toEqual([AHEAD + 1, 0]);
    expect(await world.holders()).toEqual(['c:2', 'd:1']);
    await world.expectHold('c:2', before);
    await world.expectLease('a', 2 * MINUTE);
    expect(await transfer()).toEqual([AHEAD + 2, 0]);
    expect(await world.holders()).toEqual(['c:2', 'd:1']);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + 2));
  });

  it('makes the lock as long as the new lease, if that is the last', async () => {
    await world.hold({ 'c:1': 20_000 });
    await transfer();
    expect(await world.holders()).toEqual(['c:2']);
    await world.expectLease('a', MINUTE);
  });

  it('reserves tokens, above the highest that was seen', async () => {
    await world.redis.set(CLOCK, 1);
    await world.hold({ 'c:1': MINUTE });
    const [token, reserved] = (await transfer({ reserve: 5 })) as number[];
    expect(reserved).toBe(5);
    expect(await world.redis.get(CLOCK)).toBe(String(token + 5));
    expect(await transfer({ seen: AHEAD })).toEqual([AHEAD + 1, 0]);
  });

  it.each([
    ['free', {}],
    ['held by another owner', { 'd:1': MINUTE }],
    ['no longer held by either', { 'c:1': -1, 'c:2': -1, 'd:1': MINUTE }],
  ])('transfers nothing of a lock that is %s', async (_what, holders: Record<string, number>) => {
    if (Object.keys(holders).length > 0) await world.hold(holders);
    const before = await world.scores('a');
    expect(await transfer()).toBeNull();
    expect(await world.scores('a')).toEqual(before);
    expect(await world.redis.exists(CLOCK)).toBe(0);
  });

  it('transfers nothing of a lock that is held in another way', async () => {
    await world.redis.hset('a', 'c:1', '1');
    expect(await transfer()).toBeNull();
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    await world.redis.set('a', 'of somebody else');
    await expect(transfer()).rejects.toThrow(/WRONGTYPE/);
    await world.redis.del('a');
    await world.hold({ red: MINUTE, 'c:1': 2 * MINUTE });
    await expect(transfer()).rejects.toThrow(/NOTALOCK/);
    expect(await world.holders()).toEqual(['red', 'c:1']);
    expect(await world.redis.exists(CLOCK)).toBe(0);
  });

  it('wakes waiters and the line if the first lease to end becomes shorter', async () => {
    await world.hold({ 'c:1': 3 * MINUTE, 'd:1': 2 * MINUTE });
    await world.wait({ 'e:1': 2 });
    expect(await world.published(() => transfer())).toEqual([FREED, told('e:1')]);
    expect(await world.published(() => transfer())).toEqual([]);
    expect(await world.published(() => transfer({ lease: 3 * MINUTE }))).toEqual([]);
    expect(await world.line()).toEqual(['e:1']);
  });

  it('transfers nothing when the memory is full', async () => {
    await world.redis.set(CLOCK, 1);
    await world.hold({ 'c:1': MINUTE });
    await world.withFullMemory(async () => {
      await expect(transfer()).rejects.toThrow(/OOM/);
      expect(await world.holders()).toEqual(['c:1']);
      expect(await world.redis.get(CLOCK)).toBe('1');
    });
  });

  it('does nothing after its deadline', async () => {
    const before = await world.hold({ 'c:1': MINUTE });
    const reply = (await transfer({ until: before - 1 })) as [string, number];
    expect(reply).toEqual(['expired', expect.any(Number)]);
    expectBetween(reply[1], before, await world.now());
    expect(await world.holders()).toEqual(['c:1']);
    expect(await world.redis.exists(CLOCK)).toBe(0);
  });
});

describe('inspect-5 and find-holders-1, of a lock that n may hold', () => {
  const world = new SharedLockWorld();
  const inspect = () => world.run('inspect-5', ['a', 'queue', 'timeouts', 'heartbeats', 'tokens']);
  const find = () => world.run('find-holders-1', ['a']);

  it('show those who hold it, with their own leases, and who waits', async () => {
    await world.hold({ 'c:1': 2 * MINUTE, 'c:2': MINUTE, 'c:3': -1 });
    await world.wait({ 'd:1': 2 });
    await world.wait({ 'd:2': 2 }, -1);
    await world.wait({ 'd:3': 2 });
    await world.redis.set('tokens', '42');
    const [mode, held, ...rest] = (await inspect()) as [string, (string | number)[], ...unknown[]];
    expect([mode, ...rest]).toEqual(['permits', ['d:1', 'd:3'], '42']);
    expect(held).toEqual(['c:2', expect.any(Number), 'c:1', expect.any(Number)]);
    expectBetween(held[1] as number, MINUTE - 5_000, MINUTE);
    expectBetween(held[3] as number, 2 * MINUTE - 5_000, 2 * MINUTE);
    expect(await find()).toEqual(['c:2', 'c:1']);
    expect(await world.holders()).toEqual(['c:3', 'c:2', 'c:1']);
  });

  it('show nobody when all leases have ended', async () => {
    await world.hold({ 'c:1': -1, 'c:2': -2 });
    expect(await inspect()).toEqual(['permits', [], [], null]);
    expect(await find()).toEqual([]);
  });

  it('fail for a key of another program', async () => {
    await world.hold({ red: MINUTE });
    await expect(inspect()).rejects.toThrow(/NOTALOCK/);
    await expect(find()).rejects.toThrow(/NOTALOCK/);
    await world.redis.set('a', 'of somebody else');
    await expect(inspect()).rejects.toThrow(/WRONGTYPE/);
  });
});

describe('force-release-5, of a lock that n may hold', () => {
  const world = new SharedLockWorld();
  const forceRelease = (token = '', ...owners: string[]) =>
    world.run(
      'force-release-5',
      ['a', 'queue', 'timeouts', 'heartbeats', 'tokens'],
      ['PUBLISH', owners.length > 0 ? '1' : '', token, ...owners],
    );
  /** What clients are told, in any order. */
  const toClients = (heard: string[]) =>
    Object.fromEntries(
      heard.flatMap((message) => {
        const [, client, text] = /^nestjs_redis_lock_client:\{(.*)\} (.*)$/.exec(message) ?? [];
        return client === undefined ? [] : [[client, JSON.parse(text)] as const];
      }),
    );

  it('removes all holders, wakes waiters of every kind, and tells each client', async () => {
    await world.hold({ 'c:1': MINUTE, 'c:2': 2 * MINUTE, 'd:1': 3 * MINUTE, 'e:1': -1 });
    const heard = await world.published(async () => {
      expect(await forceRelease()).toEqual(['c:1', 'c:2', 'd:1']);
    });
    expect(heard).toHaveLength(4);
    expect(heard.slice(0, 2)).toEqual(['redisson_rwlock:{a} 1', FREED]);
    expect(toClients(heard)).toEqual({
      c: { key: 'a', owners: ['c:1', 'c:2'] },
      d: { key: 'a', owners: ['d:1'] },
    });
    expect(await world.keys()).toEqual([]);
  });

  it('leaves the lock to those who were not named, and tells the line', async () => {
    await world.hold({ 'c:1': 3 * MINUTE, 'c:2': MINUTE, 'd:1': 2 * MINUTE, 'd:2': -1 });
    await world.wait({ 'f:1': 3, 'f:2': 3 });
    const heard = await world.published(async () => {
      expect(await forceRelease('', 'c:1', 'e:1', 'd:2')).toEqual(['c:1']);
    });
    expect(heard.slice(0, 3)).toEqual(['redisson_rwlock:{a} 1', FREED, told('f:1')]);
    expect(toClients(heard)).toEqual({ c: { key: 'a', owners: ['c:1'] } });
    expect((await world.holders()).sort()).toEqual(['c:2', 'd:1']);
    await world.expectLease('a', 2 * MINUTE);
    expect(await world.line()).toEqual(['f:1', 'f:2']);
  });

  it('releases nothing and tells nobody when the named owners do not hold the lock', async () => {
    await world.hold({ 'c:1': MINUTE, 'd:1': -1 });
    await world.wait({ 'f:1': 9 });
    const heard = await world.published(async () => {
      expect(await forceRelease('', 'e:1', 'd:1')).toEqual([]);
    });
    expect(heard).toEqual([]);
    expect(await world.holders()).toEqual(['c:1']);
    await world.expectLease('a', MINUTE);
  });

  it('frees the lock, first for others who listen, and tells the first two in line', async () => {
    await world.wait({ 'f:1': 0, 'f:2': 0 });
    await world.hold({ 'c:1': MINUTE });
    const heard = await world.published(() => forceRelease());
    expect(heard.slice(0, 3)).toEqual(['redisson_rwlock:{a} 1', FREED, told('f:1', ' free')]);
    await world.hold({ 'c:1': MINUTE });
    expect(await world.told(() => forceRelease())).toEqual(['{a}:f f:1', '{a}:f f:2 free']);
    expect(await world.redis.exists('a')).toBe(0);
  });

  it('removes the holders although the user may not publish, or the line is of another type', async () => {
    const keys = ['a', 'queue', 'timeouts', 'heartbeats', 'tokens'];
    await world.hold({ 'c:1': MINUTE });
    await world.wait({ 'f:1': 0 });
    expect(await world.runWithout(['publish'], 'force-release-5', keys, ['PUBLISH', '', ''])).toEqual(['c:1']);
    expect(await world.redis.exists('a')).toBe(0);
    await world.redis.flushall();
    await world.redis.set(PLACES, 'of somebody else');
    await world.hold({ 'c:1': MINUTE });
    expect(await forceRelease()).toEqual(['c:1']);
    expect(await world.redis.exists('a')).toBe(0);
  });

  it('removes what has ended without a word', async () => {
    await world.hold({ 'd:1': -1 });
    const heard = await world.published(async () => {
      expect(await forceRelease()).toEqual([]);
    });
    expect(heard).toEqual([]);
    expect(await world.redis.exists('a')).toBe(0);
  });

  it('releases nothing when the lock has another token than the expected one', async () => {
    await world.hold({ 'c:1': MINUTE });
    await world.redis.set('tokens', '8');
    expect(await forceRelease('7')).toEqual([]);
    expect(await world.holders()).toEqual(['c:1']);
    expect(await forceRelease('8')).toEqual(['c:1']);
  });

  it('refuses a zset of another program', async () => {
    await world.hold({ red: MINUTE, 'c:1': 2 * MINUTE });
    await expect(forceRelease()).rejects.toThrow(/NOTALOCK/);
    await expect(forceRelease('', 'c:1')).rejects.toThrow(/NOTALOCK/);
    expect(await world.holders()).toEqual(['red', 'c:1']);
  });
});

describe('scripts of other locks, of a lock that n may hold', () => {
  const world = new SharedLockWorld();
  // SHA-1 of 'secret'
  const TICKET = 'c:t-e5e9fa1ba31ecd1ae84f75caaa474f3a663f05f4';
  const adopt = (suffix = '') =>
    world.run('adopt-2', ['a', CLOCK], [LATER, 0, MINUTE, 'c', 'secret', 'd:1', suffix, 'PUBLISH']);

  it.each(['', ':write'])('adopt nothing, and name the holder whose lease ends first: %j', async (suffix) => {
    await world.hold({ 'e:1': 2 * MINUTE, 'e:2': MINUTE, [TICKET]: 3 * MINUTE, 'e:3': -1 });
    const before = await world.scores('a');
    expect(await adopt(suffix)).toEqual(['e:2']);
    expect(await world.scores('a')).toEqual(before);
    expect(await world.redis.exists(CLOCK)).toBe(0);
  });

  it('name the last holder when all leases have ended', async () => {
    await world.hold({ 'e:1': -1_000, 'e:2': -1 });
    expect(await adopt()).toEqual(['e:2']);
  });

  it('refuse to adopt a key of another program', async () => {
    await world.hold({ red: MINUTE });
    await expect(adopt()).rejects.toThrow(/NOTALOCK/);
    await world.redis.set('a', 'of somebody else');
    await expect(adopt()).rejects.toThrow(/WRONGTYPE/);
  });

  it('wait until the first lease ends', async () => {
    await world.hold({ 'e:1': 2 * MINUTE, 'c:1': MINUTE, 'e:3': -1 });
    const args = [LATER, 0, MINUTE, 0, 'c:1'];
    const [reserved, [left, ...rest]] = (await world.run('acquire-reentrant', [CLOCK, 'a'], args)) as [
      number,
      [number, ...string[]],
    ];
    expect([reserved, rest]).toEqual([0, ['c:1']]);
    expectBetween(left, MINUTE - 5_000, MINUTE);
    expect(await world.redis.zcard('a')).toBe(3);
  });

  it('only tell a place that wants a permit, while somebody holds the whole lock', async () => {
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.pexpire('a', 2 * MINUTE);
    await world.wait({ 'd:1': 9 });
    const heard = await world.published(() => world.run('renew-reentrant', ['a'], ['PUBLISH', MINUTE, 'c:1']));
    expect(heard).toEqual([FREED, told('d:1')]);
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    expect(await world.line()).toEqual(['d:1']);
  });

  it('pass a granted permit on when its owner no longer waits', async () => {
    await world.hold({ 'c:1': MINUTE / 2, 'd:1': MINUTE });
    await world.wait({ 'e:1': 2 });
    const heard = await world.published(async () => {
      expect(await world.run('remove-place-1', ['a'], ['PUBLISH', CLOCK, 'c:1'])).toBe(1);
    });
    expect(heard).toEqual([FREED, told('e:1', ' granted')]);
    expect(await world.holders()).toEqual(['e:1', 'd:1']);
  });

  it('grant the room that a lease leaves which ends in this very ms', async () => {
    await until(async () => {
      await world.redis.flushall();
      const places = Object.fromEntries(Array.from({ length: 120 }, (_, i) => [`d:${i + 1}`, i + 1]));
      await world.wait(places);
      const now = await world.now();
      const ends = Array.from({ length: 100 }, (_, i) => now + i);
      await world.redis.zadd('a', ...ends.flatMap((end, i) => [end, `c:${i}`]));
      await world.redis.pexpire('a', MINUTE);
      await world.run('refresh-places-1', ['a'], ['PUBLISH', CLOCK, MINUTE]);
      const granted = Object.entries(await world.scores('a')).filter(([owner]) => owner.startsWith('d:'));
      const first = Math.min(...granted.map(([owner]) => places[owner]));
      const held = ends.filter((end) => end > granted[0][1] - GRANT).length;
      if (held === 0) return false;
      expect(first).toBe(held + 1);
      expect(granted).toHaveLength(120 - held);
      return true;
    });
  });
});
