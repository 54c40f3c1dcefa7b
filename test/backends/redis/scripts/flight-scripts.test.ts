import { AHEAD, CLOCK, LATER, ScriptWorld } from './script-world.js';

const MINUTE = 60_000;
/** Without a limit on the size of a result. */
const ANY_SIZE = 1_000_000;
const KEYS = [CLOCK, 'a', 'result', 'wanted', 'forgotten'];

class FlightWorld extends ScriptWorld {
  acquire(owner: string, { begin = '' as number | '', keepFor = 0, sent = ANY_SIZE, accepted = ANY_SIZE } = {}) {
    return this.run('acquire-flight-5', KEYS, [LATER, 0, MINUTE, owner, begin, keepFor, sent, accepted]);
  }

  /** @param waits server time in ms until which the runner waits */
  release(owner: string, token: number, keepFor: number, { seen = 0, waits = LATER as number | string } = {}) {
    return this.run('release-flight-5', KEYS, [waits, 'PUBLISH', seen, owner, token, keepFor, 'value']);
  }

  forget() {
    return this.run('forget-result-4', [CLOCK, 'a', 'result', 'forgotten'], [0]);
  }

  /** @param age of the result by the server's time, in ms */
  async keep(readings: { ended: number; before?: number; kept?: number; age?: number }): Promise<void> {
    const { ended, before = ended, kept = ended, age = 0 } = readings;
    const time = ((await this.now()) - age) * 1_000;
    await this.redis.hset('result', { value: 'value', run: 'd:1', ended, before, kept, time });
  }
}

/** The clock says this, so that the next reading is one more. */
const NEXT = AHEAD + 1;

