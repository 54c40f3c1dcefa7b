import { fencingToken } from '../../../../lib/backends/redis/lock-keys.js';
import { until } from '../../../support/until.js';
import { AHEAD, CLOCK, expectBetween, LATER, ScriptWorld } from './script-world.js';

const MINUTE = 60_000;

describe('acquire-reentrant', () => {
  const world = new ScriptWorld();

  it('moves the clock by one for a single lock, and answers with the token alone', async () => {
    await world.redis.set(CLOCK, AHEAD);
    expect(await world.run('acquire-reentrant', [CLOCK, 'a'], [LATER, 0, MINUTE, 0, 'c:1'])).toBe(AHEAD + 1);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + 1));
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    await world.expectLease('a', MINUTE);
  });

  it('takes a single free lock by five commands', async () => {
    await world.redis.set(CLOCK, 1);
    await world.run('acquire-reentrant', [CLOCK, 'first'], [LATER, 0, MINUTE, 0, 'c:1']);
    const used = async (lock: string) => {
      await world.redis.config('RESETSTAT');
      await world.run('acquire-reentrant', [CLOCK, lock], [LATER, 0, MINUTE, 0, 'c:1']);
      const calls = (await world.redis.info('commandstats')).matchAll(/cmdstat_(\w+):calls=(\d+)/g);
      const stats = Object.fromEntries([...calls].map(([, name, count]) => [name, Number(count)]));
      return ['pttl', 'time', 'getset', 'set', 'hset', 'pexpire'].map((name) => stats[name] ?? 0);
    };
    // In the first tenth of a second, the time has fewer digits, and it takes one more.
    let locks = 0;
    await until(async () => (await used(`lock:${locks++}`)).join() === '1,1,1,0,1,1');
  });

  it('finds out by one command that all locks of a batch are free', async () => {
    await world.redis.config('RESETSTAT');
    await world.run('acquire-reentrant', [CLOCK, 'a', 'b', 'c'], [LATER, 0, MINUTE, 0, 'c:1', 'c:2', 'c:3']);
    const stats = await world.redis.info('commandstats');
    expect(stats).toContain('cmdstat_exists:calls=1,');
    expect(stats).not.toContain('cmdstat_pttl');
  });

  it('gives a free lock that a batch names twice to the first', async () => {
    await world.redis.set(CLOCK, AHEAD);
    const owners = ['c:1', 'c:2', 'c:3'];
    const reply = await world.run('acquire-reentrant', [CLOCK, 'a', 'b', 'a'], [LATER, 0, MINUTE, 0, ...owners]);
    expect(reply).toMatchObject([0, AHEAD + 1, AHEAD + 2, [expect.any(Number), 'c:1']]);
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
  });

  it('takes free locks of a batch for a user without the right to EXISTS', async () => {
    const args = [LATER, 0, MINUTE, 0, 'c:1', 'c:2'];
    await world.runWithout(['exists'], 'acquire-reentrant', [CLOCK, 'a', 'b'], args);
    expect(await world.redis.hgetall('b')).toEqual({ 'c:2': '1' });
  });

  it('reads the lease of a single busy lock once', async () => {
    await world.run('acquire-reentrant', [CLOCK, 'a'], [LATER, 0, MINUTE, 0, 'c:1']);
    await world.redis.config('RESETSTAT');
    const [reserved, [ttl, holder]] = (await world.run(
      'acquire-reentrant',
      [CLOCK, 'a'],
      [LATER, 0, MINUTE, 0, 'c:2'],
    )) as [number, [number, string]];
    expect([reserved, holder]).toEqual([0, 'c:1']);
    expectBetween(ttl, MINUTE - 5_000, MINUTE);
    expect(await world.redis.info('commandstats')).toContain('cmdstat_pttl:calls=1,');
  });

  it('gives consecutive tokens to free locks, and answers with the first alone', async () => {
    await world.redis.set(CLOCK, AHEAD);
    const locks = ['a', 'b', 'c'];
    const reply = await world.run('acquire-reentrant', [CLOCK, ...locks], [LATER, 0, MINUTE, 0, 'c:1', 'c:2', 'c:3']);
    expect(reply).toBe(AHEAD + 1);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + 3));
    for (const [i, lock] of locks.entries()) {
      expect(await world.redis.hgetall(lock)).toEqual({ [`c:${i + 1}`]: '1' });
      await world.expectLease(lock, MINUTE);
    }
  });

  it('gives consecutive tokens of the time to free locks while the clock is behind', async () => {
    await world.redis.set(CLOCK, 1);
    const before = (await world.now()) * 1_000;
    const args = [LATER, 0, MINUTE, 0, 'c:1', 'c:2'];
    const token = (await world.run('acquire-reentrant', [CLOCK, 'a', 'b'], args)) as number;
    expect(token).toBeGreaterThanOrEqual(before);
    expect(await world.redis.get(CLOCK)).toBe(String(token + 1));
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    expect(await world.redis.hgetall('b')).toEqual({ 'c:2': '1' });
  });

  it('gives a token above the highest that was seen, also when the clock has just issued the next one', async () => {
    await world.redis.set(CLOCK, AHEAD + 1);
    expect(await world.run('acquire-reentrant', [CLOCK, 'a'], [LATER, AHEAD, MINUTE, 0, 'c:1'])).toBe(AHEAD + 2);
    expect(await world.run('acquire-reentrant', [CLOCK, 'b'], [LATER, AHEAD + 9, MINUTE, 0, 'c:1'])).toBe(AHEAD + 10);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + 10));
  });

  it('starts a clock that does not exist ahead of the time, and above the highest token that was seen', async () => {
    const before = await world.now();
    const token = (await world.run('acquire-reentrant', [CLOCK, 'a'], [LATER, 0, MINUTE, 0, 'c:1'])) as number;
    expect(token).toBeGreaterThanOrEqual(before * 1_000 + 150_000);
    expect(token).toBeLessThan((await world.now()) * 1_000 + 151_000 + 1_000);
    await world.redis.del(CLOCK);
    expect(await world.run('acquire-reentrant', [CLOCK, 'b'], [LATER, AHEAD, MINUTE, 0, 'c:1'])).toBe(AHEAD + 1);
  });

  it('reserves the tokens of each acquisition up to 0.1 s ahead of the time', async () => {
    await world.redis.set(CLOCK, 1);
    const before = (await world.now()) * 1_000;
    const [reserved, first, second] = (await world.run(
      'acquire-reentrant',
      [CLOCK, 'a', 'b'],
      [LATER, 0, MINUTE, 5, 'c:1', 'c:2'],
    )) as number[];
    expect(reserved).toBe(5);
    expect(first).toBeGreaterThanOrEqual(before);
    expect(second).toBe(first + 6);
    expect(await world.redis.get(CLOCK)).toBe(String(first + 11));
    const reply = await world.run('acquire-reentrant', [CLOCK, 'c', 'd'], [LATER, 0, MINUTE, 1e9, 'c:1', 'c:2']);
    const [most, token] = reply as number[];
    const ahead = Number(await world.redis.get(CLOCK)) - token;
    expect(ahead + 1).toBe(2 * (1 + most));
    expect(ahead).toBeLessThanOrEqual(100_000);
    expect(ahead).toBeGreaterThan(50_000);
  });

  it('reserves nothing while the clock is ahead of the time', async () => {
    await world.redis.set(CLOCK, AHEAD);
    expect(await world.run('acquire-reentrant', [CLOCK, 'a'], [LATER, 0, MINUTE, 5, 'c:1'])).toBe(AHEAD + 1);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + 1));
  });

  it.each([
    ['a free lock', ['free'], 0],
    ['two free locks', ['free', 'alsoFree'], 0],
    ['a free lock and tokens in reserve', ['free'], 5],
    ['a lock that the owner holds', ['mine'], 0],
    ['a free lock and one that the owner holds', ['mine', 'free'], 0],
  ])('does nothing after its deadline with %s', async (_what, locks, reserve) => {
    await world.redis.hset('mine', 'c:1', '1');
    await world.redis.pexpire('mine', 2_000);
    await world.redis.set(CLOCK, 1);
    const owners = locks.map(() => 'c:1');
    const before = await world.now();
    const args = [before - 1, 0, MINUTE, reserve, ...owners];
    const reply = (await world.run('acquire-reentrant', [CLOCK, ...locks], args)) as [string, number];
    expect(reply).toEqual(['expired', expect.any(Number)]);
    expectBetween(reply[1], before, await world.now());
    expect(await world.redis.get(CLOCK)).toBe('1');
    expect((await world.redis.keys('*')).sort()).toEqual(['mine', CLOCK]);
    expect(await world.redis.pttl('mine')).toBeLessThanOrEqual(2_000);
  });

  it('reports for each lock its token, its holder or an error', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.redis.hset('busy', 'd:1', '1');
    await world.redis.hset('mine', 'c:2', '1');
    await world.redis.pexpire('mine', 2_000);
    await world.redis.set('text', 'of somebody else');
    const keys = [CLOCK, 'busy', 'mine', 'text', 'free'];
    const args = [LATER, 0, MINUTE, 0, 'c:1', 'c:2', 'c:3', 'c:4'];
    const reply = (await world.run('acquire-reentrant', keys, args)) as unknown[];
    expect(reply).toHaveLength(5);
    const [reserved, busy, mine, text, free] = reply;
    expect(reserved).toBe(0);
    expect(busy).toEqual([-1, 'd:1']);
    expect(text).toEqual([[expect.stringContaining('WRONGTYPE'), 'string']]);
    expect([mine, free].sort()).toEqual([AHEAD + 1, AHEAD + 2]);
    await world.expectLease('mine', MINUTE);
    await world.expectLease('free', MINUTE);
    expect(await world.redis.pttl('busy')).toBe(-1);
  });

  it('answers that nothing is reserved when all locks are busy', async () => {
    await world.redis.hset('busy', 'd:1', '1');
    expect(await world.run('acquire-reentrant', [CLOCK, 'busy'], [LATER, 0, MINUTE, 7, 'c:1'])).toEqual([
      0,
      [-1, 'd:1'],
    ]);
    expect(await world.redis.exists(CLOCK)).toBe(0);
  });

  it.each([
    ['of ten years', 315_576_000_000, true],
    ['of a ms more than ten years', 315_576_000_001, false],
    ['of one ms', 1, true],
    ['of half a ms', 0.5, false],
  ])('decides whether a lease %s is possible', async (_what, lease, isPossible) => {
    const reply = world.run('acquire-reentrant', [CLOCK, 'a'], [LATER, 0, lease, 0, 'c:1']);
    if (isPossible) await expect(reply).resolves.toEqual(expect.any(Number));
    else await expect(reply).rejects.toThrow(/lease time/);
  });

  it.each([
    ['2^53 - 1', '9007199254740991', true],
    ['2^53', '9007199254740992', false],
    ['0', '0', true],
    ['-1', '-1', false],
  ])('decides whether %s can be the highest token that was seen', async (_what, seen, isPossible) => {
    const reply = world.run('acquire-reentrant', [CLOCK, 'a'], [LATER, seen, MINUTE, 0, 'c:1']);
    if (isPossible) await expect(reply).resolves.toEqual(expect.any(Number));
    else await expect(reply).rejects.toThrow(/highest fencing token/);
  });
});

