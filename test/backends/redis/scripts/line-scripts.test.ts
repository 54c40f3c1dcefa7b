import { LineWorld, MINUTE, NODE_CLOCK, OURS, permits, READ_LEASE, readWriteEntry } from './line-world.js';
import {
  AHEAD,
  CLOCK,
  expectBetween,
  GRANT,
  HEAD_START,
  LAPSES,
  LATER,
  LONGEST_HEAD_START,
  PLACES,
  TERMS,
} from './script-world.js';

const NEWEST = 'nestjs_redis_lock_turns_newest:{a}';
const RELEASED = 'redisson_lock__channel:{a} 0';

describe('enter-line', () => {
  const world = new LineWorld();

  it('takes a free lock without a line, and leaves no line behind', async () => {
    await world.redis.set(CLOCK, AHEAD);
    expect(await world.enter('c:1')).toEqual([AHEAD + 1, 0, 1]);
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    await world.expectLease('a', MINUTE);
    expect(await world.keys()).toEqual(['a', CLOCK]);
  });

  it('gives a token above the highest that was seen, and reserves more', async () => {
    await world.redis.set(CLOCK, 1);
    const [token, ...others] = (await world.enter('c:1', { reserve: 3 })) as number[];
    expect(others).toEqual([3, 1]);
    expect(await world.redis.get(CLOCK)).toBe(String(token + 3));
    expect(await world.enter('c:1', { highest: AHEAD })).toEqual([AHEAD + 1, 0, 1]);
  });

  it('takes the token of a fenced lock from its counter, and leaves the clock alone', async () => {
    await world.redis.mset({ [CLOCK]: AHEAD, tokens: 1 });
    const [token, ...others] = (await world.enter('c:1', { counter: 'tokens', reserve: 3 })) as number[];
    expect(others).toEqual([3, 1]);
    expect(await world.redis.mget('tokens', CLOCK)).toEqual([String(token + 3), String(AHEAD)]);
    await world.redis.set('tokens', AHEAD + 50);
    expect(await world.enter('c:1', { counter: 'tokens' })).toEqual([AHEAD + 51, 0, 1]);
  });

  it('enters the line of a busy lock at its end', async () => {
    await world.hold('d:1');
    const before = await world.now();
    const [left, ...first] = await world.enter('c:1');
    expect(first).toEqual(['d:1', '', 1]);
    expectBetween(left as number, MINUTE - 5_000, MINUTE);
    expect(await world.enter('c:2')).toEqual([expect.any(Number), 'd:1', '', 0]);
    const after = await world.now();
    expect(await world.line()).toEqual(['c:1', 'c:2']);
    for (const position of Object.values(await world.scores(PLACES))) {
      expectBetween(position, before * 1_000, (after + 1) * 1_000);
    }
    const lapses = await world.lapses();
    expect(Object.keys(lapses)).toEqual(['c:1', 'c:2']);
    for (const lapse of Object.values(lapses)) {
      expectBetween(lapse, before + MINUTE, after + MINUTE);
      expect(lapse % 1).toBe(0);
    }
    for (const key of [PLACES, LAPSES, TERMS]) await world.expectLease(key, 2 * MINUTE);
    expect(await world.keys()).toEqual(['a', PLACES, LAPSES, TERMS].sort());
  });

  it('keeps its place when it asks again, and makes only this one last longer', async () => {
    await world.hold('d:1');
    const now = await world.addPlaces({ 'c:1': 5_000, 'c:2': 5_000, 'c:3': 5_000 }, 't write');
    for (const key of [PLACES, LAPSES]) await world.redis.pexpire(key, 3 * MINUTE);
    await world.redis.pexpire(TERMS, 5_000);
    expect(await world.enter('c:1')).toEqual([expect.any(Number), 'd:1', '', 1]);
    expect(await world.enter('c:2')).toEqual([expect.any(Number), 'd:1', '', 0]);
    expect(await world.line()).toEqual(['c:1', 'c:2', 'c:3']);
    const lapses = await world.lapses();
    for (const owner of ['c:1', 'c:2']) expectBetween(lapses[owner], now + MINUTE, (await world.now()) + MINUTE);
    expect(lapses['c:3']).toBe(now + 5_000);
    for (const key of [PLACES, LAPSES]) await world.expectLease(key, 3 * MINUTE);
    await world.expectLease(TERMS, 2 * MINUTE);
  });

  it.each([
    ['a writer', () => world.holdAs({ mode: 'write', 'd:1:write': '1' }), 'write'],
    ['a reader', () => world.holdAs({ mode: 'read', 'd:1': '1' }), 'write'],
    ['one of several owners', () => world.holdPermits({ 'd:1': MINUTE }), ''],
  ])('waits for %s, and says to which channel its release goes', async (_what, prepare, heldAs) => {
    await prepare();
    const [left, ...others] = await world.enter('c:1');
    expect(others).toEqual(['d:1', heldAs, 1]);
    expectBetween(left as number, MINUTE - 5_000, MINUTE);
  });

  it('gives the holder a new token and a fresh lease, and tells nobody', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.hold('c:1', 2_000);
    await world.addPlaces({ 'd:1': MINUTE });
    const told = await world.told(async () => {
      expect(await world.enter('c:1')).toEqual([AHEAD + 1, 0, 1]);
    });
    expect(told).toEqual([]);
    await world.expectLease('a', MINUTE);
    expect(await world.line()).toEqual(['d:1']);
  });

  it('lets who is first take the free lock, and removes only this place', async () => {
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE });
    const told = await world.told(async () => {
      expect(await world.enter('c:1')).toEqual([expect.any(Number), 0, 1]);
    });
    expect(told).toEqual([]);
    expect(await world.line()).toEqual(['c:2']);
    expect(Object.keys(await world.lapses())).toEqual(['c:2']);
    expect(await world.redis.hkeys(TERMS)).toEqual(['c:2']);
  });

  it('leaves nothing of a line behind when the last place takes the lock', async () => {
    await world.addPlaces({ 'c:1': MINUTE });
    await world.headStart(LONGEST_HEAD_START);
    await world.enter('c:1');
    expect(await world.keys()).toEqual(['a', CLOCK]);
  });

  it('grants the free lock to who is first, and enters behind the others', async () => {
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE });
    let reply: unknown[] = [];
    const told = await world.told(async () => {
      reply = await world.enter('d:1');
      expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    });
    expect(reply).toEqual([expect.any(Number), 'c:1', '', 0]);
    expectBetween(reply[0] as number, 1, GRANT);
    expect(told).toEqual(['{a}:c c:1 granted']);
    expect(await world.line()).toEqual(['c:2', 'd:1']);
    expect(Object.keys(await world.lapses()).sort()).toEqual(['c:2', 'd:1']);
  });

  it('takes the lock past places that have lapsed, and removes them', async () => {
    await world.addPlaces({ 'c:1': -1, 'c:2': -1 });
    await world.redis.zadd(PLACES, 0, 'neverLapses:1');
    const told = await world.told(async () => {
      expect(await world.enter('d:1')).toEqual([expect.any(Number), 0, 1]);
    });
    expect(told).toEqual([]);
    expect(await world.keys()).toEqual(['a', CLOCK]);
  });

  it('removes only places in front that have lapsed', async () => {
    await world.hold('d:1');
    await world.addPlaces({ 'c:1': -1, 'c:2': MINUTE, 'c:3': -1 });
    expect(await world.enter('c:4')).toEqual([expect.any(Number), 'd:1', '', 0]);
    expect(await world.line()).toEqual(['c:2', 'c:3', 'c:4']);
  });

  it('leaves the free lock to clients outside the line until their head start is over', async () => {
    await world.addPlaces({ 'c:1': MINUTE });
    await world.headStart(LONGEST_HEAD_START);
    let told = await world.told(async () => {
      const reply = await world.enter('d:1');
      expect(reply).toEqual([expect.any(Number), '', '', 0]);
      expectBetween(reply[0] as number, HEAD_START + 1, LONGEST_HEAD_START);
    });
    expect(told).toEqual(['{a}:c c:1 free']);
    expect(await world.redis.exists('a')).toBe(0);
    expect(await world.line()).toEqual(['c:1', 'd:1']);

    await world.headStart(-1);
    told = await world.told(async () => {
      expect(await world.enter('d:1')).toEqual([expect.any(Number), 'c:1', '', 1]);
    });
    expect(told).toEqual(['{a}:c c:1 granted']);
    expect(Object.keys(await world.lapses())).toEqual(['d:1']);
  });

  it('does not believe a head start that no release can have given', async () => {
    await world.addPlaces({ 'c:1': MINUTE });
    await world.headStart(MINUTE);
    const told = await world.told(async () => {
      expect(await world.enter('d:1')).toEqual([expect.any(Number), 'c:1', '', 1]);
    });
    expect(told).toEqual(['{a}:c c:1 granted']);
  });

  it('tells a writer that is first to ask, and waits for it for a short time', async () => {
    const before = await world.addPlaces({ 'w:1': MINUTE }, 't write');
    const told = await world.told(async () => {
      const reply = await world.enter('d:1');
      expect(reply).toEqual([expect.any(Number), 'w:1', '', 0]);
      expectBetween(reply[0] as number, 1, HEAD_START);
    });
    expect(told).toEqual(['{a}:w w:1']);
    expect(await world.redis.exists('a')).toBe(0);
    await world.expectTold(before);
  });

  it.each([
    ['a free lock', async () => {}],
    ['a busy lock', () => world.hold('d:1')],
    ['a lock that it holds', () => world.hold('c:2')],
  ])('does nothing after its deadline with %s', async (_what, prepare) => {
    await prepare();
    await world.addPlaces({ 'c:1': MINUTE });
    const keys = await world.keys();
    const before = await world.now();
    const told = await world.told(async () => {
      const reply = await world.enter('c:2', { deadline: before - 1, nonce: 'n-1', newest: [0, ''] });
      expect(reply).toEqual(['expired', expect.any(Number)]);
      expectBetween(reply[1] as number, before, await world.now());
    });
    expect(told).toEqual([]);
    expect(await world.keys()).toEqual(keys);
    expect(await world.line()).toEqual(['c:1']);
  });

  it.each([
    ['the lock', 'a'],
    ['the places', PLACES],
    ['the lapses', LAPSES],
    ['the terms', TERMS],
  ])('fails when %s are of another type', async (_what, key) => {
    if (key !== 'a') await world.hold('d:1');
    await world.redis.set(key, 'of somebody else');
    await expect(world.enter('c:1', { nonce: 'n-1' })).rejects.toThrow(/WRONGTYPE/);
    expect(await world.redis.get(key)).toBe('of somebody else');
  });

  it('waits without a place when the memory is full', async () => {
    await world.hold('d:1');
    await world.addPlaces({ 'c:1': MINUTE });
    await world.withFullMemory(async () => {
      expect(await world.enter('c:2', { nonce: 'n-1' })).toEqual([expect.any(Number), 'd:1', '', 1]);
    });
    for (const left of [await world.line(), await world.redis.hkeys(TERMS)]) expect(left).toEqual(['c:1']);
  });

  it('keeps its place when the memory is full', async () => {
    await world.hold('d:1');
    const now = await world.addPlaces({ 'c:1': 5_000, 'c:2': 5_000 });
    await world.withFullMemory(async () => {
      expect(await world.enter('c:2', { nonce: 'n-1' })).toEqual([expect.any(Number), 'd:1', '', 0]);
    });
    const { 'c:1': first, 'c:2': second } = await world.lapses();
    expect(first).toBe(now + 5_000);
    expectBetween(second, now + MINUTE, (await world.now()) + MINUTE);
    expect(await world.line()).toEqual(['c:1', 'c:2']);
    expect(await world.redis.hget(TERMS, 'c:2')).toMatch(/^l r 1 .* n-1$/);
  });

  it('stays behind the others although the clock of the server was set back', async () => {
    await world.hold('d:1');
    await world.addPlaces({ 'c:1': MINUTE });
    await world.redis.zadd(PLACES, AHEAD, 'c:1');
    expect(await world.enter('c:2')).toEqual([expect.any(Number), 'd:1', '', 0]);
    expect(await world.scores(PLACES)).toEqual({ 'c:1': AHEAD, 'c:2': AHEAD + 1 });
  });
});