describe('acquire-flight-5', () => {
  const world = new FlightWorld();
  const result = (readings: { ended: number; before?: number; kept?: number }) => {
    const { ended, before = ended, kept = ended } = readings;
    return ['result', 'd:1', ended, before, kept, NEXT, expect.any(Number), 'value'];
  };
  beforeEach(() => world.redis.set(CLOCK, AHEAD));

  it('begins a run when the lock is free, and forgets what was forgotten in earlier runs', async () => {
    await world.redis.set('forgotten', '1,2');
    expect(await world.acquire('c:1')).toEqual(['acquired', NEXT]);
    expect(await world.redis.hgetall('a')).toEqual({ 'c:1': '1' });
    await world.expectLease('a', MINUTE);
    expect(await world.redis.exists('forgotten', 'wanted')).toBe(0);
    expect(await world.redis.get(CLOCK)).toBe(String(NEXT));
  });

  it('reserves no tokens that nobody gets', async () => {
    await world.redis.set(CLOCK, 1);
    const [, token] = (await world.acquire('c:1')) as [string, number];
    expect(await world.redis.get(CLOCK)).toBe(String(token));
  });

  it('gives an owner that asks again a fresh lease, and keeps what was forgotten in its run', async () => {
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.set('forgotten', '1,2');
    expect(await world.acquire('c:1')).toEqual(['acquired', NEXT]);
    await world.expectLease('a', MINUTE);
    expect(await world.redis.get('forgotten')).toBe('1,2');
  });

  it.each([
    ['with a lease', 5_000, 6_000],
    ['without a lease', undefined, 1_000],
  ])(
    'has to wait while another owner holds the lock %s, and says that it wants the result',
    async (_what, lease, wanted) => {
      const before = await world.now();
      await world.redis.hset('a', 'd:1', '1');
      if (lease !== undefined) await world.redis.pexpire('a', lease);
      const [answer, left, holder, reading] = (await world.acquire('c:1')) as [string, number, string, number];
      expect([answer, holder, reading]).toEqual(['busy', 'd:1', NEXT]);
      if (lease === undefined) expect(left).toBe(-1);
      else expect(left).toBeLessThanOrEqual(lease);
      const pttl = await world.redis.pttl('wanted');
      expect(pttl).toBeLessThanOrEqual(wanted);
      expect((await world.now()) + pttl).toBeGreaterThanOrEqual(before + wanted - 2);
    },
  );

  it('gives a caller the result of a run that it waited for, not of one that ended before', async () => {
    await world.keep({ ended: 1_000 });
    expect(await world.acquire('c:1', { begin: 999 })).toEqual(result({ ended: 1_000 }));
    expect(await world.acquire('c:1', { begin: 1_000 })).toEqual(['acquired', expect.any(Number)]);
  });

  it('gives no result to callers that began to ask after it was forgotten', async () => {
    await world.keep({ ended: 1_000, before: 500 });
    expect(await world.acquire('c:1', { begin: 499 })).toEqual(result({ ended: 1_000, before: 500 }));
    expect(await world.acquire('c:1', { begin: 500 })).toEqual(['acquired', expect.any(Number)]);
  });

  it.each([
    ['as old as the caller accepts', { ended: NEXT - 5_000_000, kept: NEXT }, 5_000, true],
    ['older than the caller accepts', { ended: NEXT - 5_000_001, kept: NEXT }, 5_000, false],
    ['no longer kept', { ended: NEXT - 5_000_000, kept: NEXT - 1 }, 5_000, false],
    ['of the future', { ended: NEXT + 1, kept: NEXT + 9_000_000 }, 5_000, false],
    ['of this moment', { ended: NEXT, kept: NEXT + MINUTE * 1_000 }, MINUTE, true],
    ['of this moment for a caller that accepts no kept result', { ended: NEXT, kept: NEXT + MINUTE * 1_000 }, 0, false],
    ['older by the time', { ended: NEXT, kept: NEXT + 2 * MINUTE * 1_000, age: MINUTE + 1 }, MINUTE, false],
    ['kept no longer by the time', { ended: NEXT, kept: NEXT + MINUTE * 1_000, age: MINUTE + 1 }, 2 * MINUTE, false],
    ['of the future by the time', { ended: NEXT, kept: NEXT + MINUTE * 1_000, age: -MINUTE }, MINUTE, false],
  ])('decides about a result that is %s', async (_what, readings, keepFor, isGiven) => {
    await world.keep(readings);
    expect(await world.acquire('c:1', { keepFor })).toEqual(isGiven ? result(readings) : ['acquired', NEXT]);
  });

  it('neither sends nor accepts a result that is too large', async () => {
    await world.keep({ ended: 1_000 });
    const { length } = 'value';
    expect(await world.acquire('c:1', { begin: 1, sent: length - 1 })).toEqual(['large']);
    expect(await world.redis.exists('a', 'wanted')).toBe(0);
    expect(await world.acquire('c:1', { begin: 1, sent: length })).toEqual([
      'result',
      'd:1',
      1_000,
      1_000,
      1_000,
      NEXT + 1,
      expect.any(Number),
      'value',
    ]);
    expect(await world.acquire('c:1', { begin: 1, accepted: length - 1 })).toEqual(['acquired', expect.any(Number)]);
  });

  it('says how old a result is by the clock and by the time, whichever is longer', async () => {
    const ageOf = async () => ((await world.acquire('c:1', { begin: 1 })) as number[])[6];
    await world.keep({ ended: NEXT - 90_000_000 });
    expect(await ageOf()).toBe(90_000_000);
    await world.keep({ ended: NEXT - 90_000_000, age: 2 * MINUTE });
    const age = await ageOf();
    expect(age).toBeGreaterThanOrEqual(2 * MINUTE * 1_000);
    expect(age).toBeLessThan(4 * MINUTE * 1_000);
    await world.keep({ ended: NEXT - 90_000_000, age: -MINUTE });
    expect(await ageOf()).toBe(-1);
  });

  it('gives a result of an earlier version, which has no time, only to callers that waited for it', async () => {
    await world.keep({ ended: NEXT, kept: NEXT + MINUTE * 1_000 });
    await world.redis.hdel('result', 'time');
    expect(await world.acquire('c:1', { begin: 1 })).toContain('value');
    expect(await world.acquire('c:1', { keepFor: MINUTE })).toEqual(['acquired', NEXT + 1]);
  });

  it.each([
    ['of another type', async () => world.redis.set('result', 'of somebody else')],
    ['whose reading is not a number', async () => world.redis.hset('result', 'ended', 'soon')],
    ['whose reading has too many digits', async () => world.redis.hset('result', 'before', '1'.repeat(17))],
    ['without a value', async () => world.redis.hdel('result', 'value')],
    ['without the reading until which it is kept', async () => world.redis.hdel('result', 'kept')],
  ])('treats a result %s as missing', async (_what, damage) => {
    await world.keep({ ended: 1_000 });
    await damage();
    expect(await world.acquire('c:1', { begin: 1 })).toEqual(['acquired', NEXT]);
  });

  it('does not begin a run again whose result is there', async () => {
    await world.keep({ ended: 1_000 });
    expect(await world.acquire('d:1', { begin: 1 })).toEqual(['busy', 1, '', NEXT]);
    expect(await world.redis.exists('a')).toBe(0);
  });
});

