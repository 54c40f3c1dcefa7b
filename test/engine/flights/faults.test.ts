import { setTimeout as sleep } from 'node:timers/promises';
import type { LockService } from '../../../lib/core.js';
import { openWorld } from '../../support/lock-world.js';
import { until } from '../../support/until.js';
import { answerLost, type Disturbance } from '../../support/watched/watched-backend.js';

/** Executes the first `count` commands and loses their answers. */
const firstAnswersLost = (count: number): Disturbance => {
  let left = count;
  return (execute, request) => (left-- > 0 ? answerLost(execute, request) : execute());
};

/** A body that counts its runs and waits for its end. */
function gated() {
  let end!: () => void;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const state = { runs: 0, end: () => end() };
  const body = async () => {
    state.runs++;
    await ended;
    return state.runs;
  };
  return Object.assign(state, { body });
}

describe('a result that Redis refuses', () => {
  const world = openWorld('Redis');
  const resultKey = (name: string) => `nestjs_redis_lock_result:{${world.keyPrefix}${name}}`;
  const ask = (locks: LockService, body: () => Promise<number>) => locks.singleFlight('a', { keepFor: '1m' }, body);

  it('for lack of memory goes to its own callers, and the lock is released, and waiters are told', async () => {
    const [ann, bob] = await world.processes(2);
    const admin = world.redis.client();
    const flight = gated();
    const own = ask(ann.locks, flight.body);
    await until(() => flight.runs === 1);
    const joined = ask(ann.locks, flight.body);
    const other = ask(bob.locks, async () => 7);
    await until(() => bob.backend.isAsleep && ann.locks.engine.waiting('a') === 1 && ann.backend.underWay === 0);
    try {
      await admin.config('SET', 'maxmemory', '1');
      flight.end();
      expect(await Promise.all([own, joined])).toEqual([1, 1]);
      expect(ann.logger.warnings).toEqual([expect.stringMatching(/could not be stored: Redis has no memory left/)]);
      expect(await bob.locks.isLocked('a')).toBe(false);
      expect(await admin.exists(resultKey('a'))).toBe(0);
    } finally {
      await admin.config('SET', 'maxmemory', '0');
    }
    expect(await other).toBe(7);
    expect(flight.runs).toBe(1);
  });

  it('because its key is of another type goes to its own callers, and the others run', async () => {
    const [ann, bob] = await world.processes(2);
    const admin = world.redis.client();
    await admin.set(resultKey('a'), 'foreign');
    const flight = gated();
    const own = ask(ann.locks, flight.body);
    await until(() => flight.runs === 1);
    const other = ask(bob.locks, async () => 7);
    await until(() => bob.backend.isAsleep);
    flight.end();
    expect(await own).toBe(1);
    expect(await other).toBe(7);
    for (const { logger } of [ann, bob])
      expect(logger.warnings).toEqual([expect.stringMatching(/could not be stored: Redis refused it: WRONGTYPE/)]);
    expect(await admin.get(resultKey('a'))).toBe('foreign');
    expect(await bob.locks.isLocked('a')).toBe(false);
  });

  it('does not keep its lock because a note beside it is of another type', async () => {
    const locks = await world.service();
    const admin = world.redis.client();
    const flight = gated();
    const own = ask(locks, flight.body);
    await until(() => flight.runs === 1);
    await admin.lpush(`nestjs_redis_lock_forgotten:{${world.keyPrefix}a}`, 'foreign');
    flight.end();
    expect(await own).toBe(1);
    expect(await locks.isLocked('a')).toBe(false);
    expect(await ask(locks, async () => 7)).toBe(1);
  });
});