describe('acquire-fenced', () => {
  const world = new ScriptWorld();

  it('takes tokens from the counter of each lock, and leaves the clock alone', async () => {
    await world.redis.mset({ [CLOCK]: AHEAD, tokensOfA: AHEAD + 50, tokensOfB: AHEAD + 90 });
    const keys = [CLOCK, 'a', 'tokensOfA', 'b', 'tokensOfB'];
    expect(await world.run('acquire-fenced', keys, [LATER, 0, MINUTE, 0, 'c:1', 'c:2'])).toEqual([
      0,
      [AHEAD + 51, 0, 1],
      [AHEAD + 91, 0, 1],
    ]);
    expect(await world.redis.mget('tokensOfA', 'tokensOfB', CLOCK)).toEqual(
      [AHEAD + 51, AHEAD + 91, AHEAD].map(String),
    );
    await world.expectLease('b', MINUTE);
  });

  it('starts a counter that does not exist above the clock of all locks', async () => {
    await world.redis.set(CLOCK, AHEAD);
    expect(await world.run('acquire-fenced', [CLOCK, 'a', 'tokens'], [LATER, 0, MINUTE, 0, 'c:1'])).toEqual([
      0,
      [AHEAD + 2, 0, 1],
    ]);
    expect(await world.redis.mget('tokens', CLOCK)).toEqual([String(AHEAD + 2), String(AHEAD + 1)]);
  });

  it('names the holder of a busy lock', async () => {
    await world.redis.hset('a', 'd:1', '1');
    await world.redis.pexpire('a', MINUTE);
    const reply = await world.run('acquire-fenced', [CLOCK, 'a', 'tokens'], [LATER, 0, MINUTE, 0, 'c:1']);
    expect(reply).toEqual([0, [expect.any(Number), 'd:1']]);
    expect(await world.redis.exists('tokens', CLOCK)).toBe(0);
  });
});