describe('release-flight-5', () => {
  const world = new FlightWorld();
  const TOKEN = AHEAD - 10;
  beforeEach(async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.redis.hset('a', 'c:1', '1');
  });

  it('keeps the result for the time that was asked for, and tells the waiters', async () => {
    await world.redis.set('wanted', '1');
    const heard = await world.published(async () => {
      expect(await world.release('c:1', TOKEN, MINUTE)).toEqual([1, 1, '']);
    });
    expect(heard).toEqual(['redisson_lock__channel:{a} 0']);
    expect(await world.redis.hgetall('result')).toEqual({
      value: 'value',
      run: 'c:1',
      ended: String(NEXT),
      before: String(NEXT),
      kept: String(NEXT + MINUTE * 1_000),
      time: expect.stringMatching(/^\d{16}$/),
    });
    const age = (await world.now()) - Number(await world.redis.hget('result', 'time')) / 1_000;
    expect(Math.abs(age)).toBeLessThan(MINUTE);
    await world.expectLease('result', MINUTE);
    expect(await world.redis.exists('a', 'wanted')).toBe(0);
    expect(await world.redis.get(CLOCK)).toBe(String(NEXT));
  });

  it('keeps a result for ten seconds for those that wait for it now', async () => {
    await world.redis.set('wanted', '1');
    expect(await world.release('c:1', TOKEN, 0)).toEqual([0, 1, '']);
    expect(await world.redis.hget('result', 'kept')).toBe(String(NEXT));
    await world.expectLease('result', 10_000);
  });

  it('stores no result that nobody wants', async () => {
    expect(await world.release('c:1', TOKEN, 0)).toEqual([0, 0, '']);
    expect(await world.redis.keys('*')).toEqual([CLOCK]);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD));
  });

  it('counts a run as ended when its runner stopped waiting, if the release is late', async () => {
    await world.redis.set('wanted', '1');
    const waits = (await world.now()) - 3_000;
    expect(await world.release('c:1', TOKEN, MINUTE, { waits })).toEqual([0, 1, '']);
    const ended = String(waits * 1_000);
    const kept = String((waits + MINUTE) * 1_000);
    expect(await world.redis.hgetall('result')).toMatchObject({ ended, before: ended, kept, time: ended });
    expect(await world.redis.get(CLOCK)).toBe(String(NEXT));
  });

  it('serves nobody who asked after either moment, if the result was forgotten and the release is late', async () => {
    const waits = (await world.now()) - 3_000;
    const servedUntil = async (first: number) => {
      await world.redis.hset('a', 'c:1', '1');
      await world.redis.mset({ forgotten: `${first},${AHEAD}`, wanted: '1' });
      await world.release('c:1', 1, 0, { waits });
      return Number(await world.redis.hget('result', 'before'));
    };
    expect(await servedUntil(waits * 1_000 - 5)).toBe(waits * 1_000 - 5);
    expect(await servedUntil(waits * 1_000 + 5)).toBe(waits * 1_000);
  });

  it('gives a result that was forgotten meanwhile only to callers that already waited', async () => {
    await world.redis.set('forgotten', `${TOKEN + 2},${TOKEN + 5}`);
    await world.redis.set('wanted', '1');
    expect(await world.release('c:1', TOKEN, MINUTE)).toEqual([0, 1, '']);
    expect(await world.redis.hmget('result', 'before', 'kept')).toEqual([String(TOKEN + 2), String(NEXT)]);
    await world.expectLease('result', 10_000);
  });

  it('counts from the token when the first record is older', async () => {
    await world.redis.set('forgotten', `${TOKEN - 2},${TOKEN + 5}`);
    await world.redis.set('wanted', '1');
    expect(await world.release('c:1', TOKEN, MINUTE)).toEqual([0, 1, '']);
    expect(await world.redis.hmget('result', 'before', 'kept')).toEqual([String(TOKEN), String(NEXT)]);
  });

  it.each([
    ['before the run', `${TOKEN - 5},${TOKEN - 2}`],
    ['as the run began', `${TOKEN - 5},${TOKEN}`],
    ['in a text that this library does not write', 'soon'],
  ])('keeps a result although results were forgotten %s', async (_what, record) => {
    await world.redis.set('forgotten', record);
    expect(await world.release('c:1', TOKEN, MINUTE)).toEqual([0, 1, '']);
    expect(await world.redis.hget('result', 'kept')).toBe(String(NEXT + MINUTE * 1_000));
  });

  it('releases the lock and says why when the result cannot be stored', async () => {
    await world.redis.set('result', 'of somebody else');
    expect(await world.release('c:1', TOKEN, MINUTE)).toEqual([0, 0, expect.stringContaining('WRONGTYPE')]);
    expect(await world.redis.exists('a')).toBe(0);
    expect(await world.redis.get('result')).toBe('of somebody else');
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD));
  });

  it('leaves no result for ever where the user may not limit its time', async () => {
    const args = [LATER, 'PUBLISH', 0, 'c:1', TOKEN, MINUTE, 'value'];
    expect(await world.runWithout(['pexpire'], 'release-flight-5', KEYS, args)).toEqual([
      0,
      0,
      expect.stringMatching(/can't run this command|no permissions/),
    ]);
    expect(await world.redis.exists('a', 'result')).toBe(0);
  });

  it('says that the lock is not held, and whether the result is this one', async () => {
    const before = await world.now();
    const [answer, time, isStored] = (await world.release('c:2', TOKEN, MINUTE)) as number[];
    expect([answer, isStored]).toEqual([-1, 0]);
    expect(time).toBeGreaterThanOrEqual(before);
    expect(await world.redis.exists('result')).toBe(0);
    await world.release('c:1', TOKEN, MINUTE);
    expect(await world.release('c:1', TOKEN, MINUTE)).toEqual([-1, expect.any(Number), 1]);
  });

  it('takes the next reading after the highest token that was seen', async () => {
    await world.redis.set(CLOCK, AHEAD - 20);
    expect(await world.release('c:1', TOKEN, MINUTE, { seen: AHEAD })).toEqual([0, 1, '']);
    expect(await world.redis.hget('result', 'ended')).toBe(String(NEXT));
    await world.redis.del(CLOCK);
    await world.redis.hset('a', 'c:1', '1');
    expect(await world.release('c:1', TOKEN, MINUTE, { seen: AHEAD })).toEqual([0, 1, '']);
    expect(await world.redis.hget('result', 'ended')).toBe(String(NEXT));
    expect(await world.redis.get(CLOCK)).toBe(String(NEXT));
  });

  it('reads a time from the server when the clock is behind, and starts one ahead of it', async () => {
    await world.redis.set(CLOCK, 1);
    const before = (await world.now()) * 1_000;
    await world.release('c:1', 1, MINUTE);
    const ended = Number(await world.redis.hget('result', 'ended'));
    expect(ended).toBeGreaterThanOrEqual(before);
    expect(ended).toBeLessThan(before + 150_000_000);
    await world.redis.del(CLOCK);
    await world.redis.hset('a', 'c:1', '1');
    await world.release('c:1', 1, MINUTE);
    expect(Number(await world.redis.hget('result', 'ended'))).toBeGreaterThanOrEqual(before + 150_000);
  });
});

