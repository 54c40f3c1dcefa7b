import { LineWorld, MINUTE, NODE_CLOCK, OURS, permits, READ_LEASE } from './line-world.js';
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
  PLACES,
  type ScriptWorld,
  TERMS,
} from './script-world.js';

/** The terms of the version whose grants had to be accepted. They name the clock of the tokens. */
const FORMER = 'g n-1 0 0 theirs r 1 0x1';
const KEYS = [PLACES, LAPSES, TERMS];

describe('the terms of a place', () => {
  const world = new LineWorld();
  beforeEach(() => world.redis.set('theirs', 'a key of somebody else'));

  /** Releases the lock while `c:1` is first in line, with these terms, and `e:1` is second. Returns who is told what. */
  const release = async (terms: string) => {
    await world.addPlaces({ 'c:1': MINUTE }, terms);
    await world.addPlaces({ 'e:1': MINUTE });
    await world.hold('d:1');
    const told = await world.told(() => world.release('d:1'));
    expect(await world.redis.get('theirs')).toBe('a key of somebody else');
    return told.map((message) => message.slice('{a}:c '.length));
  };

  it.each([
    ['of a re-entrant lock', grantTerms()],
    ['of a fenced lock', grantTerms({ kind: 'f' })],
  ])('say that it is granted the lock: %s', async (_what, terms) => {
    expect(await release(terms)).toEqual(['c:1 granted']);
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    await world.expectLease('a', GRANT);
    expect(await world.line()).toEqual(['e:1']);
  });

  it('say that it is granted a permit', async () => {
    expect(await release(grantTerms({ kind: 'p', permits: 1 }))).toEqual(['c:1 granted']);
    expect(Object.keys(await world.scores('a'))).toEqual(['c:1']);
    await world.expectLease('a', GRANT);
  });

  it.each([
    ['whom the server does not count', grantTerms({ isCounted: 0 })],
    ['of an earlier version', FORMER],
    ['of a reader', 't read'],
    ['of a writer', 't write'],
  ])('say that it is told: %s', async (_what, terms) => {
    expect(await release(terms)).toEqual(['c:1', 'e:1 free']);
    expect(await world.redis.exists('a')).toBe(0);
    expect(await world.line()).toEqual(['c:1', 'e:1']);
  });

  it('are not needed by a place of an earlier version that wants a permit, which is told', async () => {
    const now = await world.addPlaces({ 'c:1': MINUTE + permits(2) });
    await world.redis.del(TERMS);
    await world.holdPermits({ 'd:1': MINUTE });
    expect(await world.told(() => world.refresh('c:1'))).toEqual(['{a}:c c:1']);
    await world.holdPermits({ 'd:2': MINUTE });
    expect(await world.told(() => world.refresh('c:1'))).toEqual([]);
    const { 'c:1': lapse } = await world.lapses();
    expect(lapse % 1).toBe(permits(2));
    expectBetween(Math.floor(lapse), now + MINUTE, (await world.now()) + MINUTE);
    expect(await world.redis.exists(TERMS)).toBe(0);
  });

  it.each([
    ['none', ''],
    ['of no version', 'x r 1 20000 60000 0 0 0 1 0x0 -'],
    ['of no kind', grantTerms({ kind: 'x' })],
    ['neither counted nor not', grantTerms({ isCounted: 2 })],
    ['without a nonce', grantTerms().replace(/ -$/, '')],
    ['with one more', `${grantTerms()} 1`],
    ['with the clock of tokens of an earlier version', grantTerms({ highest: 'theirs' })],
    ['with a key for a number of tokens', grantTerms({ kind: 'f', reserve: 'theirs' })],
    ['with a negative lease', grantTerms({ lease: -1 })],
    ['with a lease in another notation', grantTerms({ lease: '1e3' })],
    ['with a lease of 12 days', grantTerms({ lease: 1_000_000_001 })],
    ['kept for 12 days', grantTerms({ keep: 1_000_000_001 })],
    ['with too many permits', grantTerms({ kind: 'p', permits: 1_000_000_001 })],
    ['with too many tokens', grantTerms({ reserve: 1_000_000_001 })],
    ['that have seen a token of the future', grantTerms({ highest: AHEAD })],
    ['of the future', grantTerms({ since: AHEAD })],
    ['with a nonce of other characters', grantTerms({ nonce: 'n_1' })],
    ['that are too long', grantTerms({ nonce: 'n'.repeat(300) })],
  ])('make it no place: %s', async (_what, terms) => {
    expect(await release(terms)).toEqual(['e:1 granted']);
    expect(await world.line()).toEqual([]);
    expect(await world.redis.exists(...KEYS)).toBe(0);
  });

  it.each(['outside', 'told', 'c', 'c:x', 'a:b:1', '{a}:1', `${'c'.repeat(200)}:1`])(
    'are not looked at for what is no owner: %s',
    async (owner) => {
      await world.addPlaces({ [owner]: MINUTE, 'e:1': MINUTE });
      await world.hold('d:1');
      expect(await world.told(() => world.release('d:1'))).toEqual(['{a}:e e:1 granted']);
      expect(await world.line()).toEqual([]);
    },
  );

  it('are written anew by each request and refresh: its nonce, the time, and whether it is counted', async () => {
    await world.hold(OURS);
    const terms = async () => (await world.redis.hget(TERMS, 'c:1'))?.replace(/ \d{16} \S+ /, ' <since> <server> ');
    await world.enter('c:1', { nonce: 'n-1', reserve: 3, highest: 7 });
    expect(await terms()).toBe(`l r 0 ${GRANT} ${MINUTE} 0 3 7 <since> <server> n-1`);
    await world.listen('c:1');
    await world.enter('c:1', { nonce: 'n-2', counter: 'tokens', grantLease: 1 });
    expect(await terms()).toBe(`l f 1 1 ${MINUTE} 0 0 0 <since> <server> n-2`);
    await world.deafen('c:1');
    await world.refresh('c:1 n-3');
    expect(await terms()).toBe(`l f 0 1 ${MINUTE} 0 0 0 <since> <server> n-3`);
    await world.listen('c:1');
    await world.refresh('c:1');
    expect(await terms()).toBe(`l f 1 1 ${MINUTE} 0 0 0 <since> <server> -`);
  });

  it.each(['t read', 't write', FORMER])('are not changed by a refresh: %s', async (terms) => {
    await world.hold(OURS);
    await world.addPlaces({ 'c:1': MINUTE }, terms);
    expect(await world.refresh('c:1 n-1')).toEqual([1]);
    expect(await world.redis.hget(TERMS, 'c:1')).toBe(terms);
  });

  it('say for how long a place far back is kept', async () => {
    await world.hold(OURS);
    await world.addPlaces(Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`d:${i}`, MINUTE])));
    expect((await world.enter('c:1'))[3]).toBe(4);
    expect(await world.redis.hget(TERMS, 'c:1')).toMatch(new RegExp(`^l r 0 ${GRANT} ${4 * MINUTE} `));
    expect(await world.refresh('c:1')).toEqual([4]);
    expect(await world.redis.hget(TERMS, 'c:1')).toMatch(new RegExp(`^l r 0 ${GRANT} ${4 * MINUTE} `));
  });

  it('say that nobody is counted on a node of a cluster without sharded channels', async () => {
    await world.hold(OURS);
    await world.listen('c:1');
    const args = [LATER, 0, MINUTE, 0, 'c:1', MINUTE, 'PUBLISH', 'n-1', GRANT];
    await world.run('enter-line', [NODE_CLOCK, 'a'], args);
    expect(await world.redis.hget(TERMS, 'c:1')).toMatch(/^l r 0 /);
  });
});

