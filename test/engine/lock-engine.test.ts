import { LockBusyError, LockConfigurationError, LockKeyError } from '../../lib/engine/errors.js';
import { FOREVER } from '../../lib/engine/terms/duration.js';
import { ms, openVirtualWorld } from '../support/lock-world.js';
import { errorOf } from '../support/section.js';

describe('an engine', () => {
  const world = openVirtualWorld();
  const PURPOSE = { group: 'jobs', method: 'Jobs.run', skips: false } as const;

  it('fills in the defaults of its service, and the purpose of the caller', async () => {
    const { engine } = (
      await world.process({
        waitTime: ms(7_000),
        outageTimeout: ms(3_000),
        watchdogTimeout: ms(20_000),
        onLost: 'warn',
        release: 'background',
      })
    ).locks;
    expect(engine.termsOf(undefined, PURPOSE)).toMatchObject({
      ...PURPOSE,
      waitTime: 7_000,
      outageTimeout: 3_000,
      leaseTime: 20_000,
      fixed: false,
      onLost: 'warn',
      release: 'background',
      reentry: true,
      tentative: false,
      dropsBusy: false,
    });
    expect(engine.termsOf({ waitTime: 5 }, PURPOSE)).toMatchObject({ waitTime: 5, outageTimeout: 3_000 });
    expect(engine.waitDefaults).toMatchObject({ waitTime: 7_000, outageTimeout: 3_000 });
    expect(engine.onLost).toBe('warn');
    const plain = (await world.process()).locks.engine;
    expect(plain.onLost).toBe('throw');
    expect(plain.termsOf(undefined, PURPOSE)).toMatchObject({ onLost: 'throw', waitTime: FOREVER, reentry: true });
  });

  it('confirms the release of a lease without a body, whatever the default of its service is', async () => {
    const { engine } = (await world.process({ onLost: 'warn', release: 'background' })).locks;
    const several = engine.several(['a', 'b'], {}, false, 'acquire()');
    expect(await several.takeMissing()).toBeUndefined();
    const leases = [
      several.createLease(),
      await engine.acquire('c'),
      await engine.tryAcquire('d'),
      await engine.acquireTentatively('e', {}, 'acquire()'),
    ];
    expect(leases.map((lease) => lease?.terms.release)).toEqual(Array(4).fill('confirmed'));
    const run = await engine.acquireToRun('f', undefined, 'withLock()');
    expect(run.terms.release).toBe('background');
    for (const lease of [...leases, run]) await lease?.release();
  });

  it('refuses options of bodies for leases without one, with the reason', async () => {
    const { locks, backend } = await world.process({ onLost: 'warn' });
    const { engine } = locks;
    for (const [options, option] of [
      [{ release: 'background' }, 'release'],
      [{ holdAtMost: '1s' }, 'holdAtMost'],
      [{ onLost: 'warn' }, 'onLost'],
    ] as [object, string][])
      for (const [what, acquiring] of [
        ['acquire()', engine.acquire('order', options)],
        ['tryAcquire()', engine.tryAcquire('order', options)],
      ] as const) {
        const error = await errorOf(acquiring);
        expect(error).toBeInstanceOf(LockConfigurationError);
        expect(error.message).toContain(
          `${what} of 'order': there is no option '${option}': it is for withLock() and decorated methods`,
        );
      }
    expect(backend.count()).toBe(0);
    await (await engine.acquireToRun('order', { release: 'background', holdAtMost: '1s' }, 'withLock()')).release();
  });

  it('tries once, unless a waitTime is given, and has null for a busy lock, whose error has no stack', async () => {
    const { locks, runtime } = await world.process();
    const { engine } = locks;
    const busy = await engine.acquire('order');
    const errors: Error[] = [];
    locks.on('failed', ({ error }) => errors.push(error));
    expect(await runtime.until(engine.tryAcquire('order'))).toBeNull();
    expect(runtime.monotonic()).toBe(0);
    expect(errors.map((error) => error.stack?.includes('at '))).toEqual([false]);
    expect(await runtime.until(engine.tryAcquire('order', { waitTime: 300 }))).toBeNull();
    expect(runtime.monotonic()).toBe(300);
    const full = await errorOf(engine.acquire('order', { waitTime: 0 }));
    expect(full).toBeInstanceOf(LockBusyError);
    expect(full.stack).toContain('at ');
    await busy.release();
  });

  it('rejects with the errors in names and options, and names the call', async () => {
    const { locks, backend } = await world.process();
    const { engine } = locks;
    for (const acquiring of [
      engine.acquire(''),
      engine.tryAcquire(''),
      engine.acquireToRun('', {}, 'withLock()'),
      engine.acquireTentatively('', {}, 'acquire()'),
      engine.acquireUnder('', engine.termsOf(undefined, PURPOSE), 'acquire()'),
    ])
      expect(await errorOf(acquiring)).toBeInstanceOf(LockKeyError);
    for (const [names, quoted] of [
      ['order', "'order'"],
      [['a', 'b'], "'a', 'b'"],
    ] as const) {
      const error = await errorOf(engine.acquireTentatively(names, { waitTime: -1 }, 'lock()'));
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(error.message).toContain(`lock() of ${quoted}: waitTime`);
    }
    expect(() => engine.several(['a'], { waitTime: -1 }, false, 'lock()')).toThrow("lock() of 'a': waitTime");
    expect(() => engine.termsOf({ waitTime: -1 }, PURPOSE)).toThrow('Jobs.run: waitTime');
    expect(backend.count()).toBe(0);
  });

  it('refuses several names with an option for one, which may be a list of one', async () => {
    const { engine } = (await world.process()).locks;
    for (const options of [{ permits: 2 }, { newest: true }] as const) {
      const error = await errorOf(engine.acquire(['a', 'b'], options));
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(error.message).toContain(`acquire() of 'a', 'b': ${Object.keys(options)[0]} is for one name`);
      await (await engine.acquire(['a'], options)).release();
    }
  });

  it('lets the wait of a caller that can do without the lock be no part of a deadlock', async () => {
    const { engine } = (await world.process()).locks;
    const terms: boolean[] = [];
    engine.services.deadlocks.add = (waiter) => void terms.push((waiter.terms as { tentative: boolean }).tentative);
    const busy = await engine.acquire('b');
    await engine.holdWhile(await engine.acquire('a'), async () => {
      const waiting = [engine.acquireTentatively('b', {}, 'lock()'), engine.acquire('b')];
      expect(terms).toEqual([true, false]);
      await busy.release();
      for (const next of waiting) await (await next).release();
    });
  });

  it('counts its unfinished work, and who waits for a name, whatever the type', async () => {
    const { locks, runtime } = await world.process();
    const { engine } = locks;
    const other = await world.process();
    const busy = [await other.locks.acquire('order'), await other.locks.acquire('queue', { type: 'fair' })];
    const idle = { queues: 0, leases: 0, severalLocks: 0, permitQueues: 0, changes: 0, renewedPermits: 0 };
    expect(engine.activity()).toEqual(idle);
    const mine = await locks.acquire('mine');
    const waiting = [
      locks.acquire('order'),
      locks.acquire('order'),
      locks.acquire('order', { type: 'fenced' }),
      locks.acquire('queue', { type: 'fair' }),
      locks.acquire(['order', 'stock']),
    ];
    await runtime.advance(100);
    expect([engine.waiting('order'), engine.waiting('queue'), engine.waiting('mine')]).toEqual([4, 1, 0]);
    expect(engine.activity()).toEqual({ ...idle, queues: 4, leases: 1, severalLocks: 1 });
    for (const lease of busy) await lease.release();
    await Promise.all(waiting.map(async (next) => (await runtime.until(next)).release()));
    await mine.release();
  });

  it('knows its own leases and owners', async () => {
    const [mine, other] = [(await world.process()).locks, (await world.process()).locks];
    const lease = await mine.acquire(['a', 'b']);
    const theirs = await other.acquire('c');
    const { engine } = mine;
    expect([engine.isMine(lease.owner), engine.isMine(theirs.owner)]).toEqual([true, false]);
    expect([lease, theirs].map((one) => engine.owns(one as never))).toEqual([true, false]);
    await lease.release();
    await theirs.release();
  });

  it('writes to the log of its service, and reports errors as events', async () => {
    const { locks, logger } = await world.process();
    const { engine } = locks;
    const lines: string[] = [];
    engine.log('nobody reads this');
    Object.assign(logger, { log: (line: string) => lines.push(line) });
    engine.log('connected');
    engine.warn('slow');
    engine.report(new Error('unheard'));
    const heard: Error[] = [];
    const off = locks.on('error', (error) => heard.push(error));
    const error = new Error('heard');
    engine.report(error);
    off();
    expect([lines, logger.warnings, logger.errors, heard]).toEqual([['connected'], ['slow'], ['unheard'], [error]]);
  });

  it('says whether it is shutting down', async () => {
    const { engine } = (await world.process()).locks;
    expect(engine.isEnding).toBe(false);
    engine.beginShutdown();
    expect(engine.isEnding).toBe(true);
    expect(() => engine.lead('cleaner', { onElected: async () => {} })).toThrow('lead(): the lock service is shutting');
  });

  it('acquires a lock in its own queue again after it proved to be lost in a scope', async () => {
    const { locks, runtime } = await world.process();
    const lost = errorOf(
      locks.withLock('order', { leaseTime: 1_000 }, async (outer) => {
        runtime.block(1_500);
        const again = await runtime.until(locks.acquire('order'));
        expect(again.owner).not.toBe(outer.owner);
        expect(locks.engine.services.heldLocks().map(({ owner }) => owner)).toEqual([again.owner]);
        expect(await locks.tryAcquire('order')).toBeNull();
        await again.release();
      }),
    );
    expect((await lost).name).toBe('LockLostError');
  });

  it('refuses a call whose signal was aborted before, without a request, for one name and for several', async () => {
    const { locks, backend } = await world.process();
    const signal = AbortSignal.abort(new Error('enough'));
    for (const [names, what] of [
      ['order', "the lock 'order'"],
      [['order', 'stock'], 'the locks order, stock'],
    ] as const) {
      const error = await errorOf(locks.engine.acquire(names, { signal }));
      expect(error.message).toBe(`Waiting for ${what} was aborted by the caller's signal`);
      expect(error).toMatchObject({ name: 'LockAbortedError', cause: new Error('enough') });
    }
    expect(backend.count()).toBe(0);
  });

  it('stands for election under the name of the method and the group that are given', async () => {
    const { locks, runtime } = await world.process({ waitTime: ms(1_000), onLost: 'warn' });
    const heard: unknown[] = [];
    locks.on('acquired', ({ name, group, method }) => heard.push([name, group, method]));
    const busy = await locks.acquire('cleaner');
    heard.length = 0;
    const onElected = ({ signal }: { signal: AbortSignal }) =>
      new Promise((resolve) => signal.addEventListener('abort', resolve));
    const leadership = locks.engine.lead('cleaner', { onElected, group: 'jobs' }, '@Leader', 'Cleaner.lead');
    await runtime.advance(5_000); // longer than a call waits by default
    expect([leadership.name, leadership.isLeader]).toEqual(['cleaner', false]);
    await busy.release();
    await runtime.settle();
    expect([leadership.isLeader, heard]).toEqual([true, [['cleaner', 'jobs', 'Cleaner.lead']]]);
    await runtime.until(leadership.stop());
    expect(() => locks.engine.lead('job:undefined', { onElected }, '@Leader')).toThrow(/^@Leader: the lock name/);
  });

  it('confirms the releases of single flights, whose purpose is that of the caller, where there are any', async () => {
    const { locks, backend } = await world.process({ onLost: 'warn', release: 'background', waitTime: ms(7_000) });
    const { engine } = locks;
    expect(engine.flightTermsOf({ keepFor: '1m', waitTime: 5 }, PURPOSE, 'singleFlight()')).toMatchObject({
      ...PURPOSE,
      type: 'flight',
      release: 'confirmed',
      keepFor: 60_000,
      waitTime: 5,
    });
    expect(await engine.forgetResult('prices')).toBe(false);
    Object.defineProperty(backend, 'flights', { value: undefined });
    expect(() => engine.flightTermsOf({}, PURPOSE, 'singleFlight()')).toThrow(LockConfigurationError);
    expect(() => engine.flightTermsOf({}, PURPOSE, 'singleFlight()')).toThrow(/singleFlight\(\)/);
    expect(await errorOf(engine.forgetResult('prices'))).toBeInstanceOf(LockConfigurationError);
  });
});