describe('renew-flight', () => {
  const world = new FlightWorld();

  it('renews each lock, and what was forgotten for ten seconds longer', async () => {
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.hset('b', 'd:1', '1');
    await world.redis.hset('c', 'c:3', '1');
    await world.redis.mset({ forgottenOfA: '1,2', forgottenOfB: '1,2', forgottenOfC: '1,2' });
    const before = await world.now();
    const keys = ['a', 'forgottenOfA', 'b', 'forgottenOfB', 'c', 'forgottenOfC'];
    const reply = (await world.run('renew-flight', keys, ['PUBLISH', MINUTE, 'c:1', 'c:2', 'c:3'])) as number[];
    expect(reply).toEqual([expect.any(Number), 1, 0, 1]);
    expect(reply[0]).toBeGreaterThanOrEqual(before);
    for (const lock of ['a', 'c']) await world.expectLease(lock, MINUTE);
    for (const forgotten of ['forgottenOfA', 'forgottenOfC']) {
      const left = await world.redis.pttl(forgotten);
      expect(left).toBeGreaterThan(MINUTE + 5_000);
      expect(left).toBeLessThanOrEqual(MINUTE + 10_000);
    }
    expect(await world.redis.pttl('b')).toBe(-1);
    expect(await world.redis.pttl('forgottenOfB')).toBe(-1);
  });

  it('lists the types of the keys of a lock that fails', async () => {
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.set('text', 'of somebody else');
    await world.redis.rpush('list', 'of somebody else');
    expect(
      await world.run('renew-flight', ['a', 'forgotten', 'text', 'list'], ['PUBLISH', MINUTE, 'c:1', 'c:2']),
    ).toEqual([expect.any(Number), 1, [[expect.stringContaining('WRONGTYPE'), 'string', 'list']]]);
  });
});

