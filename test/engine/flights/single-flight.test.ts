import {
  currentLease,
  LockBusyError,
  LockConfigurationError,
  LockDeadlockError,
  LockLostError,
  type LockService,
} from '../../../lib/core.js';
import { nothingIsLeft, openWorld, STORES } from '../../support/lock-world.js';
import { until } from '../../support/until.js';

/** A body that counts its runs and ends when the test lets it end. */
function slow<T>(result: T) {
  let runs = 0;
  let end!: () => void;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return {
    get runs() {
      return runs;
    },
    end: () => end(),
    body: async () => {
      runs++;
      await ended;
      return result as never;
    },
  };
}

const settled = (work: Promise<unknown>) => work.then(String, ({ name, message }: Error) => `${name}: ${message}`);
const waits = (locks: LockService, name: string, count: number) => until(() => locks.engine.waiting(name) === count);

describe.each(STORES)('a single flight in %s', (store) => {
  const world = openWorld(store);

  it('runs once for callers of several processes, who all get a copy of the result', async () => {
    const [ann, bob, cem] = await world.processes(3);
    const flight = slow({ price: 7, list: ['a', null, { deep: true }] });
    const calls = [ann.locks.singleFlight('price', flight.body)];
    await until(() => flight.runs === 1);
    for (const { locks } of [ann, ann, bob, bob, cem]) calls.push(locks.singleFlight('price', flight.body));
    await Promise.all([waits(ann.locks, 'price', 2), waits(bob.locks, 'price', 2), waits(cem.locks, 'price', 1)]);
    await until(() => bob.backend.isAsleep && cem.backend.isAsleep && ann.backend.underWay === 0);
    flight.end();
    const results = await Promise.all(calls);
    expect(results).toEqual(Array(6).fill({ price: 7, list: ['a', null, { deep: true }] }));
    expect(new Set(results).size).toBe(6);
    expect(flight.runs).toBe(1);
    for (const process of [ann, bob, cem]) await nothingIsLeft(process);
  });

  it('runs again for those who ask after it has ended', async () => {
    const [ann, bob] = await world.services(2);
    let runs = 0;
    for (const locks of [ann, ann, bob]) expect(await locks.singleFlight('n', async () => ++runs)).toBeLessThan(4);
    expect(runs).toBe(3);
  });

  it('keeps its result for keepFor, in all processes, until it is forgotten', async () => {
    const [ann, bob] = await world.services(2);
    let runs = 0;
    const ask = (locks: LockService) => locks.singleFlight('n', { keepFor: '1m' }, async () => ++runs);
    expect([await ask(ann), await ask(bob), await ask(ann)]).toEqual([1, 1, 1]);
    expect(await bob.forgetResult('n')).toBe(true);
    expect(await bob.forgetResult('n')).toBe(false);
    expect([await ask(ann), await ask(bob)]).toEqual([2, 2]);
  });

  it('never gives a price of before forgetResult() to those who ask after it', async () => {
    const [ann, bob, cem] = await world.processes(3);
    let price = 1;
    let go!: () => void;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    let runs = 0;
    const read = async () => {
      const read = price;
      if (++runs === 1) await gate;
      return read;
    };
    const ask = ({ locks }: typeof ann) => locks.singleFlight('price', { keepFor: '1m' }, read);
    const early = [ask(ann)];
    await until(() => runs === 1);
    early.push(ask(bob), ask(ann));
    await Promise.all([waits(bob.locks, 'price', 1), waits(ann.locks, 'price', 1)]);
    await until(() => bob.backend.isAsleep && ann.backend.underWay === 0);
    price = 2;
    await cem.locks.forgetResult('price');
    const late = [ask(ann), ask(bob), ask(cem)];
    await Promise.all([waits(bob.locks, 'price', 2), waits(ann.locks, 'price', 2), waits(cem.locks, 'price', 1)]);
    await until(() => bob.backend.isAsleep && cem.backend.isAsleep && ann.backend.underWay === 0);
    go();
    expect(await Promise.all(early)).toEqual([1, 1, 1]);
    expect(await Promise.all(late)).toEqual([2, 2, 2]);
    expect(runs).toBe(2);
    expect(await ask(cem)).toBe(2);
  });

  it('passes an error on in its process, and lets another process run', async () => {
    const [ann, bob] = await world.processes(2);
    const flight = slow(0);
    const fails = async () => {
      await flight.body();
      throw new Error('no prices today');
    };
    const own = [settled(ann.locks.singleFlight('price', fails))];
    await until(() => flight.runs === 1);
    own.push(settled(ann.locks.singleFlight('price', fails)));
    const other = bob.locks.singleFlight('price', async () => 5);
    await Promise.all([waits(ann.locks, 'price', 1), waits(bob.locks, 'price', 1)]);
    await until(() => bob.backend.isAsleep && ann.backend.underWay === 0);
    flight.end();
    expect(await Promise.all(own)).toEqual(Array(2).fill('Error: no prices today'));
    expect(await other).toBe(5);
    expect(flight.runs).toBe(1);
  });

  it('and withLock of its name exclude each other', async () => {
    const [ann, bob] = await world.services(2);
    const lease = await ann.acquire('order');
    await expect(bob.singleFlight('order', { waitTime: 0 }, async () => 1)).rejects.toThrow(LockBusyError);
    await lease.release();
    expect(await bob.singleFlight('order', async () => (await ann.isLocked('order')) as boolean)).toBe(true);
  });

  it('stores nothing when it has lost its lock, and whoever joined it runs', async () => {
    const [ann, bob] = await world.processes(2);
    const flight = slow(1);
    const own = settled(ann.locks.singleFlight('price', { keepFor: '1m' }, flight.body));
    await until(() => flight.runs === 1);
    const joined = ann.locks.singleFlight('price', { keepFor: '1m' }, async () => 2);
    await waits(ann.locks, 'price', 1);
    await bob.locks.forceRelease('price');
    await ann.locks.forceRelease('price');
    flight.end();
    expect(await own).toContain(LockLostError.brand);
    expect(await joined).toBe(2);
    expect(await bob.locks.singleFlight('price', { keepFor: '1m' }, async () => 3)).toBe(2);
  });

  it('refuses a call from inside, and from inside a lock of its name', async () => {
    const locks = await world.service();
    const inside = () => locks.singleFlight('a', async () => 1);
    await expect(locks.singleFlight('a', inside)).rejects.toThrow(LockDeadlockError);
    await expect(locks.withLock('a', inside)).rejects.toThrow(LockDeadlockError);
    expect(await locks.singleFlight('b', inside)).toBe(1);
  });

  it('has a lease, and takes its lock for the body again', async () => {
    const locks = await world.service();
    const token = await locks.singleFlight('a', async ({ fencingToken }) => {
      expect(currentLease('a')?.fencingToken).toBe(fencingToken);
      return locks.withLock('a', async (lease) => lease.fencingToken);
    });
    expect(token).toBeGreaterThan(0);
  });

  it('ends one wait by waitTime and by signal, and continues for the others', async () => {
    const [ann, bob] = await world.processes(2);
    const flight = slow('done');
    const own = ann.locks.singleFlight('a', flight.body);
    await until(() => flight.runs === 1);
    const stop = new AbortController();
    const aborted = settled(bob.locks.singleFlight('a', { signal: stop.signal }, flight.body));
    const stays = bob.locks.singleFlight('a', flight.body);
    await waits(bob.locks, 'a', 2);
    await until(() => bob.backend.isAsleep);
    stop.abort();
    expect(await aborted).toMatch(/^LockAbortedError/);
    for (const { locks } of [ann, bob])
      expect(await settled(locks.singleFlight('a', { waitTime: 20 }, flight.body))).toMatch(/^LockBusyError/);
    flight.end();
    expect(await Promise.all([own, stays])).toEqual(['done', 'done']);
    expect(flight.runs).toBe(1);
  });

  it('gives a result that is too large to its own callers, with a warning', async () => {
    const [ann, bob] = await world.processes(2);
    const large = 'x'.repeat(100);
    const options = { keepFor: '1m', maxSize: 50 } as const;
    let runs = 0;
    const body = async () => `${++runs}${large}`;
    expect(await ann.locks.singleFlight('a', options, body)).toBe(`1${large}`);
    expect(ann.logger.warnings).toEqual([expect.stringContaining('maxSize')]);
    expect(await bob.locks.singleFlight('a', options, body)).toBe(`2${large}`);
  });

  it.each([
    ['a Date', { at: new Date(0) }, 'result.at is a Date'],
    ['a Map in a list', [1, new Map()], 'result[1] is a Map'],
    ['undefined inside', { a: { b: undefined } }, 'result.a.b is undefined'],
    ['NaN', { n: Number.NaN }, 'result.n is NaN'],
  ])('refuses %s, naming the path', async (_, result, path) => {
    const locks = await world.service();
    const call = locks.singleFlight('a', async () => result as never);
    await expect(call).rejects.toThrow(LockConfigurationError);
    await expect(call).rejects.toThrow(path);
  });

  it('passes nothing on, and what a serializer makes of others', async () => {
    const [ann, bob] = await world.services(2);
    expect(await ann.singleFlight('nothing', { keepFor: '1m' }, async () => {})).toBeUndefined();
    expect(await bob.singleFlight('nothing', { keepFor: '1m' }, async () => 5 as number)).toBeUndefined();
    const options = {
      keepFor: '1m',
      serialize: (date: Date) => date.toISOString(),
      deserialize: (text: string) => new Date(text),
    } as const;
    const date = new Date(1_234_567);
    for (const locks of [ann, bob]) expect(await locks.singleFlight('date', options, async () => date)).toEqual(date);
  });

  it('reports a shared result to listeners', async () => {
    const [ann, bob] = await world.services(2);
    const events: string[] = [];
    for (const event of ['acquired', 'shared', 'released'] as const)
      for (const locks of [ann, bob]) locks.on(event, ({ name, type }) => events.push(`${event} ${type} ${name}`));
    for (const locks of [ann, bob]) await locks.singleFlight('a', { keepFor: '1m' }, async () => 1);
    expect(events).toEqual(['acquired flight a', 'released flight a', 'shared flight a']);
  });
});