describe('acquire-all', () => {
  const world = new ScriptWorld();
  const keysOf = (...locks: string[]) => [
    CLOCK,
    ...locks.flatMap((lock) => [lock, fencingToken(lock), `{${lock}}:c:1:rwlock_timeout:1`]),
  ];

  it('acquires locks of every type together, and says the token of each', async () => {
    await world.redis.set(CLOCK, AHEAD);
    const args = ['reentrant', 'read', 'write', 'fenced'].flatMap((type) => [type, 'c:1', '1']);
    const reply = await world.run('acquire-all', keysOf('a', 'b', 'c', 'd'), [LATER, 0, MINUTE, ...args]);
    expect(reply).toEqual([1, AHEAD + 1, AHEAD + 2, AHEAD + 3, AHEAD + 6]);
    expect(await world.redis.mget(CLOCK, fencingToken('d'))).toEqual([String(AHEAD + 5), String(AHEAD + 6)]);
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    expect(await world.redis.hgetall('b')).toEqual({ mode: 'read', 'c:1': '1' });
    expect(await world.redis.hgetall('c')).toEqual({ mode: 'write', 'c:1:write': '1' });
    expect(await world.redis.hgetall('d')).toEqual({ 'c:1': '1' });
    for (const lock of ['a', 'b', 'c', 'd']) await world.expectLease(lock, MINUTE);
    await world.expectLease('{b}:c:1:rwlock_timeout:1', MINUTE);
  });

  it('gives each owner the lock that it holds already', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.redis.hset('b', 'c:2', '1');
    const args = ['reentrant', 'c:1', '1', 'fenced', 'c:2', '1'];
    const reply = await world.run('acquire-all', keysOf('a', 'b'), [LATER, 0, MINUTE, ...args]);
    expect(reply).toEqual([1, AHEAD + 1, expect.any(Number)]);
    await world.expectLease('b', MINUTE);
  });

  it.each([1, 2, 3])('moves the clock by one for each of %d locks', async (count) => {
    await world.redis.set(CLOCK, AHEAD);
    const locks = ['a', 'b', 'c'].slice(0, count);
    const args = locks.flatMap(() => ['reentrant', 'c:1', '1']);
    await world.run('acquire-all', keysOf(...locks), [LATER, 0, MINUTE, ...args]);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + count));
  });

  it('acquires nothing if a lock is busy, and reports which one, the time left and the holder', async () => {
    await world.redis.hset('c', 'd:1', '1');
    await world.redis.pexpire('c', MINUTE);
    const args = ['reentrant', 'reentrant', 'fenced'].flatMap((type) => [type, 'c:1', '1']);
    const reply = await world.run('acquire-all', keysOf('a', 'b', 'c'), [LATER, 0, MINUTE, ...args]);
    expect(reply).toEqual([0, 2, expect.any(Number), 'd:1']);
    expect((reply as number[])[2]).toBeGreaterThan(MINUTE / 2);
    expect(await world.redis.keys('*')).toEqual(['c']);
  });

  it('acquires nothing when one key is of another type, and lists the types of its keys', async () => {
    await world.redis.set('b', 'of somebody else');
    await world.redis.set(fencingToken('b'), '1');
    const args = ['reentrant', 'fenced'].flatMap((type) => [type, 'c:1', '1']);
    expect(await world.run('acquire-all', keysOf('a', 'b'), [LATER, 0, MINUTE, ...args])).toEqual([
      2,
      1,
      [[expect.stringContaining('WRONGTYPE'), 'string', 'string', 'none']],
    ]);
    expect(await world.redis.exists('a', CLOCK)).toBe(0);
  });

  it('acquires nothing when the token counter of one lock is something else, and reports which one', async () => {
    await world.redis.hset(fencingToken('b'), 'of', 'somebody else');
    const args = ['fenced', 'fenced', 'reentrant'].flatMap((type) => [type, 'c:1', '1']);
    expect(await world.run('acquire-all', keysOf('a', 'b', 'c'), [LATER, 0, MINUTE, ...args])).toEqual([
      2,
      1,
      [[expect.stringContaining('WRONGTYPE'), 'none', 'hash', 'none']],
    ]);
    expect(await world.redis.exists('a', 'b', 'c')).toBe(0);
  });

  it('lets a reader pass others in line only if it says so', async () => {
    await world.addPlaces({ 'd:1': MINUTE }, 't write', '{b}');
    const acquire = (...pastLine: string[]) =>
      world.run('acquire-all', keysOf('a', 'b'), [
        LATER,
        0,
        MINUTE,
        ...pastLine.flatMap((past) => ['read', 'c:1', past]),
      ]);
    expect(await acquire('1', '0')).toEqual([0, 1, expect.any(Number), 'd:1']);
    expect(await acquire('0', '1')).toEqual([1, expect.any(Number), expect.any(Number)]);
  });
});