describe('enter-line, for calls of which only the newest waits', () => {
  const world = new LineWorld();
  const order = async () => Number(await world.redis.hget(NEWEST, 'order'));

  it('takes a free lock, and remembers the call', async () => {
    await world.redis.set(CLOCK, AHEAD);
    const before = await world.now();
    expect(await world.enter('c:7', { newest: [3, ''] })).toEqual([AHEAD + 1, 0, 3]);
    const { order, ...others } = await world.redis.hgetall(NEWEST);
    expect(others).toEqual({ owner: 'c:7', superseded: '3', c: '7' });
    expectBetween(Number(order), before * 1_000, ((await world.now()) + 1) * 1_000);
    await world.expectLease(NEWEST, 10 * MINUTE);
  });

  it('waits for a busy lock, and answers a second copy alike', async () => {
    await world.hold('h:1');
    const reply = await world.enter('c:1', { newest: [3, ''] });
    expect(reply).toEqual([expect.any(Number), 'h:1', '', 1, 3, await order()]);
    await world.redis.pexpire(NEWEST, MINUTE);
    const told = await world.told(async () => {
      expect((await world.enter('c:1', { newest: [9, ''] })).slice(1)).toEqual(reply.slice(1));
    });
    expect(told).toEqual([]);
    await world.expectLease(NEWEST, 10 * MINUTE);
  });

  it('takes the place of the previous call, and notifies its client', async () => {
    await world.hold('h:1');
    await world.enter('c:1', { newest: [5, ''], nonce: 'n-1' });
    await world.addPlaces({ 'x:1': MINUTE });
    const { 'c:1': position } = await world.scores(PLACES);
    await world.redis.zadd(PLACES, position + 1, 'x:1');
    const before = await order();
    let reply: unknown[] = [];
    const told = await world.told(async () => {
      reply = await world.enter('d:1', { newest: [2, ''] });
    });
    expect(told).toEqual(['{a}:c c:1']);
    expect(reply).toEqual([expect.any(Number), 'h:1', '', 1, 8, await order()]);
    expect(await order()).toBeGreaterThan(before);
    expect(await world.scores(PLACES)).toEqual({ 'd:1': position, 'x:1': position + 1 });
    expect(Object.keys(await world.lapses()).sort()).toEqual(['d:1', 'x:1']);
    expect((await world.redis.hkeys(TERMS)).sort()).toEqual(['d:1', 'x:1']);
    expect((await world.enter('e:1', { newest: [0, ''] }))[4]).toBe(9);
  });

  it('takes the free lock at the place of the call before it', async () => {
    await world.hold('h:1');
    await world.enter('c:1', { newest: [0, ''] });
    await world.enter('x:1');
    await world.redis.del('a');
    expect(await world.enter('d:1', { newest: [0, ''] })).toEqual([expect.any(Number), 0, 1]);
    expect(await world.line()).toEqual(['x:1']);
    expect(Object.keys(await world.lapses())).toEqual(['x:1']);
  });

  it('lets a call that was superseded learn it, and gives it no place', async () => {
    await world.hold('h:1');
    for (const owner of ['c:1', 'd:1']) await world.enter(owner, { newest: [0, ''] });
    const newest = await world.redis.hgetall(NEWEST);
    const [left, ...others] = await world.enter('c:1', { newest: [0, ''] });
    expect(others).toEqual(['h:1', '', 0, -1]);
    expectBetween(left as number, MINUTE - 5_000, MINUTE);
    await world.redis.del('a');
    expect(await world.enter('c:1', { newest: [0, ''] })).toEqual([0, '', '', 0, -1]);
    expect(await world.line()).toEqual(['d:1']);
    expect(await world.redis.exists('a')).toBe(0);
    expect(await world.redis.hgetall(NEWEST)).toEqual(newest);
  });

  it('gives a call that was superseded the lock if it was granted it before', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.hold('h:1');
    for (const owner of ['c:1', 'd:1']) await world.enter(owner, { newest: [0, ''] });
    await world.redis.del('a');
    await world.hold('c:1', GRANT);
    expect(await world.enter('c:1', { newest: [0, ''] })).toEqual([AHEAD + 1, 0, -1]);
    await world.expectLease('a', MINUTE);
  });

  it('does not take late copies of earlier calls of a client for new ones', async () => {
    await world.hold('h:1');
    for (const owner of ['c:8', 'c:9', 'd:0']) await world.enter(owner, { newest: [0, ''] });
    const count = async (owner: string) => (await world.enter(owner, { newest: [0, ''] }))[4];
    expect(await count('c:9')).toBe(-1);
    expect(await count('c:8')).toBe(-1);
    expect(await world.line()).toEqual(['d:0']);
    expect(await count('c:10')).toBe(3);
    expect(await world.line()).toEqual(['c:10']);
  });

  it('compares the order that a call was given with that of the newest', async () => {
    await world.hold('h:1');
    await world.enter('c:1', { newest: [0, ''] });
    const first = await order();
    await world.enter('d:1', { newest: [0, ''] });
    const second = await order();
    expect((await world.enter('e:1', { newest: [0, first] })).slice(4)).toEqual([-1]);
    const told = await world.told(async () => {
      expect((await world.enter('e:1', { newest: [4, second] })).slice(3)).toEqual([1, 1, second]);
      expect((await world.enter('f:1', { newest: [4, second + 1] })).slice(3)).toEqual([1, 6, second + 1]);
    });
    expect(told).toEqual(['{a}:d d:1', '{a}:e e:1']);
    expect(await world.line()).toEqual(['f:1']);
  });

  it('gives a higher order although the clock of the server was set back', async () => {
    await world.hold('h:1');
    await world.redis.hset(NEWEST, { owner: 'd:1', order: AHEAD, superseded: 0 });
    expect((await world.enter('c:1', { newest: [0, ''] })).slice(3)).toEqual([1, 0, AHEAD + 1]);
    expect(await order()).toBe(AHEAD + 1);
  });

  it('does not count a call before it that has no place, and tells nobody', async () => {
    await world.hold('h:1');
    await world.enter('c:1', { newest: [5, ''] });
    await world.remove('c:1');
    const told = await world.told(async () => {
      expect((await world.enter('d:1', { newest: [4, ''] })).slice(3, 5)).toEqual([1, 4]);
    });
    expect(told).toEqual([]);
  });

  it('counts one call more where the call before it has noted no number', async () => {
    await world.hold('h:1');
    await world.addPlaces({ 'c:1': MINUTE });
    await world.redis.hset(NEWEST, 'owner', 'c:1');
    expect((await world.enter('d:1', { newest: [0, ''] }))[4]).toBe(1);
  });

  it('remembers the highest numbers of a limited number of clients', async () => {
    await world.hold('h:1');
    const clients = Array.from({ length: 125 }, (_, i) => [`client${i}`, '1']);
    await world.redis.hset(NEWEST, ...clients.flat(), 'owner', 'x:1', 'order', 1, 'superseded', 0);
    await world.enter('c:1', { newest: [0, ''] });
    expect(await world.redis.hlen(NEWEST)).toBe(129);
    await world.enter('d:1', { newest: [0, ''] });
    expect(await world.redis.hgetall(NEWEST)).toEqual({
      owner: 'd:1',
      order: expect.any(String),
      superseded: '1',
      d: '1',
    });
  });

  it('is remembered for as long as its line is kept, also by others who enter it', async () => {
    await world.hold('h:1');
    await world.enter('c:1', { newest: [0, ''] });
    for (const key of [PLACES, LAPSES]) await world.redis.pexpire(key, MINUTE - 1);
    await world.redis.pexpire(NEWEST, MINUTE / 2);
    await world.enter('x:1');
    for (const key of [PLACES, LAPSES]) await world.expectLease(key, 2 * MINUTE);
    await world.expectLease(NEWEST, 10 * MINUTE);
  });

  it('is not remembered longer because another line begins', async () => {
    await world.hold('h:1');
    await world.redis.hset(NEWEST, 'owner', 'c:1');
    await world.redis.pexpire(NEWEST, MINUTE / 2);
    await world.enter('x:1');
    await world.expectLease(NEWEST, MINUTE / 2);
  });

  it('waits without being remembered when the memory is full', async () => {
    await world.hold('h:1');
    await world.withFullMemory(async () => {
      expect(await world.enter('c:1', { newest: [2, ''] })).toEqual([
        expect.any(Number),
        'h:1',
        '',
        1,
        2,
        expect.any(Number),
      ]);
    });
    expect(await world.redis.exists(NEWEST)).toBe(0);
  });
});

