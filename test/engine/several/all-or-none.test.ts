import { BackendError } from '../../../lib/backends/lock-backend.js';
import { LockAbortedError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { acquireAllOrNone, type WantedGroup } from '../../../lib/engine/several/all-or-none.js';
import type { Wanted } from '../../../lib/engine/several/hold-and-wait.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { ms } from '../../support/lock-world.js';
import { VirtualRuntime } from '../../support/runtime/virtual-runtime.js';
import { errorOf, latch } from '../../support/section.js';

describe('a caller of several locks whose backend fails', () => {
  /** Locks that cannot be taken because of these failures, and then can. */
  const stage = (failures: number, waitTime = 60_000) => {
    const runtime = new VirtualRuntime();
    const reports: Error[] = [];
    let attempts = 0;
    const group: WantedGroup<string> = {
      all: [],
      arrived: () => undefined,
      left: () => {},
      takeMissing: async () => {
        if (attempts++ < failures) throw new BackendError('no answer in time', 'unavailable', 'unknown');
        return undefined;
      },
      outage: () => undefined,
      explained: (failure) => failure,
      failedOnce: (error) => void reports.push(error()),
      createLease: () => 'lease',
    };
    const terms = { waitTime: ms(waitTime), outageTimeout: FOREVER, signal: undefined };
    const leases = acquireAllOrNone([group], 'a, b', terms, undefined, runtime);
    return { runtime, reports, leases, attempts: () => attempts };
  };

  it('reports the first of several failures in a row, and continues to wait', async () => {
    const { runtime, reports, leases, attempts } = stage(3);
    expect(await runtime.until(leases)).toEqual(['lease']);
    expect(attempts()).toBe(4);
    expect(reports).toEqual([expect.any(LockUnavailableError)]);
    expect(runtime.timers).toBe(0);
  });

  it('reports nothing when its attempts succeed', async () => {
    const { runtime, reports, leases } = stage(0);
    expect(await runtime.until(leases)).toEqual(['lease']);
    expect(reports).toEqual([]);
  });

  it('gets the failure itself when it tries once, and no report of it', async () => {
    const { runtime, reports, leases, attempts } = stage(3, 0);
    expect(await runtime.until(errorOf(leases))).toBeInstanceOf(LockUnavailableError);
    expect(attempts()).toBe(1);
    expect(reports).toEqual([]);
  });
});

describe('a caller of the locks of several services', () => {
  it('gives back what it holds when it leaves, and the locks of a service that has not answered after the answer', async () => {
    const runtime = new VirtualRuntime();
    const given: string[] = [];
    const wanted = (name: string) => {
      const lock = {
        name,
        sortKey: name,
        taken: false,
        stopWaiting: () => {},
        giveBack: async () => {
          if (lock.taken) given.push(name);
          lock.taken = false;
        },
      };
      return lock;
    };
    const answer = latch();
    const group = (name: string, answered?: Promise<void>): WantedGroup<string> => {
      const lock = wanted(name);
      return {
        all: [lock as unknown as Wanted],
        takeMissing: async () => {
          lock.taken = true;
          await answered;
          return undefined;
        },
        arrived: () => undefined,
        left: () => {},
        outage: () => undefined,
        explained: (failure) => failure,
        failedOnce: () => {},
        createLease: () => 'lease',
      };
    };
    const leaving = new AbortController();
    const terms = { waitTime: FOREVER, outageTimeout: FOREVER, signal: leaving.signal };
    const groups = [group('quick'), group('slow', answer.promise)];
    const left = errorOf(acquireAllOrNone(groups, 'quick, slow', terms, undefined, runtime));
    await runtime.advance(10);
    expect(given).toEqual([]);
    leaving.abort();
    expect(await left).toBeInstanceOf(LockAbortedError);
    expect(given).toEqual(['quick']);
    answer.open();
    await runtime.settle();
    expect(given).toEqual(['quick', 'slow']);
  });
});