describe('a place of which a part is missing', () => {
  const world = new LineWorld();
  const remainders = async () => [
    await world.redis.zscore(PLACES, 'c:1'),
    await world.redis.zscore(LAPSES, 'c:1'),
    await world.redis.hget(TERMS, 'c:1'),
  ];
  const parts = [
    ['its position', () => world.redis.zrem(PLACES, 'c:1')],
    ['the time at which it lapses', () => world.redis.zrem(LAPSES, 'c:1')],
    ['its terms', () => world.redis.hdel(TERMS, 'c:1')],
  ] as const;

  it.each(parts)('is none for a refresh, which removes the rest: %s', async (_what, lose) => {
    await world.hold(OURS);
    await world.addPlaces({ 'b:1': MINUTE, 'c:1': MINUTE });
    await lose();
    expect(await world.refresh('b:1', 'c:1')).toEqual([1, 0]);
    expect(await remainders()).toEqual([null, null, null]);
    expect(await world.line()).toEqual(['b:1']);
  });

  it.each(parts)('is not granted the lock: %s', async (_what, lose) => {
    await world.addPlaces({ 'c:1': MINUTE, 'e:1': MINUTE });
    await lose();
    await world.hold('d:1');
    expect(await world.told(() => world.release('d:1'))).toEqual(['{a}:e e:1 granted']);
    expect(await world.line()).toEqual([]);
  });

  it.each(parts)('is entered anew: %s', async (_what, lose) => {
    await world.hold('d:1');
    await world.addPlaces({ 'c:1': MINUTE });
    await lose();
    await world.enter('c:1');
    expect(await world.told(() => world.release('d:1'))).toEqual(['{a}:c c:1 granted']);
  });

  it.each(KEYS)('is none of all that have lost %s', async (key) => {
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE });
    await world.redis.del(key);
    expect(await world.told(() => world.refresh('c:1', 'c:2'))).toEqual([]);
    expect(await world.refresh('c:1', 'c:2')).toEqual([0, 0]);
    expect(await world.redis.exists('a', ...KEYS)).toBe(0);
  });

  it('keeps a reader waiting if it is one of an earlier version that wants a permit', async () => {
    await world.holdAs({ mode: 'read', [OURS]: '1' });
    await world.addPlaces({ 'c:1': MINUTE + permits(2) });
    await world.redis.del(TERMS);
    expect((await world.read('e:1')).slice(1)).toEqual(['c:1', '', 0]);
  });

  it.each(parts)('keeps no reader waiting: %s', async (_what, lose) => {
    await world.holdAs({ mode: 'read', [OURS]: '1' });
    await world.addPlaces({ 'c:1': MINUTE }, 't write');
    await lose();
    expect(await world.read('e:1')).toEqual([expect.any(Number), 0, 1]);
  });
});