describe('enter-read-write-line-3', () => {
  const world = new LineWorld();

  it('gives readers and a writer the free lock, and reserves tokens', async () => {
    await world.redis.set(CLOCK, 1);
    const [token, ...others] = (await world.read('c:1', { reserve: 3 })) as number[];
    expect(others).toEqual([3, 1]);
    expect(await world.redis.get(CLOCK)).toBe(String(token + 3));
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'read', 'c:1': '1' });
    for (const key of ['a', READ_LEASE('c:1')]) await world.expectLease(key, MINUTE);
    expect(await world.read('c:2', { highest: AHEAD })).toEqual([AHEAD + 1, 0, 1]);
    await world.redis.del('a');
    expect(await world.write('c:3')).toEqual([AHEAD + 2, 0, 1]);
    expect(await world.redis.hgetall('a')).toEqual({ mode: 'write', 'c:3:write': '1' });
    await world.expectLease('a', MINUTE);
  });

  it.each([
    ['read', 't read'],
    ['write', 't write'],
  ] as const)('enters the line of a busy lock, to %s', async (side, terms) => {
    await world.holdAs({ mode: 'write', [`${OURS}:write`]: '1' });
    const before = await world.now();
    const [left, ...others] = await world[side]('c:1');
    expect(others).toEqual([OURS, '', 0]);
    expectBetween(left as number, MINUTE - 5_000, MINUTE);
    expect(await world.redis.hgetall(TERMS)).toEqual({ 'c:1': terms });
    const { 'c:1': lapse } = await world.lapses();
    expectBetween(lapse, before + MINUTE, (await world.now()) + MINUTE);
    expect(lapse % 1).toBe(0);
    for (const key of [PLACES, LAPSES, TERMS]) await world.expectLease(key, 2 * MINUTE);
  });

  it('lets a reader wait for a writer that waits, and go past other readers', async () => {
    await world.holdAs({ mode: 'read', [OURS]: '1' });
    await world.addPlaces({ 'r:1': MINUTE }, 't read');
    expect(await world.read('c:1')).toEqual([expect.any(Number), 0, 1]);
    await world.addPlaces({ 'w:1': 10_000 }, 't write');
    const [left, ...others] = await world.read('c:2');
    expect(others).toEqual(['w:1', 'write', 0]);
    expectBetween(left as number, 5_000, 10_000);
    expect(await world.read('c:3', { past: true })).toEqual([expect.any(Number), 0, 1]);
    expect(await world.line()).toEqual(['r:1', 'w:1', 'c:2']);
    expect(await world.redis.hget(TERMS, 'c:2')).toBe('t read');
  });

  it('lets a writer wait for everybody in front, and tells them that they may ask', async () => {
    const now = await world.addPlaces({ 'r:1': MINUTE }, 't read');
    let reply: unknown[] = [];
    const told = await world.told(async () => {
      reply = await world.write('c:1');
    });
    expect(told).toEqual(['{a}:r r:1']);
    expect(reply).toEqual([expect.any(Number), 'r:1', '', 0]);
    expectBetween(reply[0] as number, 1, GRANT);
    await world.expectTold(now);
    expect(await world.line()).toEqual(['r:1', 'c:1']);
    expect(await world.write('c:2', { past: true })).toEqual([expect.any(Number), 0, 1]);
  });

  it('tells nobody while somebody holds the lock', async () => {
    await world.holdAs({ mode: 'read', [OURS]: '1' });
    await world.addPlaces({ 'r:1': MINUTE, 'r:2': MINUTE }, 't read');
    const told = await world.told(async () => {
      expect(await world.write('c:1')).toEqual([expect.any(Number), OURS, '', 0]);
    });
    expect(told).toEqual([]);
  });

  it('does not let a place wait that has lapsed, nor one without a time', async () => {
    await world.addPlaces({ 'w:1': -1 }, 't write');
    await world.redis.zadd(PLACES, 9, 'w:2');
    expect(await world.read('c:1')).toEqual([expect.any(Number), 0, 1]);
    await world.redis.del('a');
    expect(await world.write('c:2')).toEqual([expect.any(Number), 0, 1]);
  });

  it('gives the writer a fresh lease although others wait', async () => {
    await world.holdAs({ mode: 'write', 'c:1:write': '1' });
    await world.redis.pexpire('a', 2_000);
    await world.addPlaces({ 'w:1': MINUTE }, 't write');
    expect(await world.write('c:1')).toEqual([expect.any(Number), 0, 1]);
    await world.expectLease('a', MINUTE);
    expect(await world.read('c:1')).toEqual([expect.any(Number), 0, 1]);
  });

  it.each(['read', 'write'] as const)('removes only the place of an owner that may %s', async (side) => {
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE }, 't write');
    expect(await world[side]('c:1')).toEqual([expect.any(Number), 0, 1]);
    expect(await world.line()).toEqual(['c:2']);
    expect(Object.keys(await world.lapses())).toEqual(['c:2']);
    expect(await world.redis.hkeys(TERMS)).toEqual(['c:2']);
  });

  const READER = { mode: 'read', 'd:1': '1' };
  const WRITER = { mode: 'write', 'd:1:write': '1' };
  it.each([
    ['write', READER, 'first', 'write'],
    ['write', READER, 'second', ''],
    ['read', WRITER, 'first', 'write'],
    ['read', WRITER, 'second', 'write'],
    ['write', { mode: 'write', [`${OURS}:write`]: '1' }, 'first', ''],
    ['read', { mode: 'write', [`${OURS}:write`]: '1' }, 'second', ''],
    ['write', { mode: 'read', [OURS]: '1', 'd:1': '1' }, 'first', 'write'],
    ['read', { 'd:1': '1' }, 'second', 'reentrant'],
    ['write', { 'd:1': '1' }, 'second', 'reentrant'],
    ['write', { [OURS]: '1' }, 'first', 'reentrant'],
  ] as const)(
    'says which releases a caller that wants to %s has to listen to: %j, %s',
    async (side, fields, position, listensAs) => {
      await world.holdAs({ ...fields });
      if (position === 'second') await world.addPlaces({ 'x:1': MINUTE }, 't write');
      expect(await world[side]('c:1')).toEqual([expect.any(Number), expect.any(String), listensAs, 0]);
    },
  );

  it.each(['read', 'write'] as const)('waits for several owners of the lock, to %s', async (side) => {
    await world.holdPermits({ 'd:1': MINUTE });
    expect(await world[side]('c:1')).toEqual([expect.any(Number), 'd:1', 'reentrant', 0]);
  });

  it('grants the free lock to somebody in front that wants it alone', async () => {
    await world.addPlaces({ 'c:1': MINUTE });
    const told = await world.told(async () => {
      const reply = await world.read('d:1');
      expect(reply).toEqual([expect.any(Number), 'c:1', 'reentrant', 0]);
      expectBetween(reply[0] as number, 1, GRANT);
    });
    expect(told).toEqual(['{a}:c c:1 granted']);
    expect(await world.line()).toEqual(['d:1']);
  });

  it('does nothing after its deadline', async () => {
    await world.addPlaces({ 'w:1': MINUTE }, 't write');
    const keys = await world.keys();
    const before = await world.now();
    const told = await world.told(async () => {
      const reply = await world.write('c:1', { deadline: before - 1 });
      expect(reply).toEqual(['expired', expect.any(Number)]);
      expectBetween(reply[1] as number, before, await world.now());
    });
    expect(told).toEqual([]);
    expect(await world.keys()).toEqual(keys);
    expect(await world.line()).toEqual(['w:1']);
  });

  it('listens to releases of others when the memory is full, because it has no place', async () => {
    await world.holdAs(READER);
    await world.addPlaces({ 'w:1': MINUTE }, 't write');
    await world.withFullMemory(async () => {
      expect(await world.write('c:1')).toEqual([expect.any(Number), 'd:1', 'write', 0]);
    });
    expect(await world.line()).toEqual(['w:1']);
  });

  it('takes the lock for a user who may not read the line', async () => {
    await world.addPlaces({ 'w:1': MINUTE }, 't write');
    const [name, keys, args] = readWriteEntry('c:1', 0, {});
    expect(await world.runWithout(['zrange'], name, keys, args)).toEqual([expect.any(Number), 0, 1]);
  });

  it.each(['read', 'write'] as const)('fails for a key of another type, to %s', async (side) => {
    await world.redis.set('a', 'of somebody else');
    await expect(world[side]('c:1')).rejects.toThrow(/WRONGTYPE/);
    expect(await world.line()).toEqual([]);
  });
});