describe('acquire-all-reentrant', () => {
  const world = new ScriptWorld();

  it('answers one caller that finds its locks free with the first token', async () => {
    await world.redis.set(CLOCK, AHEAD);
    const reply = await world.run('acquire-all-reentrant', [CLOCK, 'a', 'b'], [LATER, 0, MINUTE, 1, 2, 'c:1', 'c:2']);
    expect(reply).toBe(AHEAD + 1);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + 2));
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    expect(await world.redis.hgetall('b')).toEqual({ 'c:2': '1' });
    await world.expectLease('b', MINUTE);
  });

  it('gives each of several callers all of its locks or none', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.redis.hset('busy', 'd:1', '1');
    await world.redis.hset('mine', 'c:6', '1');
    await world.redis.set('text', 'of somebody else');
    const callers = [
      [
        ['a', 'c:1'],
        ['b', 'c:2'],
      ],
      [
        ['e', 'c:3'],
        ['f', 'c:4'],
        ['busy', 'c:5'],
      ],
      [
        ['mine', 'c:6'],
        ['g', 'c:7'],
      ],
      [['h', 'c:8']],
      [
        ['i', 'c:9'],
        ['text', 'c:10'],
      ],
    ];
    const locks = callers.flat();
    const reply = await world.run(
      'acquire-all-reentrant',
      [CLOCK, ...locks.map(([lock]) => lock)],
      [LATER, 0, MINUTE, callers.length, ...callers.map(({ length }) => length), ...locks.map(([, owner]) => owner)],
    );
    expect(reply).toEqual([
      AHEAD + 1,
      [2, -1, 'd:1'],
      AHEAD + 4,
      AHEAD + 3,
      [1, [expect.stringContaining('WRONGTYPE'), 'string']],
    ]);
    expect(await world.redis.exists('e', 'f', 'i')).toBe(0);
    expect(await world.redis.exists('a', 'b', 'mine', 'g', 'h')).toBe(5);
    await world.expectLease('mine', MINUTE);
    await world.expectLease('g', MINUTE);
    expect(await world.redis.hgetall('g')).toEqual({ 'c:7': '1' });
  });

  it('gives a lock to the caller that finds all of its locks free', async () => {
    await world.redis.hset('busy', 'd:1', '1');
    const keys = [CLOCK, 'a', 'busy', 'a'];
    expect(await world.run('acquire-all-reentrant', keys, [LATER, 0, MINUTE, 2, 2, 1, 'c:1', 'c:1', 'c:2'])).toEqual([
      [0, expect.any(Number), 'c:2'],
      expect.any(Number),
    ]);
    expect(await world.redis.hgetall('a')).toEqual({ 'c:2': '1' });
  });

  it('gives tokens of their own to callers that hold their locks already', async () => {
    await world.redis.set(CLOCK, AHEAD);
    for (const [i, lock] of ['a', 'b', 'c', 'd'].entries()) await world.redis.hset(lock, `c:${i}`, '1');
    const keys = [CLOCK, 'a', 'b', 'c', 'd'];
    const args = [LATER, 0, MINUTE, 3, 1, 2, 1, 'c:0', 'c:1', 'c:2', 'c:3'];
    expect(await world.run('acquire-all-reentrant', keys, args)).toEqual([AHEAD + 1, AHEAD + 2, AHEAD + 4]);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + 4));
  });

  it('gives the second of two callers of one lock the first as its holder', async () => {
    const keys = [CLOCK, 'a', 'a'];
    expect(await world.run('acquire-all-reentrant', keys, [LATER, 0, MINUTE, 2, 1, 1, 'c:1', 'c:2'])).toEqual([
      expect.any(Number),
      [0, expect.any(Number), 'c:1'],
    ]);
  });

  it('answers a single caller that finds a lock busy with a list', async () => {
    await world.redis.hset('busy', 'd:1', '1');
    await world.redis.pexpire('busy', MINUTE);
    expect(
      await world.run('acquire-all-reentrant', [CLOCK, 'a', 'busy'], [LATER, 0, MINUTE, 1, 2, 'c:1', 'c:1']),
    ).toEqual([[1, expect.any(Number), 'd:1']]);
    expect(await world.redis.exists('a')).toBe(0);
  });
});