describe('who is passed over', () => {
  const world = new LineWorld();
  const release = async () => {
    await world.hold('d:1');
    const told = await world.told(() => world.release('d:1'));
    return told.map((message) => message.slice('{a}:c '.length));
  };
  const late = (left: number, keep = MINUTE) => ({ left, terms: grantTerms({ keep }) });

  /** Has `c:1`, `e:1`, and `f:1` in line, each with the ms left until it lapses, or deaf, or both. */
  const wait = async (...states: readonly { readonly left?: number; readonly isDeaf?: boolean; terms?: string }[]) => {
    for (const [i, { left = MINUTE, isDeaf, terms = grantTerms() }] of states.entries()) {
      const owner = `${'cef'[i]}:1`;
      await world.addPlaces({ [owner]: left }, terms);
      if (isDeaf) await world.deafen(owner);
    }
    return world.lapses();
  };
  const DEAF = { isDeaf: true };
  const LATE = late(MINUTE / 3 - 1_000);

  it('is who is not listened for, whose time is not changed', async () => {
    const { 'c:1': lapse } = await wait(DEAF, {});
    expect(await release()).toEqual(['e:1 granted']);
    expect(await world.lapses()).toEqual({ 'c:1': lapse });
    await world.listen('c:1');
    expect(await release()).toEqual([]); // e:1 holds the lock
    await world.redis.del('a');
    expect(await release()).toEqual(['c:1 granted']);
  });

  it('is who owes a refresh, and is kept for one more interval', async () => {
    await wait(LATE, {});
    const before = await world.now();
    expect(await release()).toEqual(['e:1 granted']);
    const { 'c:1': lapse } = await world.lapses();
    expectBetween(lapse, before + MINUTE / 3, (await world.now()) + MINUTE / 3);
    await world.redis.del('a');
    expect(await release()).toEqual(['c:1']); // owes it still
    await world.refresh('c:1');
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
  });

  it('is who owes a refresh of a permit, and keeps its n', async () => {
    await world.addPlaces({ 'c:1': 1_000 + permits(3) }, grantTerms({ kind: 'p', permits: 3 }));
    await world.addPlaces({ 'e:1': MINUTE });
    expect(await release()).toEqual(['e:1 granted']);
    expect((await world.lapses())['c:1'] % 1).toBe(permits(3));
  });

  it('is no longer kept if nobody listens for it', async () => {
    const { 'c:1': lapse } = await wait({ ...LATE, ...DEAF }, {});
    expect(await release()).toEqual(['e:1 granted']);
    expect((await world.lapses())['c:1']).toBe(lapse);
  });

  it.each([
    ['has more than a third of its time left', late(MINUTE / 3 + 5_000), ['c:1 granted']],
    ['is far back, with less than a third left', late(MINUTE, 4 * MINUTE), ['e:1 granted']],
    ['is told, because it is not counted', { terms: grantTerms({ isCounted: 0 }) }, ['c:1', 'e:1 free']],
    ['is told, and late', { ...LATE, terms: grantTerms({ isCounted: 0 }) }, ['c:1', 'e:1 free']],
    ['is of an earlier version, and late', { left: 1_000, terms: FORMER }, ['c:1', 'e:1 free']],
    ['writes, but is not listened for', { isDeaf: true, terms: 't write' }, ['e:1 granted']],
    ['is told, but is not listened for', { isDeaf: true, terms: grantTerms({ isCounted: 0 }) }, ['e:1 granted']],
  ])('is decided by what it is: who %s', async (_what, state, messages) => {
    await wait(state, {});
    expect(await release()).toEqual(messages);
  });

  it.each([
    ['nobody is listened for', [DEAF, DEAF, DEAF], ['c:1', 'e:1 free']],
    ['all owe a refresh', [LATE, LATE, LATE], ['c:1', 'e:1 free']],
    ['only the second owes none', [LATE, DEAF, LATE], ['e:1', 'f:1 free']],
  ])(
    'may be everybody: the lock is free, and the first of them that owes no refresh is told, and the next: %s',
    async (...each) => {
      const [, states, messages] = each;
      const before = await world.now();
      await wait(...states);
      expect(await release()).toEqual(messages);
      expect(await world.redis.exists('a')).toBe(0);
      expect(await world.line()).toEqual(['c:1', 'e:1', 'f:1']);
      expectBetween((await world.lapses()).told, before + HEAD_START, (await world.now()) + HEAD_START);
    },
  );

  it('does not keep the lock from who asks', async () => {
    await wait(DEAF, LATE);
    const told = await world.told(async () => {
      expect(await world.enter('d:1')).toEqual([expect.any(Number), 0, 1]);
    });
    expect(told).toEqual([]);
    expect(await world.line()).toEqual(['c:1', 'e:1']);
  });

  it('is everybody if the user may not count', async () => {
    await wait({}, {});
    await world.hold('d:1');
    const told = await world.told(() =>
      world.runWithout(['pubsub'], 'release-reentrant', ['a'], ['PUBLISH', CLOCK, 'd:1']),
    );
    expect(told).toEqual(['{a}:c c:1', '{a}:e e:1 free']);
    expect(await world.redis.exists('a')).toBe(0);
    const args = [LATER, 0, MINUTE, 0, 'g:1', MINUTE, 'PUBLISH', 'n-1', GRANT];
    await world.hold('d:1');
    await world.listen('g:1');
    await world.runWithout(['pubsub'], 'enter-line', [CLOCK, 'a'], args);
    expect(await world.redis.hget(TERMS, 'g:1')).toMatch(/^l r 0 /);
    await world.runWithout(['pubsub'], 'refresh-places-1', ['a'], ['PUBLISH', CLOCK, MINUTE, 'c:1', 'n-1']);
    expect(await world.redis.hget(TERMS, 'c:1')).toMatch(/^l r 0 /);
  });

  /** How often the scripts count listeners meanwhile. */
  const counts = async (work: () => Promise<unknown>) => {
    await world.redis.config('RESETSTAT');
    await work();
    return Number(/cmdstat_pubsub(?:\|numsub)?:calls=(\d+)/.exec(await world.redis.info('commandstats'))?.[1] ?? 0);
  };
  const crowd = (length: number) => Object.fromEntries(Array.from({ length }, (_, i) => [`x:${i}`, MINUTE]));

  it.each([
    [0, 1, 'e:1 granted'],
    [1, 2, 'e:1 granted'],
    [64, 2, 'e:1 granted'],
    [65, 3, 'e:1 granted'],
    [1_024, 17, 'e:1 granted'],
    [1_025, 17, 'x:0'],
  ])('is counted alone, and then 64 at a time, up to 1,024: %i of them with %i counts', async (length, most, first) => {
    if (length > 0) await world.addPlaces(crowd(length));
    await world.deafen('x:0');
    await world.addPlaces({ 'e:1': MINUTE });
    let told: string[] = [];
    expect(
      await counts(async () => {
        told = await release();
      }),
    ).toBe(most);
    expect(told[0]).toBe(first);
  });

  it('is at most 1,024 in a batch, and the first place of every lock is told at least', async () => {
    const locks = ['a', ...Array.from({ length: 127 }, (_, i) => `b${i}`)];
    for (const lock of locks) {
      await world.redis.hset(lock, 'd:1', '1');
      if (lock !== 'a') await world.addPlaces({ 'e:1': MINUTE }, undefined, `{${lock}}`);
    }
    await world.addPlaces(crowd(1_100));
    await world.deafen('x:0');
    const told = await world.told(() =>
      world.run('release-reentrant', locks, ['PUBLISH', CLOCK, ...locks.map(() => 'd:1')]),
    );
    expect(told).toEqual(['{a}:x x:0', '{a}:x x:1 free', ...locks.slice(1).map((lock) => `{${lock}}:e e:1`)]);
    expect(await world.redis.exists(...locks)).toBe(0);
  });

  it('is counted once although many permits are granted behind', async () => {
    const [deaf, granted] = [300, 200];
    await world.addPlaces(crowd(deaf));
    await world.deafen('x:0');
    const places = Object.fromEntries(Array.from({ length: granted }, (_, i) => [`p:${i}`, MINUTE + permits(1_000)]));
    await world.addPlaces(places);
    await world.holdPermits({ 'd:1': MINUTE, 'd:2': MINUTE });
    await world.run('release-permits', ['a'], ['PUBLISH', CLOCK, 'd:1']);
    expect(await world.redis.zcard('a')).toBe(1 + granted);
  });
});