describe('refresh-places-1', () => {
  const world = new LineWorld();

  it('keeps the places that have not lapsed, and what the line consists of', async () => {
    await world.hold(OURS);
    const now = await world.addPlaces({ 'c:1': 5_000, 'c:2': -1, 'c:3': 5_000 + permits(7), 'd:1': 5_000 });
    await world.redis.hset(NEWEST, 'owner', 'c:1');
    for (const key of [PLACES, LAPSES, TERMS, NEWEST]) await world.redis.pexpire(key, 5_000);
    const told = await world.told(async () => {
      expect(await world.refresh('c:1', 'c:2', 'c:9', 'c:3')).toEqual([1, 0, 0, 1]);
    });
    expect(told).toEqual([]);
    const lapses = await world.lapses();
    const after = await world.now();
    expectBetween(lapses['c:1'], now + MINUTE, after + MINUTE);
    expectBetween(lapses['c:3'], now + MINUTE, after + MINUTE + 1);
    expect([lapses['c:1'] % 1, lapses['c:3'] % 1]).toEqual([0, permits(7)]);
    expect([lapses['c:2'], lapses['d:1'], lapses['c:9']]).toEqual([undefined, now + 5_000, undefined]);
    expect(await world.line()).toEqual(['c:1', 'c:3', 'd:1']);
    for (const key of [PLACES, LAPSES, TERMS]) await world.expectLease(key, 2 * MINUTE);
    await world.expectLease(NEWEST, 10 * MINUTE);
  });

  it('does not keep the line of places that have lapsed', async () => {
    await world.hold(OURS);
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': -1 });
    for (const key of [PLACES, TERMS]) await world.redis.pexpire(key, 5_000);
    expect(await world.refresh('c:2')).toEqual([0]);
    for (const key of [PLACES, TERMS]) expect(await world.redis.pttl(key)).toBeLessThanOrEqual(5_000);
  });

  it('keeps no key for a shorter time than before', async () => {
    await world.hold(OURS);
    await world.addPlaces({ 'c:1': 5_000 });
    for (const key of [PLACES, LAPSES, TERMS]) await world.redis.pexpire(key, 3 * MINUTE);
    await world.refresh('c:1');
    for (const key of [PLACES, LAPSES, TERMS]) await world.expectLease(key, 3 * MINUTE);
  });

  it('keeps only the keys that would expire before the place lapses', async () => {
    await world.hold(OURS);
    await world.addPlaces({ 'c:1': 5_000 });
    await world.redis.hset(NEWEST, 'owner', 'c:1');
    for (const key of [PLACES, LAPSES, TERMS, NEWEST]) await world.redis.pexpire(key, MINUTE + 10_000);
    await world.refresh('c:1');
    for (const key of [PLACES, LAPSES, TERMS, NEWEST]) await world.expectLease(key, MINUTE + 10_000);
    await world.redis.pexpire(TERMS, MINUTE - 1);
    await world.refresh('c:1');
    for (const key of [PLACES, LAPSES]) await world.expectLease(key, MINUTE + 10_000);
    await world.expectLease(TERMS, 2 * MINUTE);
    await world.expectLease(NEWEST, 10 * MINUTE);
  });

  it('removes places in front that have lapsed', async () => {
    await world.hold(OURS);
    await world.addPlaces({ 'c:1': -1, 'c:2': MINUTE, 'c:3': -1 });
    await world.refresh('c:2');
    expect(await world.line()).toEqual(['c:2', 'c:3']);
  });

  it('keeps places when the memory is full', async () => {
    await world.hold(OURS);
    const now = await world.addPlaces({ 'c:1': 30_000, 'c:2': 30_000 + permits(7), 'd:1': 30_000 });
    await world.withFullMemory(async () => {
      expect(await world.refresh('c:1', 'c:2', 'c:9')).toEqual([1, 1, 0]);
    });
    const { 'c:1': first, 'c:2': second, ...others } = await world.lapses();
    expectBetween(first, now + MINUTE, (await world.now()) + MINUTE);
    expectBetween(second, now + MINUTE + permits(7), (await world.now()) + MINUTE + permits(7));
    expect(others).toEqual({ 'd:1': now + 30_000 });
  });

  it('grants the free lock to who is first, also if it keeps another place', async () => {
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE });
    const told = await world.told(async () => {
      expect(await world.refresh('c:2')).toEqual([1]);
      expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
      await world.expectLease('a', GRANT);
    });
    expect(told).toEqual(['{a}:c c:1 granted']);
    expect(await world.line()).toEqual(['c:2']);
  });

  it('tells who is first that the lock is left to others, and grants it after their head start', async () => {
    await world.addPlaces({ 'c:1': MINUTE });
    await world.headStart(LONGEST_HEAD_START);
    expect(await world.told(() => world.refresh('c:1'))).toEqual(['{a}:c c:1 free']);
    expect(await world.redis.exists('a')).toBe(0);
    await world.headStart(-1);
    expect(await world.told(() => world.refresh('c:1'))).toEqual(['{a}:c c:1 granted']);
    expect(await world.redis.exists(LAPSES)).toBe(0);
  });

  it.each([
    ['the first place', 'c:1', { 'd:1': '1' }, ['{a}:c c:1']],
    ['another place', 'c:2', { 'd:1': '1' }, []],
    ['the first place', 'c:1', { [OURS]: '1' }, []],
    ['the first place', 'c:1', { mode: 'write', 'd:1:write': '1' }, ['{a}:c c:1']],
    ['the first place', 'c:1', { mode: 'write', [`${OURS}:write`]: '1' }, []],
  ])('of a lock that is held, keeps %s (%s), and tells it whether releases serve lines: %j', async (...each) => {
    const [, owner, fields, messages] = each;
    await world.holdAs(fields as Record<string, string>);
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE });
    expect(await world.told(() => world.refresh(owner))).toEqual(messages);
    expect(await world.told(() => world.refresh(owner, 'c:2'))).toEqual(messages);
    expect(await world.redis.hgetall('a')).toEqual(fields);
  });

  it('does not grant a lock under whose name somebody else has a key', async () => {
    await world.addPlaces({ 'c:1': MINUTE });
    await world.redis.set('a', 'of somebody else');
    expect(await world.told(() => world.refresh('c:1'))).toEqual([]);
    expect(await world.redis.get('a')).toBe('of somebody else');
  });
});