describe('release-reentrant', () => {
  const world = new ScriptWorld();

  it('answers with one number when all locks have the same answer, and tells the waiters of each', async () => {
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.hset('b{x}', 'c:2', '1');
    let reply: unknown;
    const heard = await world.published(async () => {
      reply = await world.run('release-reentrant', ['a', 'b{x}'], ['PUBLISH', '', 'c:1', 'c:2']);
    });
    expect(reply).toBe(1);
    expect(heard).toEqual(['redisson_lock__channel:{a} 0', 'redisson_lock__channel:b{x} 0']);
    expect(await world.redis.exists('a', 'b{x}')).toBe(0);
  });

  it('says for each lock what happened', async () => {
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.set('text', 'of somebody else');
    const before = await world.now();
    const reply = (await world.run(
      'release-reentrant',
      ['a', 'free', 'text'],
      ['PUBLISH', '', 'c:1', 'c:2', 'c:3'],
    )) as [number, [number, number], unknown];
    expect(reply).toEqual([0, [-1, expect.any(Number)], [[expect.stringContaining('WRONGTYPE'), 'string']]]);
    expectBetween(reply[1][1], before, await world.now());
  });

  it('says how many listened to each lock where not all have as many', async () => {
    for (const lock of ['a', 'b', 'c']) await world.redis.hset(lock, 'c:1', '1');
    const listener = world.server.client();
    await listener.subscribe('redisson_lock__channel:{a}');
    expect(await world.run('release-reentrant', ['a', 'b', 'c'], ['PUBLISH', '', 'c:1', 'c:1', 'c:1'])).toEqual([
      1, 0, 0,
    ]);
  });

  it('publishes nothing without a command to publish with', async () => {
    await world.redis.hset('a', 'c:1', '1');
    const heard = await world.published(async () => {
      expect(await world.run('release-reentrant', ['a'], ['', '', 'c:1'])).toBe(-2);
    });
    expect(heard).toEqual([]);
  });
});