describe('who was told of a free lock', () => {
  const world = new LineWorld();
  const told = async () => (await world.lapses()).told;
  const isOver = () => world.redis.zadd(LAPSES, 0, 'told');

  beforeEach(async () => {
    await world.addPlaces({ 'w:1': MINUTE, 'w:2': MINUTE }, 't write');
    await world.hold('d:1');
    await world.release('d:1');
  });

  it('goes first for a short time, which telling it again does not make longer', async () => {
    const until = (await world.now()) + LONGEST_HEAD_START;
    await world.redis.zadd(LAPSES, until, 'told');
    expect(await world.told(() => world.enter('c:1'))).toEqual(['{a}:w w:1']);
    expect(await world.told(() => world.refresh('c:1'))).toEqual(['{a}:w w:1', '{a}:w w:2 free']);
    expect(await told()).toBe(until);
    const [left, ...others] = await world.enter('c:1');
    expect(others).toEqual(['w:1', '', 0]);
    expectBetween(left as number, HEAD_START + 1, LONGEST_HEAD_START);
  });

  it('may ask at once', async () => {
    expect(await world.write('w:1')).toEqual([expect.any(Number), 0, 1]);
    expect(await told()).toBeUndefined();
  });

  it.each([
    ['acquire-write', [CLOCK, 'a', '{a}:w:1:rwlock_timeout:1'], [LATER, 0, MINUTE, 0, 'w:1']],
    ['enter-permits-line', [CLOCK, 'a'], [LATER, 0, MINUTE, 0, 'w:1', MINUTE, 'PUBLISH', '', GRANT, 1]],
  ] as const)('goes first no more once the lock is taken: %s', async (name, keys, args) => {
    await world.run(name, keys, args);
    expect(await world.redis.exists('a')).toBe(1);
    expect(await told()).toBeUndefined();
    expect(await world.line()).toEqual(['w:2']);
  });

  it('goes first no longer than that, and then any place does, but no newcomer', async () => {
    await isOver();
    expect(await world.enter('c:1')).toEqual([1, 'w:1', '', 0]);
    expect(await told()).toBe(0);
    expect(await world.enter('c:1')).toEqual([expect.any(Number), 0, 1]);
    expect(await told()).toBeUndefined();
    expect(await world.line()).toEqual(['w:1', 'w:2']);
  });

  it('goes first again after the next release', async () => {
    await isOver();
    const before = await world.now();
    await world.hold('d:1');
    await world.release('d:1');
    await world.expectTold(before);
  });

  it('does not go first any more when the lock is granted', async () => {
    await world.redis.del(PLACES);
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE });
    await world.refresh('c:2');
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    expect(await told()).toBeUndefined();
  });
});