describe('readers and writers in front', () => {
  const world = new LineWorld();

  it('are notified: a reader together with the readers right behind it', async () => {
    const now = await world.addPlaces({ 'r:1': MINUTE, 's:2': MINUTE, 'r:3': MINUTE }, 't read');
    await world.addPlaces({ 'w:1': MINUTE }, 't write');
    await world.addPlaces({ 'r:4': MINUTE }, 't read');
    const told = await world.told(() => world.refresh('r:4'));
    expect(told).toEqual(['{a}:r r:1', '{a}:s s:2', '{a}:r r:3']);
    await world.expectTold(now);
    expect(await world.redis.exists('a')).toBe(0);
  });

  it('are notified: a writer, and the place behind it', async () => {
    const now = await world.addPlaces({ 'w:1': MINUTE, 'w:2': MINUTE, 'w:3': MINUTE }, 't write');
    expect(await world.told(() => world.refresh('w:3'))).toEqual(['{a}:w w:1', '{a}:w w:2 free']);
    await world.expectTold(now);
  });

  it('have room beside readers only if they read', async () => {
    await world.holdAs({ mode: 'read', [OURS]: '1' });
    await world.addPlaces({ 'w:1': MINUTE }, 't write');
    await world.addPlaces({ 'r:1': MINUTE }, 't read');
    expect(await world.told(() => world.refresh('r:1'))).toEqual([]);
    await world.redis.zrem(PLACES, 'w:1');
    expect(await world.told(() => world.refresh('r:1'))).toEqual(['{a}:r r:1']);
  });

  it('do not lapse early while they may not ask', async () => {
    await world.holdAs({ mode: 'write', 'd:1:write': '1' });
    await world.addPlaces({ 'x:1': MINUTE, 'r:1': MINUTE }, 't read');
    const before = await world.lapses();
    expect(await world.told(() => world.remove('x:1'))).toEqual(['{a}:r r:1']);
    expect(await world.lapses()).toEqual({ 'r:1': before['r:1'] });
  });

  it('are notified 128 at a time', async () => {
    const readers = Array.from({ length: 130 }, (_, i) => [`r${i}:1`, MINUTE]);
    await world.addPlaces(Object.fromEntries(readers), 't read');
    const told = await world.told(() => world.refresh('r129:1'));
    expect(told).toHaveLength(128);
    expect(told[127]).toBe('{a}:r127 r127:1');
  });
});

