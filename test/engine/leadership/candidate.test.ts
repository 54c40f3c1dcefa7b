import { LockAbortedError, LockConfigurationError } from '../../../lib/engine/errors.js';
import { type Acquire, Candidate, checkLeadOptions, standByTerms } from '../../../lib/engine/leadership/candidate.js';
import type { LeadOptions } from '../../../lib/engine/leadership/leadership.js';
import type { Lease } from '../../../lib/engine/lease.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { DEFAULT_TERMS } from '../../../lib/engine/terms/lock-options.js';
import { ms, openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';

describe('a candidate for leadership', () => {
  const world = openVirtualWorld();
  const SHUTDOWN = 2_000;

  const open = async (options: Partial<LeadOptions>, acquireBy?: (acquire: Acquire) => Acquire) => {
    const process = await world.process();
    const { locks, logger } = process;
    const { services } = locks.engine;
    const lines: string[] = [];
    Object.assign(logger, { log: (line: string) => lines.push(line) });
    const errors: Error[] = [];
    locks.on('error', (error) => errors.push(error));
    const acquire: Acquire = (signal) => locks.engine.acquire('cleaner', { signal });
    const lead = { onElected: async () => {}, ...options };
    const by = acquireBy?.(acquire) ?? acquire;
    const candidate = new Candidate(services, 'cleaner', lead, by, SHUTDOWN);
    const another = (method: string, name = 'cleaner') => new Candidate(services, name, lead, by, SHUTDOWN, method);
    return { another, ...process, services, candidate, lines, errors };
  };
  const untilAborted = ({ signal }: Lease) =>
    new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  const never = () => new Promise<void>(() => {});

  it('writes one line when it begins to lead, and one when it no longer leads', async () => {
    const { candidate, runtime, lines, logger } = await open({ onElected: untilAborted });
    expect(candidate.isLeader).toBe(false);
    candidate.start();
    await runtime.settle();
    expect([candidate.isLeader, lines]).toEqual([
      true,
      [expect.stringMatching(/^Now leads 'cleaner' with the fencing token \d+$/)],
    ]);
    await world.runtime.until(candidate.stop());
    expect([candidate.isLeader, lines.slice(1)]).toEqual([false, ["No longer leads 'cleaner'"]]);
    expect([...logger.warnings, ...logger.errors]).toEqual([]);
  });

  it('belongs to the work of the service until it has stopped', async () => {
    const { candidate, services } = await open({ onElected: untilAborted });
    candidate.start();
    expect([...services.work.candidates]).toEqual([candidate]);
    await world.runtime.until(candidate.stop());
    expect(services.work.candidates.size).toBe(0);
  });

  it('stops once, however often it is asked to', async () => {
    const reasons: unknown[] = [];
    let revoked = 0;
    const { candidate, runtime } = await open({
      onElected: async (lease) => {
        await untilAborted(lease);
        reasons.push(lease.signal.reason);
      },
      onRevoked: () => void revoked++,
    });
    candidate.start();
    await runtime.settle();
    const stopped = candidate.stop();
    expect(candidate.stop()).toBe(stopped);
    expect(candidate[Symbol.asyncDispose]()).toBe(stopped);
    await world.runtime.until(stopped);
    await world.runtime.until(candidate.stop());
    expect(revoked).toBe(1);
    expect(reasons).toEqual([new LockAbortedError("The leadership of 'cleaner' was stopped", 'cleaner')]);
    await runtime.advance(60_000);
    expect([runtime.keepAliveTimers, revoked]).toEqual([0, 1]);
  });

  it('does not lead if it was stopped before it learned that it had got the lock, and gives the lock back', async () => {
    const answer = latch();
    const calls: string[] = [];
    const { candidate, runtime, locks, lines } = await open(
      { onElected: async () => void calls.push('elected'), onRevoked: () => void calls.push('revoked') },
      () => async () => {
        const lease = await locks.engine.acquire('cleaner');
        await answer.promise;
        return lease;
      },
    );
    candidate.start();
    await runtime.settle();
    const stopped = candidate.stop();
    answer.open();
    await world.runtime.until(stopped);
    expect([calls, lines, await locks.isLocked('cleaner')]).toEqual([[], [], false]);
  });

  it('reports that it could not stand for election, and tries again, but not after it was stopped', async () => {
    const failure = new Error('no answer');
    let tries = 0;
    const { candidate, runtime, errors } = await open({}, () => async (signal) => {
      if (tries++ === 0) throw failure;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      throw signal.reason;
    });
    candidate.start();
    await runtime.settle();
    expect(errors).toMatchObject([
      {
        message: "The leader of 'cleaner' could not stand for election, and will try again: no answer",
        lockName: 'cleaner',
        cause: failure,
      },
    ]);
    await runtime.advance(499);
    expect(tries).toBe(1);
    await runtime.advance(502);
    expect(tries).toBe(2);
    await world.runtime.until(candidate.stop());
    expect(errors).toHaveLength(1);
  });

  it('pauses for a second at most after a leadership of more than 30 s, and longer after shorter ones', async () => {
    const times: number[] = [];
    let lasts = 0;
    const { candidate, runtime } = await open({
      onElected: async () => {
        times.push(runtime.monotonic());
        await new Promise<void>((resolve) => void runtime.timer(lasts, resolve));
      },
    });
    runtime.random = () => 1;
    candidate.start();
    await runtime.advance(8_000);
    expect(times).toEqual([0, 1_000, 3_000, 7_000]);
    lasts = 30_000; // no longer than the longest pause
    await runtime.advance(8_000);
    expect(times.slice(4)).toEqual([15_000]);
    await runtime.advance(30_000 + 16_000);
    expect(times.slice(5)).toEqual([61_000]);
    lasts = 30_001;
    await runtime.advance(30_000 + 30_000); // 122 s; the next election is at 121 s
    expect(times.slice(6)).toEqual([121_000]);
    await runtime.advance(30_001 + 1_000);
    expect(times.slice(7)).toEqual([121_000 + 30_001 + 1_000]);
    lasts = 0;
    await runtime.until(candidate.stop());
  });

  it('warns that its body still runs ten seconds after its signal was aborted, but not of one that has ended', async () => {
    const bodies = [latch(), latch()];
    let elections = 0;
    const { candidate, runtime, locks, logger } = await open({ onElected: () => bodies[elections++].promise });
    candidate.start();
    await runtime.settle();
    await locks.forceRelease('cleaner');
    await runtime.advance(9_000);
    bodies[0].open();
    await runtime.advance(9_000);
    expect(logger.warnings.filter((line) => line.includes('still runs'))).toEqual([]);
    expect(elections).toBe(2);
    await locks.forceRelease('cleaner');
    await runtime.advance(9_999);
    expect(logger.warnings.filter((line) => line.includes('still runs'))).toEqual([]);
    await runtime.advance(1);
    expect(logger.warnings.filter((line) => line.includes('still runs 10 s after'))).toHaveLength(1);
    bodies[1].open();
    await runtime.settle();
    await runtime.until(candidate.stop());
  });

  it('warns once of a body that returns within a second, three times in a row', async () => {
    let elections = 0;
    const { another, runtime, logger } = await open({ onElected: async () => void elections++ });
    const candidate = another('Cleaner.start');
    candidate.start();
    await runtime.settle();
    while (elections < 3) {
      expect(logger.warnings).toEqual([]);
      await runtime.advance(100);
    }
    const warnings = [
      "Cleaner.start returned within 1 s of its election 3 times in a row. This process leads 'cleaner' only while its promise is pending, then resigns and stands for election again. Let it run until lease.signal aborts. Work that ends needs @DistributedLock or withLock() instead. This is logged once",
    ];
    expect(logger.warnings).toEqual(warnings);
    await runtime.advance(600_000);
    expect(elections).toBeGreaterThan(6);
    expect(logger.warnings).toEqual(warnings);
    await world.runtime.until(candidate.stop());
  });

  const pass = (time: number) => new Promise<void>((resolve) => world.runtime.timer(time, resolve));
  it.each<[string, (elections: number) => Promise<unknown>]>([
    ['takes a second', () => pass(1_000)],
    ['throws', () => Promise.reject(new Error('failed'))],
    ['takes longer every third time', async (elections) => elections % 3 === 0 && pass(2_000)],
  ])('does not warn of a body that returns, but %s', async (_, body) => {
    let elections = 0;
    const { candidate, runtime, logger } = await open({ onElected: () => body(++elections) });
    candidate.start();
    await runtime.advance(600_000);
    expect(elections).toBeGreaterThan(6);
    expect(logger.warnings).toEqual([]);
    await world.runtime.until(candidate.stop());
  });

  it('warns once of decorated methods with the same name, of which only one runs', async () => {
    const { another, candidate, logger } = await open({ onElected: untilAborted });
    const all = [candidate, another('A.one'), another('A.one'), another('B.two', 'other'), another('B.two')];
    for (const each of all.slice(0, 4)) each.start();
    expect(logger.warnings).toEqual([]);
    all[4].start();
    another('C.three').start();
    expect(logger.warnings).toEqual([
      "B.two and A.one both have @Leader with the name 'cleaner'. A name has one leader, so one of them does not run as long as the other one leads. Give each method a name of its own. This is logged once",
    ]);
  });

  it('gives up the lock of a body that does not end within shutdownTimeout, without a release', async () => {
    const { candidate, runtime, backend, services, logger, locks } = await open({ onElected: never });
    candidate.start();
    await runtime.settle();
    const lease = [...services.work.leases][0];
    expect(candidate.isLeader).toBe(true);
    const stopped = candidate.stop();
    expect(candidate.isLeader).toBe(false);
    await runtime.advance(SHUTDOWN - 1);
    expect(logger.warnings).toEqual([]);
    await runtime.until(stopped);
    expect(runtime.monotonic()).toBe(SHUTDOWN);
    expect(logger.warnings).toEqual([
      "The leader of 'cleaner' still runs 2000 ms after it was asked to stop. Its lock is not renewed any more, and ends with its lease",
    ]);
    expect([backend.count('release'), services.work.leases.length]).toEqual([0, 0]);
    expect(lease.locks[0].abandoned).toBeInstanceOf(LockAbortedError);
    await runtime.advance(25_000);
    expect([backend.count('renew'), await locks.isLocked('cleaner')]).toEqual([0, true]);
    await runtime.advance(5_000);
    expect(await locks.isLocked('cleaner')).toBe(false);
  });

  it('does not warn of a body that has ended when the answer to the release of its lock takes long', async () => {
    let revoked = 0;
    const { candidate, runtime, backend, logger } = await open({
      onElected: untilAborted,
      onRevoked: () => void revoked++,
    });
    candidate.start();
    await runtime.settle();
    const answer = latch();
    backend.disturb(async (execute) => {
      await answer.promise;
      return execute();
    }, 'release');
    await runtime.until(candidate.stop());
    expect([runtime.monotonic(), logger.warnings, revoked]).toEqual([SHUTDOWN, [], 1]);
    answer.open();
    await runtime.settle();
    expect(revoked).toBe(1);
  });

  it('waits no longer than shutdownTimeout for onRevoked, without a warning if the body had ended in time', async () => {
    const { candidate, runtime, logger } = await open({ onElected: async () => {}, onRevoked: never });
    candidate.start();
    await runtime.settle();
    await runtime.until(candidate.stop());
    expect([runtime.monotonic(), logger.warnings]).toEqual([SHUTDOWN, []]);
  });

  it.each(['onElected', 'onRevoked'] as const)('does not wait for itself when it is stopped in %s', async (where) => {
    const stops: number[] = [];
    const stop = async () => {
      await candidate.stop();
      stops.push(runtime.monotonic());
    };
    const { candidate, runtime } = await open({ onElected: async () => {}, [where]: () => stop() });
    expect(candidate.waitsForCaller).toBe(false);
    candidate.start();
    await runtime.settle();
    expect(stops).toEqual([0]);
    expect(candidate.waitsForCaller).toBe(false);
    await runtime.until(candidate.stop(), 10);
  });

  it('is awaited by code that the body has started but that runs elsewhere, and by other bodies', async () => {
    const { candidate, runtime, locks } = await open({ onElected: untilAborted, onRevoked: async () => {} });
    candidate.start();
    await runtime.settle();
    const other = locks.withLock('other', async () => {
      expect(candidate.waitsForCaller).toBe(false);
      await candidate.stop();
    });
    await runtime.until(other);
  });

  it('reports what its body throws, except for the loss of its lock', async () => {
    const failures = [new Error('no disk'), undefined];
    const { candidate, runtime, errors, locks, logger } = await open({
      onElected: async (lease) => {
        const failure = failures.shift();
        if (failure !== undefined) throw failure;
        await untilAborted(lease);
        throw lease.signal.reason;
      },
    });
    candidate.start();
    await runtime.advance(1_100);
    expect(errors.map(({ message }) => message)).toEqual([
      "The leader of 'cleaner' failed, and gives up the lock: no disk",
    ]);
    await locks.forceRelease('cleaner');
    await runtime.settle();
    expect(errors).toHaveLength(1);
    expect(logger.warnings).toEqual([expect.stringMatching(/^The lock 'cleaner' was lost: /)]);
    await runtime.until(candidate.stop());
  });

  it('reports what its body throws after its lock was lost', async () => {
    const failure = new Error('no disk');
    const { candidate, runtime, errors, locks } = await open({
      onElected: async (lease) => {
        await untilAborted(lease);
        throw failure;
      },
    });
    candidate.start();
    await runtime.settle();
    await locks.forceRelease('cleaner');
    await runtime.settle();
    expect(errors).toMatchObject([{ cause: failure }]);
    await runtime.until(candidate.stop());
  });

  it('reports no loss of its lock that its body throws, also if it was asked to stop before', async () => {
    const { candidate, runtime, errors, locks, logger } = await open({
      onElected: async (lease) => {
        await untilAborted(lease);
        await locks.forceRelease('cleaner');
        lease.assertHeld();
      },
    });
    candidate.start();
    await runtime.settle();
    await runtime.until(candidate.stop());
    expect(errors).toEqual([]);
    expect(logger.warnings).toEqual([expect.stringMatching(/^The lock 'cleaner' was lost: /)]);
  });

  it('stops at once between two elections', async () => {
    const { candidate, runtime } = await open({});
    candidate.start();
    await runtime.advance(200);
    expect(runtime.keepAliveTimers).toBe(1);
    await runtime.until(candidate.stop());
    expect([runtime.monotonic(), runtime.keepAliveTimers]).toEqual([200, 0]);
  });

  it('is awaited by code that was started in onRevoked and that has outlived it', async () => {
    const [later, log] = [latch(), [] as string[]];
    let leaked: Promise<unknown> | undefined;
    let elections = 0;
    const { candidate, runtime } = await open({
      onElected: async (lease) => {
        if (elections++ === 0) return;
        await untilAborted(lease);
        await new Promise<void>((resolve) => void runtime.timer(100, resolve));
        log.push('body has ended');
      },
      onRevoked: () => {
        leaked ??= later.promise.then(() => candidate.stop()).then(() => log.push('stopped'));
      },
    });
    candidate.start();
    await runtime.advance(1_100);
    expect([elections, candidate.isLeader]).toEqual([2, true]);
    later.open();
    await runtime.until(leaked!);
    expect(log).toEqual(['body has ended', 'stopped']);
  });

  it('stands for election again when onRevoked has settled, and a pause is over', async () => {
    const elections: number[] = [];
    const { candidate, runtime } = await open({
      onElected: async () => void elections.push(runtime.monotonic()),
      onRevoked: () => new Promise<void>((resolve) => void runtime.timer(5_000, resolve)),
    });
    candidate.start();
    await runtime.advance(6_100);
    expect(elections).toHaveLength(2);
    expect(elections[1]).toBeGreaterThanOrEqual(5_500);
    await runtime.until(candidate.stop());
  });

  it('has stopped when onRevoked has settled, also if its body still runs', async () => {
    const log: string[] = [];
    const { candidate, runtime } = await open({
      onElected: never,
      onRevoked: async () => {
        await new Promise<void>((resolve) => void runtime.timer(500, resolve));
        log.push('revoked');
      },
    });
    candidate.start();
    await runtime.settle();
    await runtime.until(candidate.stop());
    expect([log, runtime.monotonic()]).toEqual([['revoked'], SHUTDOWN + 500]);
  });

  it('reports what onRevoked throws, and stands for election again', async () => {
    const failure = new Error('no log');
    const elections: number[] = [];
    const { candidate, runtime, errors } = await open({
      onElected: async () => void elections.push(runtime.monotonic()),
      onRevoked: () => {
        throw failure;
      },
    });
    candidate.start();
    await runtime.advance(1_100);
    expect(errors[0]).toMatchObject({ message: "The leader of 'cleaner' failed in onRevoked: no log", cause: failure });
    expect(elections).toHaveLength(2);
    await runtime.until(candidate.stop());
  });
});

describe('the terms of a candidate', () => {
  it('let it wait for as long as others lead, whatever the defaults of the service are', () => {
    const terms = {
      ...DEFAULT_TERMS,
      waitTime: ms(1_000),
      outageTimeout: ms(1_000),
      leaseTime: ms(30_000),
      onLost: 'warn',
      release: 'background',
      group: 'jobs',
    } as const;
    expect(standByTerms(terms)).toEqual({
      ...terms,
      waitTime: FOREVER,
      outageTimeout: FOREVER,
      onLost: 'throw',
      standsBy: true,
    });
  });

  it.each([
    [undefined, 'the options must be an object with onElected'],
    [null, 'the options must be an object with onElected'],
    ['onElected', 'the options must be an object with onElected'],
    [{}, 'onElected must be the function that runs while this process leads'],
    [{ onElected: async () => {}, onRevoked: 1 }, 'onRevoked is 1; it must be a function'],
    [{ onElected: async () => {}, onRevoked: null }, 'onRevoked is null; it must be a function'],
    [{ onElected: async () => {}, onRevokd: () => {} }, 'onRevokd'],
  ])('are refused with what is wrong: %j', (options, message) => {
    const check = () => checkLeadOptions(options as never, 'lead()');
    expect(check).toThrow(LockConfigurationError);
    expect(check).toThrow(/^lead\(\)/);
    expect(check).toThrow(message as string);
  });

  it('are accepted with and without onRevoked and a group', () => {
    const onElected = async () => {};
    checkLeadOptions({ onElected }, 'lead()');
    checkLeadOptions({ onElected, onRevoked: () => {}, group: 'jobs' }, 'lead()');
  });
});