describe('who asks for a lock', () => {
  const world = new LineWorld();

  it('is not told by its own request of what is left to those outside the line', async () => {
    await world.addPlaces({ 'c:1': 1_000 }, grantTerms());
    await world.headStart(LONGEST_HEAD_START);
    const told = await world.told(async () => {
      expect((await world.enter('c:1'))[1]).toBe('');
    });
    expect(told).toEqual([]);
  });

  it('is not told by its own request together with other readers', async () => {
    await world.addPlaces({ 'w:1': MINUTE }, 't write');
    await world.deafen('w:1');
    await world.addPlaces({ 'r:1': MINUTE, 's:2': MINUTE, 'r:3': MINUTE }, 't read');
    const told = await world.told(async () => {
      expect((await world.read('s:2')).slice(1)).toEqual(['r:1', '', 0]);
    });
    expect(told).toEqual(['{a}:r r:1', '{a}:r r:3']);
  });
});

/** Every key of the server with its value. */
async function contents({ redis }: ScriptWorld): Promise<Record<string, string | undefined>> {
  const keys = (await redis.keys('*')).sort();
  const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
  return Object.fromEntries(keys.map((key, i) => [key, dumps[i]?.toString('hex')]));
}

const ENTER_ARGS = [LATER, 0, MINUTE, 0, 'c:2', MINUTE, 'PUBLISH', 'n-1', GRANT];
const SCRIPTS = [
  ['enter-line', [CLOCK, 'a'], ENTER_ARGS],
  ['enter-permits-line', [CLOCK, 'a'], [...ENTER_ARGS, 2]],
  ['enter-read-write-line-3', [CLOCK, 'a', '{a}:c:2:rwlock_timeout:1'], [...ENTER_ARGS.slice(0, 7), 0, 0]],
  ['refresh-places-1', ['a'], ['PUBLISH', CLOCK, MINUTE, 'c:2', 'n-1']],
  ['refresh-places-1', ['a'], ['PUBLISH', CLOCK, MINUTE, 'c:9', 'n-1']],
  ['remove-place-1', ['a'], ['PUBLISH', CLOCK, 'c:9']],
  ['remove-place-1', ['a'], ['PUBLISH', CLOCK, 'e:1']],
] as const;