describe('places that want a permit', () => {
  const world = new LineWorld();

  it('are granted what is left, in their order, also behind a place that wants the whole lock', async () => {
    await world.holdPermits({ 'h:1': MINUTE, 'h:2': -1 });
    await world.addPlaces({ 'x:1': MINUTE, 'p:1': MINUTE + permits(1), 'p:2': MINUTE + permits(2) });
    await world.addPlaces({ 'p:3': permits(9) - 1, 'q:0': -1, 'p:4': MINUTE + permits(3), 'p:5': MINUTE + permits(3) });
    await world.addPlaces({ 'q:1': MINUTE, 'p:6': MINUTE + permits(9) });
    const before = await world.now();
    const told = await world.told(() => world.remove('x:1'));
    expect(told).toEqual(['{a}:p p:2 granted', '{a}:p p:4 granted', '{a}:p p:6 granted']);
    expect(await world.line()).toEqual(['p:1', 'p:5', 'q:1']);
    const { 'p:2': lease, ...others } = await world.scores('a');
    expectBetween(lease, before + GRANT, (await world.now()) + GRANT);
    expect(Object.keys(others).sort()).toEqual(['h:1', 'h:2', 'p:4', 'p:6']);
    await world.expectLease('a', MINUTE);
    expect(Object.keys(await world.lapses())).not.toContain('p:2');
  });

  it('are granted a free lock, for the time of a grant', async () => {
    await world.addPlaces({ 'p:1': MINUTE + permits(1), 'p:2': MINUTE + permits(1) });
    const told = await world.told(async () => {
      expect(await world.refresh('p:2')).toEqual([1]);
      await world.expectLease('a', GRANT);
    });
    expect(told).toEqual(['{a}:p p:1 granted']);
    expect(await world.line()).toEqual(['p:2']);
  });

  it.each([
    ['as many hold the lock as may', () => world.holdPermits({ 'h:1': MINUTE, 'h:2': MINUTE })],
    ['one holds it alone', () => world.hold(OURS)],
  ])('are not granted, nor told, while %s', async (_what, prepare) => {
    await prepare();
    await world.addPlaces({ 'p:1': MINUTE + permits(2), 'p:2': MINUTE + permits(2) });
    const told = await world.told(async () => {
      await world.refresh('p:1');
      await world.remove('p:1');
    });
    expect(told).toEqual([]);
    expect(await world.line()).toEqual(['p:2']);
  });
});

describe('remove-place-1', () => {
  const world = new LineWorld();

  it('gives up a place, once', async () => {
    await world.hold('d:1');
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE });
    const told = await world.told(async () => {
      expect(await world.remove('c:2')).toBe(1);
      expect(await world.remove('c:2')).toBe(0);
    });
    expect(told).toEqual([]);
    expect(await world.line()).toEqual(['c:1']);
    expect(Object.keys(await world.lapses())).toEqual(['c:1']);
    expect(await world.redis.hkeys(TERMS)).toEqual(['c:1']);
    expect(await world.remove('c:1')).toBe(1);
    expect(await world.keys()).toEqual(['a']);
  });

  it('tells who is first from now on', async () => {
    await world.hold('d:1');
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE });
    expect(await world.told(() => world.remove('c:1'))).toEqual(['{a}:c c:2']);
    expect(await world.redis.hgetall('a')).toEqual({ 'd:1': '1' });
  });

  it.each(['c:1', 'c:3'])('grants the free lock to who is first when %s leaves', async (owner) => {
    const first = owner === 'c:1' ? 'c:2' : 'c:1';
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE, 'c:3': MINUTE });
    expect(await world.told(() => world.remove(owner))).toEqual([`{a}:c ${first} granted`]);
    expect(await world.redis.hgetall('a')).toEqual({ [first]: '1' });
  });

  it('passes the lock on if it was granted meanwhile', async () => {
    await world.hold('c:1', GRANT);
    await world.addPlaces({ 'c:2': MINUTE });
    const told = await world.told(async () => {
      expect(await world.remove('c:1')).toBe(1);
      expect(await world.redis.hgetall('a')).toEqual({ 'c:2': '1' });
      await world.expectLease('a', GRANT);
    });
    expect(told).toEqual(['{a}:c c:2 granted']);
    expect(await world.redis.exists(PLACES, LAPSES)).toBe(0);
  });

  it('leaves the lock to clients outside the line that listen', async () => {
    await world.hold('c:1', GRANT);
    await world.addPlaces({ 'c:2': MINUTE });
    const heard = await world.published(async () => {
      expect(await world.remove('c:1')).toBe(1);
    });
    expect(heard).toEqual([RELEASED, 'nestjs_redis_lock_turn:{a}:c c:2 free']);
    expect(await world.redis.exists('a')).toBe(0);
  });

  it('frees the lock for a user who may not publish', async () => {
    await world.hold('c:1', GRANT);
    await world.addPlaces({ 'c:2': MINUTE });
    await world.headStart(LONGEST_HEAD_START);
    expect(await world.runWithout(['publish'], 'remove-place-1', ['a'], ['PUBLISH', CLOCK, 'c:1'])).toBe(1);
    expect(await world.redis.exists('a')).toBe(0);
  });

  it('gives back a permit that was granted meanwhile', async () => {
    await world.holdPermits({ 'c:1': MINUTE, 'c:2': MINUTE / 2, 'd:1': -1 });
    await world.addPlaces({ 'c:3': MINUTE + permits(2) });
    const heard = await world.published(async () => {
      expect(await world.remove('c:1')).toBe(1);
    });
    expect(heard).toEqual([RELEASED, 'nestjs_redis_lock_turn:{a}:c c:3 granted']);
    expect(Object.keys(await world.scores('a')).sort()).toEqual(['c:2', 'c:3']);
    await world.expectLease('a', MINUTE / 2);
    expect(await world.remove('c:1')).toBe(0);
  });

  it.each([
    ['of another owner', () => world.redis.hset('a', 'd:1', '1')],
    ['of readers', () => world.redis.hset('a', { mode: 'read', 'c:1': '1' })],
    ['free', async () => {}],
  ])('does nothing without a place when the lock is %s', async (_what, prepare) => {
    await prepare();
    await world.addPlaces({ 'c:2': MINUTE });
    const fields = await world.redis.hgetall('a');
    const heard = await world.published(async () => {
      expect(await world.remove('c:1')).toBe(0);
    });
    expect(heard).toEqual([]);
    expect(await world.redis.hgetall('a')).toEqual(fields);
  });

  it('fails for a key of another type', async () => {
    await world.redis.set('a', 'of somebody else');
    await expect(world.remove('c:1')).rejects.toThrow(/WRONGTYPE/);
  });

  const WRITERS_GONE = 'redisson_rwlock:{a} 1';
  it.each([
    ['t write', 'the only writer of a free lock', async () => {}, [WRITERS_GONE]],
    ['t read', 'a reader', async () => {}, []],
    ['t write', 'a writer while another waits', () => world.addPlaces({ 'w:2': MINUTE }, 't write'), ['w:2']],
    ['t write', 'a writer before readers', () => world.addPlaces({ 'r:1': MINUTE }, 't read'), [WRITERS_GONE, 'r:1']],
    ['t write', 'a writer while somebody writes', () => world.holdAs({ mode: 'write', 'd:1:write': '1' }), []],
    ['t write', 'a writer of a lock that several own', () => world.holdPermits({ 'd:1': MINUTE }), [WRITERS_GONE]],
  ])('with the terms %j, lets readers of a quorum in after %s', async (terms, _what, prepare, messages) => {
    await world.addPlaces({ 'w:1': MINUTE }, terms);
    await prepare();
    const heard = await world.published(() => world.remove('w:1'));
    expect(heard).toEqual(
      messages.map((message) =>
        message === WRITERS_GONE ? message : `nestjs_redis_lock_turn:{a}:${message[0]} ${message}`,
      ),
    );
  });
});