describe('renew-reentrant', () => {
  const world = new ScriptWorld();

  it('renews what its owner holds', async () => {
    for (const lock of ['a', 'b', 'c']) await world.redis.hset(lock, 'c:1', '1');
    await world.redis.hset('c', 'mode', 'read');
    const before = await world.now();
    const reply = (await world.run(
      'renew-reentrant',
      ['a', 'b', 'c'],
      ['PUBLISH', MINUTE, 'c:1', 'd:1', 'c:1'],
    )) as number[];
    expect(reply).toEqual([expect.any(Number), 1, 0, 0]);
    expect(reply[0]).toBeGreaterThanOrEqual(before);
    await world.expectLease('a', MINUTE);
    expect(await world.redis.pttl('b')).toBe(-1);
    expect(await world.redis.pttl('c')).toBe(-1);
  });
});

describe('transfer-reentrant-2', () => {
  const world = new ScriptWorld();
  const transfer = (lease = MINUTE, reserve = 0) =>
    world.run('transfer-reentrant-2', [CLOCK, 'a'], [LATER, 0, lease, reserve, 'c:1', 'c:2', 'PUBLISH']);

  it('transfers the lock to the next owner with a new token and a fresh lease', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.redis.hset('a', 'c:1', '1');
    expect(await transfer()).toEqual([AHEAD + 1, 0]);
    expect(await world.redis.hgetall('a')).toEqual({ 'c:2': '1' });
    await world.expectLease('a', MINUTE);
    expect(await transfer()).toEqual([AHEAD + 2, 0]); // a copy that arrives late
    expect(await world.redis.hgetall('a')).toEqual({ 'c:2': '1' });
  });

  it('takes the lock from nobody else', async () => {
    await world.redis.hset('a', 'd:1', '1');
    expect(await transfer()).toBeNull();
    expect(await world.redis.hgetall('a')).toEqual({ 'd:1': '1' });
    await world.redis.del('a');
    expect(await transfer()).toBeNull();
    expect(await world.redis.exists('a', CLOCK)).toBe(0);
  });

  it('wakes the waiters when the lease becomes shorter', async () => {
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.pexpire('a', 2 * MINUTE);
    expect(await world.published(() => transfer())).toEqual(['redisson_lock__channel:{a} 0']);
    expect(await world.published(() => transfer())).toEqual([]);
  });
});