describe('a user who may not publish to the line', () => {
  const world = new LineWorld();
  const run = (...[name, keys, args]: Parameters<LineWorld['run']>) =>
    world.runWithout(['publish'], name, keys, args ?? []);

  it.each([
    ['enter-line', [CLOCK, 'a'], ['n-2', GRANT]],
    ['enter-permits-line', [CLOCK, 'a'], ['n-2', GRANT, 1]],
    ['enter-read-write-line-3', [CLOCK, 'a', READ_LEASE('e:1')], [0, 0]],
  ] as const)('gets a token above what it has seen, behind who could not be told: %s', async (name, keys, terms) => {
    await world.redis.set(CLOCK, 1);
    await world.addPlaces({ 'c:1': MINUTE }, grantTerms({ nonce: 'n-1' }));
    await world.addPlaces({ 'e:1': MINUTE });
    await world.redis.zadd(LAPSES, 0, 'told');
    const reply = await run(name, keys, [LATER, AHEAD, MINUTE, 0, 'e:1', MINUTE, 'PUBLISH', ...terms]);
    expect(reply).toEqual([AHEAD + 1, 0, 1]);
  });

  it.each(SCRIPTS)('grants nothing, and leaves the lock free: %s %j %j', async (name, keys, args) => {
    await world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE, 'e:1': MINUTE });
    await run(name, keys, args);
    expect(await world.redis.exists('a')).toBe(0);
    expect((await world.line()).slice(0, 2)).toEqual(['c:1', 'c:2']);
    expect((await world.redis.hkeys(TERMS)).sort().slice(0, 2)).toEqual(['c:1', 'c:2']);
    expect(Object.keys(await world.lapses())).toEqual(expect.arrayContaining(['c:1', 'c:2']));
  });

  it('waits behind who is first, and then takes the lock', async () => {
    await world.addPlaces({ 'c:1': MINUTE });
    const [left, ...others] = (await run(...SCRIPTS[0])) as [number, ...unknown[]];
    expect(others).toEqual(['c:1', '', 0]);
    expectBetween(left, 1, HEAD_START);
    await world.redis.zadd(LAPSES, (await world.now()) - 1, 'told');
    expect(await run(...SCRIPTS[0])).toEqual([expect.any(Number), 0, 1]);
  });

  it('may publish to the channel of Redisson alone', async () => {
    await world.addPlaces({ 'c:1': MINUTE });
    await world.hold('d:1');
    const told = await world.told(async () => {
      const args = ['PUBLISH', CLOCK, 'd:1'];
      expect(await world.runWithout([], 'release-reentrant', ['a'], args, 'redisson_lock__channel:')).toBe(-3);
    });
    expect(told).toEqual([]);
    expect(await world.redis.exists('a')).toBe(0);
    expect(await world.line()).toEqual(['c:1']);
  });
});