describe('release-reentrant, with a line', () => {
  const world = new LineWorld();

  it('grants the lock to who is first, and then to who is next', async () => {
    await world.hold('d:1');
    await world.addPlaces({ 'c:1': -1, 'c:2': MINUTE, 'e:3': MINUTE });
    const told = await world.told(async () => {
      expect(await world.release('d:1')).toBe(0);
      expect(await world.redis.hgetall('a')).toEqual({ 'c:2': '1' });
      await world.expectLease('a', GRANT);
      expect(await world.release('c:2')).toBe(0);
      expect(await world.redis.hgetall('a')).toEqual({ 'e:3': '1' });
      expect(await world.release('e:3')).toBe(0);
    });
    expect(told).toEqual(['{a}:c c:2 granted', '{a}:e e:3 granted']);
    expect(await world.keys()).toEqual([]);
  });

  it('leaves every second release to clients outside the line that listen', async () => {
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE });
    const releases = async () => {
      await world.redis.del('a');
      await world.hold('d:1');
      const heard = await world.published(async () => {
        expect(await world.release('d:1')).toBe(1);
      });
      expect(heard[0]).toBe(RELEASED);
      return heard.slice(1);
    };
    const before = await world.now();
    expect(await releases()).toEqual(['nestjs_redis_lock_turn:{a}:c c:1 free']);
    expect(await world.redis.exists('a')).toBe(0);
    expectBetween((await world.lapses()).outside, before + HEAD_START, (await world.now()) + HEAD_START);
    expect(await world.line()).toEqual(['c:1', 'c:2']);
    await world.headStart(LONGEST_HEAD_START);
    expect(await releases()).toEqual(['nestjs_redis_lock_turn:{a}:c c:1 granted']);
    expect(Object.keys(await world.lapses())).toEqual(['c:2']);
    expect(await releases()).toEqual(['nestjs_redis_lock_turn:{a}:c c:2 free']);
  });

  it('grants the lock during a head start when nobody listens any more', async () => {
    await world.hold('d:1');
    await world.addPlaces({ 'c:1': MINUTE });
    await world.headStart(LONGEST_HEAD_START);
    expect(await world.told(() => world.release('d:1'))).toEqual(['{a}:c c:1 granted']);
    expect(await world.redis.exists(PLACES, LAPSES)).toBe(0);
  });

  it('leaves the lock free without a head start, each time, when others may listen that are not counted', async () => {
    await world.addPlaces({ 'c:1': MINUTE });
    for (const outside of [0, undefined]) {
      await world.hold('d:1');
      expect(await world.told(() => world.release('d:1', { clock: NODE_CLOCK }))).toEqual(['{a}:c c:1']);
      expect(await world.redis.exists('a')).toBe(0);
      expect((await world.lapses()).outside).toBe(outside);
    }
  });

  it('gives those that it counts a head start although others may listen', async () => {
    await world.hold('d:1');
    await world.addPlaces({ 'c:1': MINUTE });
    const heard = await world.published(() => world.release('d:1', { clock: NODE_CLOCK }));
    expect(heard).toEqual([RELEASED, 'nestjs_redis_lock_turn:{a}:c c:1 free']);
    expect((await world.lapses()).outside).toBeGreaterThan(0);
  });

  it('tells a writer to ask, after the head start of those who listen outside the line', async () => {
    const before = await world.addPlaces({ 'w:1': MINUTE, 'w:2': MINUTE }, 't write');
    const releases = async () => {
      await world.redis.del('a');
      await world.hold('d:1');
      return (await world.published(() => world.release('d:1'))).slice(1);
    };
    expect(await releases()).toEqual(['nestjs_redis_lock_turn:{a}:w w:1 free']);
    expect(Object.keys(await world.lapses())).toEqual(['outside', 'w:1', 'w:2']);
    expect(await releases()).toEqual(['w:1', 'w:2 free'].map((owner) => `nestjs_redis_lock_turn:{a}:w ${owner}`));
    await world.expectTold(before);
  });

  it('serves the lines of a batch, each of the lock that it has released', async () => {
    await world.redis.set('text', 'of somebody else');
    for (const tag of ['{text}', '{busy}', '{b}', 'x{y}']) await world.addPlaces({ 'c:1': MINUTE }, undefined, tag);
    await world.redis.hset('busy', 'e:1', '1');
    for (const lock of ['free', 'b', 'x{y}']) await world.redis.hset(lock, 'd:1', '1');
    const keys = ['text', 'busy', 'free', 'b', 'x{y}'];
    let reply: unknown;
    const told = await world.told(async () => {
      reply = await world.run('release-reentrant', keys, ['PUBLISH', CLOCK, ...keys.map(() => 'd:1')]);
    });
    expect(reply).toEqual([[[expect.any(String), 'string']], [-1, expect.any(Number)], 0, 0, 0]);
    expect(told).toEqual(['{b}:c c:1 granted', 'x{y}:c c:1 granted']);
    expect(await world.redis.hgetall('busy')).toEqual({ 'e:1': '1' });
    expect(await world.redis.hgetall('b')).toEqual({ 'c:1': '1' });
    expect(await world.redis.exists('free')).toBe(0);
  });

  it('counts and tells by sharded channels', async () => {
    await world.hold('d:1');
    const channel = 'nestjs_redis_lock_turn:{a}:c';
    const [knowsThem] = (await world.redis.call('COMMAND', 'INFO', 'SPUBLISH')) as unknown[];
    if (knowsThem === null) return; // Redis 6
    const listener = world.server.client();
    const heard: string[] = [];
    const isOver = new Promise<void>((resolve) => {
      listener.on('smessage', (_channel: string, message: string) => {
        if (message === 'over') resolve();
        else heard.push(message);
      });
    });
    await listener.ssubscribe(channel);
    // The clock of a slot, as in a cluster: sharded channels are counted all the same.
    await world.run('enter-line', [NODE_CLOCK, 'a'], [LATER, 0, MINUTE, 0, 'c:1', MINUTE, 'SPUBLISH', '', GRANT]);
    await world.addPlaces({ 'e:1': MINUTE });
    expect(await world.release('d:1', { publish: 'SPUBLISH', clock: NODE_CLOCK })).toBe(0);
    await world.redis.spublish(channel, 'over');
    await isOver;
    expect(heard).toEqual(['c:1 granted']);
    // Who listens to a channel that is not sharded does not count.
    expect(await world.release('c:1', { publish: 'SPUBLISH', clock: NODE_CLOCK })).toBe(0);
    expect(await world.redis.exists('a')).toBe(0);
    expect(await world.line()).toEqual(['e:1']);
  });

  it('serves no line when nobody is to be notified', async () => {
    await world.hold('d:1');
    await world.addPlaces({ 'c:1': MINUTE });
    expect(await world.told(() => world.release('d:1', { publish: '' }))).toEqual([]);
    expect(await world.redis.exists('a')).toBe(0);
    expect(await world.line()).toEqual(['c:1']);
  });

  it('releases the lock of a user who may not look for a line', async () => {
    await world.hold('d:1');
    await world.addPlaces({ 'c:1': MINUTE });
    expect(await world.runWithout(['exists'], 'release-reentrant', ['a'], ['PUBLISH', CLOCK, 'd:1'])).toBe(-3);
    expect(await world.redis.exists('a')).toBe(0);
  });

  it('releases the lock although its line is of another type', async () => {
    await world.hold('d:1');
    await world.redis.set(PLACES, 'of somebody else');
    expect(await world.release('d:1')).toBe(0);
    expect(await world.redis.exists('a')).toBe(0);
  });
});

