import { openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, answerLost, refused } from '../../support/watched/watched-backend.js';

const LEASE = 30_000;

describe('the callers of a single flight in one process ask the backend', () => {
  const world = openVirtualWorld();

  /** Another process runs until the test lets it end. */
  const running = async (options = {}) => {
    const [other, process] = [await world.process(), await world.process()];
    const end = latch();
    const run = other.locks.singleFlight('price', options, async () => {
      await end.promise;
      return 'theirs';
    });
    await world.runtime.settle();
    const call = (more = {}) => process.locks.singleFlight('price', more, async () => 'ours');
    return { ...process, other, run, end: () => end.open(), call, asked: () => process.backend.count('acquire') };
  };

  it('as soon as each comes while another process runs, and then rest', async () => {
    const { call, asked, runtime, run, end } = await running();
    const calls = [call(), call(), call()];
    await runtime.settle();
    const atFirst = asked();
    await runtime.advance(25_000);
    expect(asked()).toBe(atFirst);
    end();
    expect(await runtime.until(Promise.all([run, ...calls]))).toEqual(Array(4).fill('theirs'));
    expect(asked()).toBe(atFirst + 1); // once for all of them
  });

  it('when the lease of the other one has ended', async () => {
    const { call, asked, runtime, run, end } = await running({ leaseTime: '5s' });
    const ours = call();
    await runtime.settle();
    const before = asked();
    await runtime.advance(4_900);
    expect(asked()).toBe(before);
    await runtime.advance(200);
    expect(await runtime.until(ours)).toBe('ours');
    end();
    expect((await errorOf(run)).name).toBe('LockLostError');
  });

  it('once if they try once, and are refused, which the others are not', async () => {
    const { call, runtime, run, end } = await running();
    const waits = call();
    await runtime.settle();
    expect((await runtime.until(errorOf(call({ waitTime: 0 })))).name).toBe('LockBusyError');
    end();
    expect(await runtime.until(Promise.all([waits, run]))).toEqual(['theirs', 'theirs']);
  });

  it('and name the holder when their time ends', async () => {
    const { call, runtime, run, end } = await running();
    expect(await runtime.until(errorOf(call({ waitTime: 500 })))).toMatchObject({
      name: 'LockBusyError',
      remainingTime: LEASE - 500,
    });
    end();
    await run;
  });

  it('and leave nothing behind when the last of them leaves', async () => {
    const { call, runtime, backend, locks, run, end } = await running();
    const abort = new AbortController();
    const left = errorOf(call({ signal: abort.signal }));
    await runtime.settle();
    abort.abort();
    await left;
    await runtime.settle();
    expect([backend.subscriptions, locks.engine.activity().queues]).toEqual([0, 0]);
    end();
    await run;
  });

  it('and are in the log if they wait for long: for another process, or for a run of their own', async () => {
    const { call, runtime, logger, other, run, end } = await running();
    const waits = [call(), other.locks.singleFlight('price', async () => 'ours')];
    await runtime.advance(31_000);
    for (const { warnings } of [logger, other.logger])
      expect(warnings).toEqual([
        expect.stringMatching(/^A caller has waited for the single flight 'price' for over 30 s; held by /),
      ]);
    end();
    await runtime.until(Promise.all([run, ...waits]));
  });

  it('again after pauses that grow when it gives no answer, and as another owner if the lock may have been taken', async () => {
    const { locks, backend, runtime, logger } = await world.process();
    const times: number[] = [];
    const owners: string[] = [];
    backend.disturb(async (execute, request) => {
      times.push(runtime.monotonic());
      owners.push((request as { owner: string }).owner);
      if (times.length > 5) return execute();
      return times.length === 1 ? answerLost(execute, request) : refused(execute, request);
    }, 'acquire');
    expect(await runtime.until(locks.singleFlight('price', async () => 'ours'))).toBe('ours');
    const pauses = times.slice(1).map((time, n) => time - times[n]);
    expect(pauses[0]).toBeLessThanOrEqual(50);
    expect(pauses[4]).toBeGreaterThanOrEqual(400);
    expect(new Set(owners).size).toBe(2);
    expect(logger.errors.length).toBeLessThanOrEqual(1);
  });

  it('not while one of them runs, but once for those that have come since', async () => {
    const { locks, backend, runtime } = await world.process();
    const end = latch();
    const run = locks.singleFlight('price', async () => {
      await end.promise;
      return 'ours';
    });
    await runtime.settle();
    const asked = backend.count();
    const joined = Array.from({ length: 50 }, () => locks.singleFlight('price', async () => 'theirs'));
    await runtime.settle();
    expect(backend.count() - asked).toBe(2); // for the first of them, and for those that came meanwhile
    expect((await runtime.until(errorOf(locks.singleFlight('price', { waitTime: 0 }, async () => '')))).name).toBe(
      'LockBusyError',
    );
    end.open();
    expect(await runtime.until(Promise.all([run, ...joined]))).toEqual(Array(51).fill('ours'));
  });

  it('not while a release of theirs has no answer', async () => {
    const { locks, backend, runtime } = await world.process();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'release');
    const first = locks.singleFlight('price', async () => 'first');
    await runtime.settle();
    const second = locks.singleFlight('price', async () => 'second');
    await runtime.settle();
    expect(backend.count('acquire')).toBe(1);
    answer.open();
    expect(await runtime.until(Promise.all([first, second]))).toEqual(['first', 'second']);
  });

  it('and give the lock back that one gets who has left', async () => {
    const { locks, backend, runtime } = await world.process();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const abort = new AbortController();
    const left = errorOf(locks.singleFlight('price', { signal: abort.signal }, async () => 'ours'));
    await runtime.settle();
    abort.abort();
    await left;
    answer.open();
    await runtime.settle();
    expect([backend.count('release'), await locks.isLocked('price')]).toEqual([1, false]);
  });
});