describe('forget-result-4', () => {
  const world = new FlightWorld();

  it('deletes the result, and says whether there was one', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.keep({ ended: 1_000 });
    expect(await world.forget()).toBe(1);
    expect(await world.forget()).toBe(0);
    expect(await world.redis.keys('*')).toEqual([CLOCK]);
    expect(await world.redis.get(CLOCK)).toBe(String(AHEAD));
  });

  it('notes the first and the last reading at which results were forgotten while a run holds the lock', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.redis.hset('a', 'c:1', '1');
    await world.redis.pexpire('a', MINUTE);
    expect(await world.forget()).toBe(0);
    expect(await world.redis.get('forgotten')).toBe(`${AHEAD + 1},${AHEAD + 1}`);
    await world.forget();
    await world.forget();
    expect(await world.redis.get('forgotten')).toBe(`${AHEAD + 1},${AHEAD + 3}`);
    await world.expectLease('forgotten', MINUTE + 10_000);
    expect(await world.redis.pttl('forgotten')).toBeGreaterThan(MINUTE);
  });

  it.each([
    ['a run', () => world.redis.hset('a', 'c:1', '1')],
    ['a semaphore', () => world.redis.set('a', '3')],
  ])('keeps the note only for a time if the lock is %s without a lease', async (_what, prepare) => {
    await prepare();
    await world.forget();
    await world.expectLease('forgotten', 10_000);
  });

  it.each([1, undefined])('reads the time from the server when the clock says %s', async (clock) => {
    if (clock !== undefined) await world.redis.set(CLOCK, clock);
    await world.redis.hset('a', 'c:1', '1');
    const [seconds, micros] = (await world.redis.time()).map(Number);
    await world.forget();
    const [first, last] = ((await world.redis.get('forgotten')) as string).split(',').map(Number);
    expect(first).toBe(last);
    expect(first).toBeGreaterThanOrEqual(seconds * 1_000_000 + micros + (clock === undefined ? 150_000 : 0));
    expect(first).toBeLessThan((seconds + 100) * 1_000_000);
  });
});

describe('may-join-2', () => {
  const world = new FlightWorld();

  it('lets callers join a run that holds its lock, until results are forgotten', async () => {
    const join = () => world.run('may-join-2', ['a', 'forgotten'], ['c:1', 100]);
    expect(await join()).toBe(0);
    await world.redis.hset('a', 'c:1', '1');
    expect(await join()).toBe(1);
    await world.redis.set('forgotten', '90,100');
    expect(await join()).toBe(1);
    await world.redis.set('forgotten', '90,101');
    expect(await join()).toBe(0);
  });
});

describe('inspect-result-2', () => {
  const world = new FlightWorld();
  const inspect = () => world.run('inspect-result-2', [CLOCK, 'result']);

  it('shows the size of a result, and how long it is kept by the clock of tokens', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.keep({ ended: 1, kept: AHEAD + 5_000_000 });
    await world.redis.pexpire('result', MINUTE);
    expect(await inspect()).toEqual([5, 5_000]);
    await world.redis.hset('result', 'kept', AHEAD + 1);
    expect(await inspect()).toEqual([5, 1]);
    await world.redis.hset('result', 'kept', AHEAD);
    expect(await inspect()).toBeNull();
    await world.redis.hset('result', 'kept', AHEAD + 5_000_000);
    await world.redis.hdel('result', 'time');
    expect(await inspect()).toBeNull();
    await world.keep({ ended: AHEAD, kept: AHEAD + 5_000_000, age: 5_001 });
    expect(await inspect()).toBeNull();
    await world.redis.hdel('result', 'kept');
    expect(await inspect()).toBeNull();
  });

  it('counts by the time of the server where that is later than the clock of tokens', async () => {
    const [seconds, micros] = (await world.redis.time()).map(Number);
    await world.keep({ ended: 1, kept: seconds * 1_000_000 + micros + 60_000_000 });
    await world.redis.pexpire('result', 10 * MINUTE);
    const [size, left] = (await inspect()) as number[];
    expect(size).toBe(5);
    expect(left).toBeLessThanOrEqual(MINUTE);
    expect(left).toBeGreaterThan(MINUTE - 5_000);
    await world.redis.hset('result', 'kept', seconds * 1_000_000 + micros - 1);
    expect(await inspect()).toBeNull();
  });

  it('shows no longer time than the one for which the key exists', async () => {
    await world.redis.set(CLOCK, AHEAD);
    await world.keep({ ended: 1, kept: AHEAD + 1_000_000_000 });
    await world.redis.pexpire('result', MINUTE);
    const [, left] = (await inspect()) as number[];
    expect(left).toBeLessThanOrEqual(MINUTE);
  });
});