describe('adopt-2', () => {
  const world = new ScriptWorld();
  const SECRET = 'secret';
  // SHA-1 of the secret
  const TICKET = 'e5e9fa1ba31ecd1ae84f75caaa474f3a663f05f4';
  const adopt = (suffix: string, lease = MINUTE) =>
    world.run('adopt-2', ['a', CLOCK], [LATER, 0, lease, 'c', SECRET, 'd:1', suffix, 'PUBLISH']);

  it.each([
    ['', {}, 'redisson_lock__channel:{a} 0'],
    [':write', { mode: 'write' }, 'redisson_rwlock:{a} 1'],
  ])('gives a lock whose owners have the suffix %j to the adopter', async (suffix, others, message) => {
    await world.redis.set(CLOCK, AHEAD);
    await world.redis.hset('a', { [`c:t-${TICKET}${suffix}`]: '1', ...others });
    await world.redis.pexpire('a', 2 * MINUTE);
    const heard = await world.published(async () => {
      expect(await adopt(suffix)).toEqual([AHEAD + 1, 0]);
    });
    expect(heard).toEqual([message]);
    expect(await world.redis.hgetall('a')).toEqual({ [`d:1${suffix}`]: '1', ...others });
    await world.expectLease('a', MINUTE);
  });

  it.each(['', ':write'])(
    'answers again to an adopter with the suffix %j, and only makes its lease longer',
    async (suffix) => {
      await world.redis.set(CLOCK, AHEAD);
      await world.redis.hset('a', { [`d:1${suffix}`]: '1', ...(suffix === '' ? {} : { mode: 'write' }) });
      await world.redis.pexpire('a', 2 * MINUTE);
      const heard = await world.published(async () => {
        expect(await adopt(suffix)).toEqual([AHEAD + 1, 0]);
        await world.expectLease('a', 2 * MINUTE);
        expect(await adopt(suffix, 3 * MINUTE)).toEqual([AHEAD + 2, 0]);
        await world.expectLease('a', 3 * MINUTE);
      });
      expect(heard).toEqual([]);
    },
  );

  it('names the holder of a lock that was not detached with this ticket', async () => {
    expect(await adopt('')).toEqual(['']);
    await world.redis.hset('a', 'e:1', '1');
    expect(await adopt('')).toEqual(['e:1']);
    expect(await world.redis.exists(CLOCK)).toBe(0);
  });

  it('does not take a read/write lock for a lock of one owner, and the other way round', async () => {
    await world.redis.hset('a', { [`c:t-${TICKET}`]: '1', mode: 'read' });
    expect(await adopt('')).toEqual([`c:t-${TICKET}`]);
    await world.redis.del('a');
    await world.redis.hset('a', { [`c:t-${TICKET}:write`]: '1' });
    expect(await adopt(':write')).toEqual([`c:t-${TICKET}`]);
  });
});

describe('force-release-5', () => {
  const world = new ScriptWorld();
  const KEYS = ['a', 'queue', 'timeouts', 'heartbeats', 'tokens'];
  const forceRelease = (token = '', ...owners: string[]) =>
    world.run('force-release-5', KEYS, ['PUBLISH', owners.length > 0 ? '1' : '', token, ...owners]);
  const client = (id: string, ...owners: string[]) =>
    `nestjs_redis_lock_client:{${id}} ${JSON.stringify({ key: 'a', owners })}`;

  it('removes the owner, wakes waiters of every kind, and tells the client', async () => {
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.rpush('queue', 'd:7');
    await world.redis.zadd('heartbeats', (await world.now()) + MINUTE, 'd:7');
    const heard = await world.published(async () => {
      expect(await forceRelease()).toEqual(['c:1']);
    });
    expect(heard).toEqual([
      'redisson_rwlock:{a} 1',
      'redisson_lock__channel:{a}:d:7 0',
      'redisson_lock__channel:{a} 0',
      expect.stringMatching(/^nestjs_redis_lock_client:\{c\} /),
    ]);
    expect(JSON.parse(heard[3].slice(heard[3].indexOf(' ')))).toEqual({ key: 'a', owners: ['c:1'] });
    expect(await world.redis.exists('a')).toBe(0);
  });

  it('removes all readers, the writer, and each of their leases', async () => {
    await world.redis.hset('a', { mode: 'write', 'c:1:write': '1', 'c:1': '2', 'd:2': '1' });
    const leases = ['{a}:c:1:rwlock_timeout:1', '{a}:c:1:rwlock_timeout:2', '{a}:d:2:rwlock_timeout:1'];
    for (const lease of leases) await world.redis.set(lease, '1', 'PX', MINUTE);
    const owners = (await forceRelease()) as string[];
    expect(owners.sort()).toEqual(['c:1', 'd:2']);
    expect(await world.redis.keys('*')).toEqual([]);
  });

  it('leaves a lock to the readers that were not named', async () => {
    await world.redis.hset('a', { mode: 'read', 'c:1': '1', 'd:2': '1' });
    await world.redis.set('{a}:c:1:rwlock_timeout:1', '1', 'PX', 2 * MINUTE);
    await world.redis.set('{a}:d:2:rwlock_timeout:1', '1', 'PX', MINUTE);
    await world.redis.pexpire('a', 2 * MINUTE);
    const heard = await world.published(async () => {
      expect(await forceRelease('', 'c:1', 'e:1')).toEqual(['c:1']);
    });
    expect(heard).toEqual([client('c', 'c:1')]);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'read', 'd:2': '1' });
    await world.expectLease('a', MINUTE);
  });

  it('releases nothing and tells nobody when the named owners do not hold the lock, or the lock is free', async () => {
    const heard = await world.published(async () => {
      expect(await forceRelease()).toEqual([]);
      await world.redis.hset('a', 'c:1', '1');
      expect(await forceRelease('', 'd:1')).toEqual([]);
    });
    expect(heard).toEqual([]);
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
  });

  it('releases nothing when the lock has another token than the expected one', async () => {
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.set('tokens', '8');
    expect(await forceRelease('7')).toEqual([]);
    expect(await forceRelease('8')).toEqual(['c:1']);
  });

  it('removes a reader whose lease has ended, and then wakes nobody', async () => {
    await world.redis.hset('a', { mode: 'read', 'c:1': '1' });
    expect(await forceRelease()).toEqual([]);
    expect(await world.redis.exists('a')).toBe(0);
  });
});