describe('a full memory', () => {
  const world = new LineWorld();
  const situations = {
    'a lock that is granted': () => world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE, 'e:1': MINUTE }),
    'a lock of which a writer is told': () =>
      world.addPlaces({ 'c:1': MINUTE, 'c:2': MINUTE, 'e:1': MINUTE }, 't write'),
    'a line in which all are late': () => world.addPlaces({ 'c:1': 9, 'c:2': 9_000, 'e:1': 9_000 }, grantTerms()),
    'permits that are left': async () => {
      await world.holdPermits({ 'd:1': MINUTE });
      await world.addPlaces({ 'c:1': MINUTE + permits(2), 'c:2': MINUTE + permits(2), 'e:1': MINUTE });
    },
  };
  const cases = Object.keys(situations).flatMap((name) =>
    SCRIPTS.map((script) => [name as keyof typeof situations, ...script] as const),
  );

  it.each(cases)('leaves nothing half done: %s, %s %j %j', async (name, script, keys, args) => {
    await situations[name]();
    const before = await contents(world);
    let failure: unknown;
    await world.withFullMemory(() =>
      world.run(script, keys, args).catch((error: unknown) => {
        failure = error;
      }),
    );
    if (failure !== undefined) {
      expect(String(failure)).toMatch(/OOM/);
      expect(script).toMatch(/^enter/);
      expect(await contents(world)).toEqual(before);
      return;
    }
    // Each place has all of its parts, and a lock its lease.
    const places = await world.line();
    expect((await world.redis.hkeys(TERMS)).sort()).toEqual([...places].sort());
    const { told, outside, ...lapses } = await world.lapses();
    expect(Object.keys(lapses).sort()).toEqual([...places].sort());
    for (const key of (await world.keys()).filter((key) => key === 'a' || key.includes('turns'))) {
      if (before[key] === undefined) expect(await world.redis.pttl(key)).toBeGreaterThan(0);
    }
  });

  it.each(['release-reentrant', 'release-permits'] as const)('grants what %s has given back', async (script) => {
    const isPlain = script === 'release-reentrant';
    if (isPlain) await world.hold('d:1');
    else await world.holdPermits({ 'd:1': MINUTE });
    await world.addPlaces(isPlain ? { 'c:1': MINUTE } : { 'c:1': MINUTE + permits(1) });
    await world.withFullMemory(() => world.run(script, ['a'], ['PUBLISH', CLOCK, 'd:1']));
    expect(await world.redis.type('a')).toBe(isPlain ? 'hash' : 'zset');
    await world.expectLease('a', GRANT);
    expect(await world.redis.exists(...KEYS)).toBe(0);
  });
});

describe('an acquisition that finds its own field', () => {
  const world = new LineWorld();
  const owned = { 'c:1': '1' };

  it.each([
    ['acquire-reentrant', [CLOCK, 'a'], [0, 'c:1'], owned],
    ['acquire-fenced', [CLOCK, 'a', 'tokens'], [0, 'c:1'], owned],
    ['acquire-all', [CLOCK, 'a', 'tokens', '{a}:c:1:rwlock_timeout:1'], ['reentrant', 'c:1', '1'], owned],
    ['enter-line', [CLOCK, 'a'], [0, 'c:1', MINUTE, 'PUBLISH', '', GRANT], owned],
    ['acquire-write', [CLOCK, 'a', '{a}:c:1:rwlock_timeout:1'], [0, 'c:1'], { mode: 'write', 'c:1:write': '1' }],
    [
      'enter-read-write-line-3',
      [CLOCK, 'a', '{a}:c:1:rwlock_timeout:1'],
      [0, 'c:1', MINUTE, 'PUBLISH', 0, 0],
      { mode: 'write', 'c:1:write': '1' },
    ],
  ] as const)('never makes the lease shorter, but longer: %s', async (name, keys, args, fields) => {
    await world.redis.hset('a', fields);
    await world.redis.pexpire('a', 2 * MINUTE);
    await world.run(name, keys, [LATER, 0, MINUTE, ...args]);
    await world.expectLease('a', 2 * MINUTE);
    await world.run(name, keys, [LATER, 0, 3 * MINUTE, ...args]);
    await world.expectLease('a', 3 * MINUTE);
  });

  it.each([
    ['acquire-permits', [0, 1, 'c:1']],
    ['enter-permits-line', [0, 'c:1', MINUTE, 'PUBLISH', '', GRANT, 1]],
  ] as const)('never makes the lease of a permit shorter, but longer: %s', async (name, args) => {
    await world.holdPermits({ 'c:1': 2 * MINUTE });
    const { 'c:1': ends } = await world.scores('a');
    await world.run(name, [CLOCK, 'a'], [LATER, 0, MINUTE, ...args]);
    expect(await world.scores('a')).toEqual({ 'c:1': ends });
    await world.run(name, [CLOCK, 'a'], [LATER, 0, 3 * MINUTE, ...args]);
    expect((await world.scores('a'))['c:1']).toBeGreaterThan(ends);
  });
});