describe('release-read and release-write, with a line', () => {
  const world = new LineWorld();
  const end = (side: 'read' | 'write', publish = 'PUBLISH') =>
    world.run(`release-${side}`, ['a', READ_LEASE('d:1')], [publish, CLOCK, 'd:1']);
  const hold = (side: 'read' | 'write') =>
    world.holdAs(side === 'read' ? { mode: 'read', 'd:1': '1' } : { mode: 'write', 'd:1:write': '1' });

  describe.each(['read', 'write'] as const)('release-%s', (side) => {
    it('tells readers in front to ask', async () => {
      await hold(side);
      const now = await world.addPlaces({ 'r:1': MINUTE, 'r:2': MINUTE }, 't read');
      const told = await world.told(async () => {
        expect(await end(side)).toEqual([0]);
      });
      expect(told).toEqual(['{a}:r r:1', '{a}:r r:2']);
      await world.expectTold(now);
    });

    it('leaves the lock free for who is first, who is told', async () => {
      await hold(side);
      await world.addPlaces({ 'c:1': MINUTE });
      expect(await world.told(() => end(side))).toEqual(['{a}:c c:1']);
      expect(await world.redis.exists('a')).toBe(0);
      expect(Object.keys(await world.lapses())).toEqual(['told', 'c:1']);
    });

    it('gives nobody a head start, although somebody listens', async () => {
      await hold(side);
      await world.addPlaces({ 'c:1': MINUTE });
      const heard = await world.published(() => end(side));
      expect(heard.slice(1)).toEqual(['nestjs_redis_lock_turn:{a}:c c:1']);
      expect((await world.lapses()).outside).toBeUndefined();
    });

    it('serves no line when nobody is to be notified', async () => {
      await hold(side);
      await world.addPlaces({ 'w:1': MINUTE }, 't write');
      expect(await world.told(() => end(side, ''))).toEqual([]);
      expect(await world.redis.exists('a')).toBe(0);
    });

    it('tells nobody when its owner does not hold the lock', async () => {
      await world.addPlaces({ 'w:1': MINUTE }, 't write');
      const told = await world.told(async () => {
        expect(await end(side)).toEqual([[-1, expect.any(Number)]]);
      });
      expect(told).toEqual([]);
    });

    it('releases the lock of a user who may not publish', async () => {
      await hold(side);
      await world.addPlaces({ 'w:1': MINUTE }, 't write');
      const keys = ['a', READ_LEASE('d:1')];
      const now = await world.now();
      expect(await world.runWithout(['publish'], `release-${side}`, keys, ['PUBLISH', CLOCK, 'd:1'])).toEqual([-3]);
      expect(await world.redis.exists('a')).toBe(0);
      await world.expectTold(now);
    });

    it('releases the lock although its line is of another type', async () => {
      await hold(side);
      await world.redis.set(PLACES, 'of somebody else');
      expect(await end(side)).toEqual([0]);
      expect(await world.redis.exists('a')).toBe(0);
    });
  });

  it('tells who is first that readers end earlier without this one', async () => {
    await hold('read');
    await world.redis.hset('a', 'e:1', '1');
    await world.redis.set(READ_LEASE('e:1'), '1', 'PX', MINUTE / 2);
    await world.addPlaces({ 'w:1': MINUTE }, 't write');
    const before = await world.lapses();
    const told = await world.told(async () => {
      expect(await end('read')).toEqual([-2]);
    });
    expect(told).toEqual(['{a}:w w:1']);
    expect(await world.lapses()).toEqual(before);
  });

  it('tells nobody while another reader lasts as long', async () => {
    await hold('read');
    await world.redis.hset('a', 'e:1', '1');
    await world.redis.set(READ_LEASE('e:1'), '1', 'PX', 2 * MINUTE);
    await world.redis.pexpire('a', 2 * MINUTE);
    await world.addPlaces({ 'w:1': MINUTE }, 't write');
    expect(await world.told(() => end('read'))).toEqual([]);
  });

  it('lets readers in front ask beside a former writer that reads', async () => {
    await world.holdAs({ mode: 'write', 'd:1:write': '1', 'd:1': '1' });
    const now = await world.addPlaces({ 'r:1': MINUTE }, 't read');
    expect(await world.told(() => end('write'))).toEqual(['{a}:r r:1']);
    expect(await world.lapses()).toEqual({ 'r:1': now + MINUTE });
  });
});

describe('a lease that becomes shorter', () => {
  const world = new LineWorld();
  const renew = (lease: number) => world.run('renew-reentrant', ['a'], ['PUBLISH', lease, 'd:1']);

  it('wakes those who listen, and tells who is first', async () => {
    await world.hold('d:1', 2 * MINUTE);
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE });
    const heard = await world.published(async () => {
      expect(await renew(MINUTE)).toEqual([expect.any(Number), 1]);
    });
    expect(heard).toEqual([RELEASED, 'nestjs_redis_lock_turn:{a}:c c:1']);
    await world.expectLease('a', MINUTE);
    expect(await world.line()).toEqual(['c:1', 'c:2']);
  });

  it('is not one that becomes longer, or remains as it is', async () => {
    await world.hold('d:1');
    await world.addPlaces({ 'c:1': MINUTE });
    const heard = await world.published(async () => {
      await renew(2 * MINUTE);
      await renew(2 * MINUTE);
    });
    expect(heard).toEqual([]);
  });

  it('is renewed although the line is of another type', async () => {
    await world.hold('d:1', 2 * MINUTE);
    await world.redis.set(PLACES, 'of somebody else');
    expect(await renew(MINUTE)).toEqual([expect.any(Number), 1]);
    await world.expectLease('a', MINUTE);
  });
});