describe('inspect-5', () => {
  const world = new ScriptWorld();
  const inspect = () => world.run('inspect-5', ['a', 'queue', 'timeouts', 'heartbeats', 'tokens']);

  it('calls Redis no more often if many wait, in line or in the queue of a fair lock', async () => {
    const later = (await world.now()) + 60_000;
    const calls = async () => {
      await world.redis.config('RESETSTAT');
      const [, , waiting] = (await inspect()) as [string, unknown, string[]];
      const stats = await world.redis.info('commandstats');
      const ofScript = [...stats.matchAll(/^cmdstat_(?!script|evalsha|config|info)\S+?:calls=(\d+)/gm)];
      return { waiting: waiting.length, calls: ofScript.reduce((sum, [, count]) => sum + Number(count), 0) };
    };
    const few = await calls();
    for (let n = 0; n < 200; n++) {
      const owner = `c-${n}:1`;
      await world.redis.zadd('nestjs_redis_lock_turns:{a}', n, owner);
      await world.redis.zadd('nestjs_redis_lock_turns_until:{a}', n < 100 ? later : 1, owner);
      await world.redis.rpush('queue', owner);
      await world.redis.zadd(n % 2 === 0 ? 'heartbeats' : 'timeouts', n < 100 ? later : 1, owner);
    }
    const many = await calls();
    expect(many.waiting).toBe(200);
    expect(many.calls).toBeLessThan(few.calls + 5);
  });

  it('shows the holder, the waiting owners in their order, and the token', async () => {
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.pexpire('a', MINUTE);
    await world.redis.set('tokens', '42');
    const now = await world.now();
    await world.redis.rpush('queue', 'd:1', 'd:2', 'd:3');
    await world.redis.zadd('timeouts', now + MINUTE, 'd:1', now - 1, 'd:2', now + MINUTE, 'd:3');
    const [mode, held, waiting, token] = (await inspect()) as [string, [string, number], string[], string];
    expect([mode, held[0], waiting, token]).toEqual(['', 'c:1', ['d:1', 'd:3'], '42']);
    expect(held).toHaveLength(2);
    expect(held[1]).toBeGreaterThan(MINUTE - 5_000);
    expect(held[1]).toBeLessThanOrEqual(MINUTE);
  });

  it('shows nothing of a free lock', async () => {
    expect(await inspect()).toEqual(['', [], [], null]);
  });

  it('shows a writer that also reads once, and readers with their own leases', async () => {
    await world.redis.hset('a', { mode: 'write', 'c:1:write': '1', 'c:1': '1' });
    expect(await inspect()).toEqual(['write', ['c:1', -1], [], null]);
    await world.redis.del('a');
    await world.redis.hset('a', { mode: 'read', 'c:1': '1', 'd:2': '2', 'e:3': '1' });
    await world.redis.set('{a}:c:1:rwlock_timeout:1', '1', 'PX', MINUTE);
    await world.redis.set('{a}:d:2:rwlock_timeout:2', '1');
    const [mode, held] = (await inspect()) as [string, unknown[]];
    expect(mode).toBe('read');
    expect(held).toHaveLength(4);
    expect(held).toEqual(expect.arrayContaining(['c:1', 'd:2', -1]));
  });
});

describe('raise-token-1', () => {
  const world = new ScriptWorld();

  it('moves a clock forward only', async () => {
    await world.redis.set(CLOCK, AHEAD);
    expect(await world.run('raise-token-1', [CLOCK], [AHEAD + 5])).toBe(1);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + 5));
    expect(await world.run('raise-token-1', [CLOCK], [AHEAD + 5])).toBe(0);
    expect(await world.run('raise-token-1', [CLOCK], [AHEAD])).toBe(0);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD + 5));
  });

  it('starts a clock that does not exist ahead of the time', async () => {
    const before = await world.redis.time();
    expect(await world.run('raise-token-1', [CLOCK], [1])).toBe(1);
    const after = await world.redis.time();
    const micros = ([seconds, fraction]: readonly number[]) => Number(seconds) * 1_000_000 + Number(fraction);
    const clock = Number(await world.redis.get(CLOCK));
    expectBetween(clock, micros(before) + 150_000, micros(after) + 150_000);
    await world.redis.del(CLOCK);
    expect(await world.run('raise-token-1', [CLOCK], [AHEAD])).toBe(1);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD));
  });
});