describe('what a granted place is told', () => {
  const world = new LineWorld();
  beforeEach(async () => {
    await world.hold('d:1');
    await world.listen('c');
  });
  const release = () => world.told(() => world.release('d:1'));
  const termsOf = async (owner: string) => (await world.redis.hget(TERMS, owner)) as string;
  /** Nonce, token, how many are reserved, how many ms ago the terms were written, and the lease. */
  const grant = async () => {
    const [message, ...others] = await release();
    expect(others).toEqual([]);
    const [, nonce, ...numbers] = /^\{a\}:c c:1 granted (\S+) (\d+) (\d+) (\d+) (\d+)$/.exec(message) ?? [];
    return [nonce, ...numbers.map(Number)] as [string, number, number, number, number];
  };
  /** Makes the terms older by this many µs. */
  const age = async (micros: number) => {
    const terms = (await termsOf('c:1')).split(' ');
    terms[8] = String(Number(terms[8]) - micros);
    await world.redis.hset(TERMS, 'c:1', terms.join(' '));
  };

  it('is the nonce, a token, those that are reserved, the age of the terms, and the lease', async () => {
    await world.redis.set(CLOCK, 1);
    const before = await world.now();
    await world.enter('c:1', { nonce: 'n-1', reserve: 3 });
    const [nonce, token, reserved, after, lease] = await grant();
    const now = await world.now();
    expect([nonce, reserved, lease]).toEqual(['n-1', 3, GRANT]);
    expectBetween(token, before * 1_000, (now + 1) * 1_000);
    expectBetween(after, 0, now - before + 1);
    expect(await world.redis.get(CLOCK)).toBe(String(token + 3));
    expect(await world.redis.exists(TERMS, PLACES, LAPSES)).toBe(0);
    await world.expectLease('a', GRANT);
  });

  it.each([
    [1, 1_000],
    [45_000, 45_000],
    [999_999_999, 3_600_000],
  ])('says for how long the lock is written, and asks for %i ms are limited: %i ms', async (asked, lease) => {
    await world.enter('c:1', { nonce: 'n-1', grantLease: asked });
    expect((await grant())[4]).toBe(lease);
    await world.expectLease('a', lease);
  });

  it('measures from the latest request or refresh', async () => {
    await world.enter('c:1', { nonce: 'n-1' });
    await age(70_000_000);
    const [, , , after] = await grant();
    expectBetween(after, 70_000, 80_000);
    await world.redis.del('a');
    await world.hold('d:1');
    await world.enter('c:1', { nonce: 'n-2' });
    await age(70_000_000);
    await world.refresh('c:1 n-3');
    const [nonce, , , since] = await grant();
    expect(nonce).toBe('n-3');
    expectBetween(since, 0, 10_000);
  });

  it('tells no time that a clock seems to have been set back by', async () => {
    await world.enter('c:1', { nonce: 'n-1' });
    await age(-70_000_000);
    expect((await grant())[3]).toBe(0);
  });

  it('tells nothing of the time between if another server has written the terms', async () => {
    await world.enter('c:1', { nonce: 'n-1' });
    await age(70_000_000);
    const terms = (await termsOf('c:1')).split(' ');
    terms[9] = '0x1';
    await world.redis.hset(TERMS, 'c:1', terms.join(' '));
    expect((await grant())[3]).toBe(0);
  });

  it('is a token above the highest that its process has seen', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.redis.hset(TERMS, 'c:1', '');
    const seen = ((await world.now()) + 60_000) * 1_000;
    await world.redis.set(CLOCK, seen - 7);
    await world.enter('c:1', { nonce: 'n-1', highest: seen });
    expect((await grant()).slice(0, 3)).toEqual(['n-1', seen + 1, 0]);
  });

  it.each([
    ['exists', AHEAD + 50, AHEAD + 51],
    ['does not exist', undefined, AHEAD + 2],
  ])('is a token of the counter of a fenced lock that %s', async (_what, value, token) => {
    const counter = 'redisson_lock_token:{a}';
    await world.redis.set(CLOCK, AHEAD);
    if (value !== undefined) await world.redis.set(counter, value);
    await world.enter('c:1', { nonce: 'n-1', counter });
    expect((await grant()).slice(0, 3)).toEqual(['n-1', token, 0]);
    expect(await world.redis.get(counter)).toBe(String(token));
    expect(await world.redis.get(CLOCK)).toBe(String(value === undefined ? AHEAD + 1 : AHEAD));
  });

  it('reserves more tokens of a fenced lock', async () => {
    const counter = 'redisson_lock_token:{a}';
    await world.redis.set(counter, 1);
    await world.enter('c:1', { nonce: 'n-1', counter, reserve: 4 });
    const [, token, reserved] = await grant();
    expect(reserved).toBe(4);
    expect(await world.redis.get(counter)).toBe(String(token + 4));
  });

  it.each([
    ['its latest request had no nonce', '', async () => {}],
    ['the clock cannot be written', 'n-1', () => world.redis.rpush(CLOCK, 'of somebody else')],
  ])('is nothing but the grant if %s', async (_what, nonce, prepare) => {
    await prepare();
    await world.enter('c:1', { nonce: 'n-1' });
    await world.enter('c:1', { nonce });
    expect(await release()).toEqual(['{a}:c c:1 granted']);
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    await world.expectLease('a', GRANT);
  });
});