describe('answers that get lost', () => {
  const world = openWorld('Redis');

  it.each([1, 2])('of %d releases: the result is stored once, and everybody gets it', async (count) => {
    const [ann, bob] = await world.processes(2);
    ann.backend.disturb(firstAnswersLost(count), 'release');
    const flight = gated();
    const own = ann.locks.singleFlight('a', { keepFor: '1m' }, flight.body);
    await until(() => flight.runs === 1);
    const other = bob.locks.singleFlight('a', { keepFor: '1m' }, flight.body);
    await until(() => bob.backend.isAsleep);
    flight.end();
    expect(await Promise.all([own, other])).toEqual([1, 1]);
    expect(flight.runs).toBe(1);
    await until(() => ann.backend.underWay === 0);
    expect(await bob.locks.isLocked('a')).toBe(false);
  });

  it('of a release, after Redis has lost the lock: nobody gets a result that was forgotten meanwhile', async () => {
    const [ann, bob] = await world.processes(2);
    ann.backend.disturb(firstAnswersLost(1), 'release');
    const flight = gated();
    const own = ann.locks.singleFlight('a', { keepFor: '1m' }, flight.body);
    await until(() => flight.runs === 1);
    await world.redis.client().flushall();
    await bob.locks.forgetResult('a'); // finds no lock, so it leaves no note for the run
    const late = ann.locks.singleFlight('a', { keepFor: '1m' }, async () => 7);
    await until(() => ann.locks.engine.waiting('a') === 1 && ann.backend.underWay === 0);
    flight.end();
    expect(await late).toBe(7);
    await own;
  });

  it('of questions: nobody runs twice, and no lock stays behind', async () => {
    const [ann, bob] = await world.processes(2);
    for (const { backend } of [ann, bob]) backend.disturb(firstAnswersLost(1), 'acquire');
    let runs = 0;
    let inside = 0;
    let most = 0;
    const body = async () => {
      most = Math.max(most, ++inside);
      await sleep(20);
      inside--;
      return ++runs;
    };
    const calls = [ann, bob, ann, bob].map(({ locks }) => locks.singleFlight('a', { keepFor: '1m' }, body));
    expect(new Set(await Promise.all(calls))).toEqual(new Set([1]));
    expect([runs, most]).toEqual([1, 1]);
    await until(async () => !(await ann.locks.isLocked('a')));
  });
});

describe('the race of a version made by hand', () => {
  const world = openWorld('Redis');

  /** The usual handwritten version: `withLock` releases the lock, and then the result is stored. */
  async function byHand(
    locks: LockService,
    store: Map<string, number>,
    body: () => Promise<number>,
    beforeStore: () => Promise<void>,
  ) {
    const known = store.get('a');
    if (known !== undefined) return known;
    const result = await locks.withLock('a', async () => store.get('a') ?? body());
    await beforeStore();
    store.set('a', result);
    return result;
  }

  it('lets a second caller run between the release and the store', async () => {
    const [ann, bob] = await world.processes(2);
    const store = new Map<string, number>();
    let runs = 0;
    const body = async () => ++runs;
    let storeNow!: () => void;
    const slow = new Promise<void>((resolve) => {
      storeNow = resolve;
    });
    const first = byHand(ann.locks, store, body, () => slow);
    await until(async () => runs === 1 && !(await bob.locks.isLocked('a')));
    const second = byHand(bob.locks, store, body, async () => {});
    expect(await second).toBe(2);
    storeNow();
    await first;
    expect(runs).toBe(2);
  });

  it('is absent from a single flight: whoever finds the lock free finds the result', async () => {
    const [ann, bob] = await world.processes(2);
    for (let round = 1; round <= 200; round++) {
      let runs = 0;
      const body = async () => ++runs;
      const name = `round:${round}`;
      const first = ann.locks.singleFlight(name, { keepFor: '1m' }, body);
      // The first moment at which it is free again.
      await until(async () => runs === 1 && !(await bob.locks.isLocked(name)));
      expect(await bob.locks.singleFlight(name, { keepFor: '1m' }, body)).toBe(1);
      expect(await first).toBe(1);
      expect(runs).toBe(1);
    }
  });
});
