import { BackendError } from '../../../lib/backends/lock-backend.js';
import {
  LockAbortedError,
  LockBusyError,
  LockKeyError,
  LockLostError,
  LockUnavailableError,
} from '../../../lib/engine/errors.js';
import {
  acquireAllOrNone,
  type BusyLock,
  bySortKey,
  holderInWords,
  type WantedGroup,
} from '../../../lib/engine/several/all-or-none.js';
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

/** The locks of one service, which answer as the test says. */
class Group implements WantedGroup<string> {
  readonly all: readonly FakeLock[];
  /** What attempts answer: the name of a busy lock, an error, or the names of locks that are taken. At the end: all. */
  answers: (string | Error | { readonly taken: readonly string[]; readonly busy?: string })[] = [];
  attempts = 0;
  arrivals = 0;
  lefts = 0;
  refusal: Error | undefined;
  outageFound: BackendError | undefined;
  reports: Error[] = [];
  busyError: (() => LockBusyError | undefined) | undefined;
  /** Called at each attempt. */
  onAttempt: (attempt: number) => Promise<void> | void = () => {};

  constructor(
    readonly service: string,
    names: readonly string[],
    log: string[],
  ) {
    this.all = names.map((name) => new FakeLock(name, log));
  }

  lock(name: string): FakeLock {
    return this.all.find((lock) => lock.name === name) as FakeLock;
  }

  arrived(): Error | undefined {
    this.arrivals++;
    return this.refusal;
  }

  left(): void {
    this.lefts++;
  }

  async takeMissing(): Promise<BusyLock | undefined> {
    await this.onAttempt(++this.attempts);
    const answer = this.answers.shift() ?? { taken: this.all.map(({ name }) => name) };
    if (answer instanceof Error) throw answer;
    const { taken, busy } = typeof answer === 'string' ? { taken: [], busy: answer } : answer;
    for (const name of taken) this.lock(name).take();
    return busy === undefined ? undefined : { wanted: this.lock(busy), remaining: 700, holder: 'eve:1' };
  }

  outage(): BackendError | undefined {
    return this.outageFound;
  }

  explained(failure: BackendError): BackendError {
    return new BackendError(`${this.service}: ${failure.message}`, failure.kind, failure.outcome);
  }

  failedOnce(error: () => Error): void {
    this.reports.push(error());
  }

  createLease(): string {
    return `lease of ${this.service}`;
  }
}

class FakeLock implements Wanted {
  taken = false;
  stale = false;
  aged = false;
  /** How a wait ends. Default: at once, with the lock. */
  onWait: () => Promise<void> = async () => {};
  /** How long it takes to give the lock back, and to restart its lease. Default: no time. */
  onGiveBack: () => Promise<void> = async () => {};
  onRestart: () => Promise<void> = async () => {};
  private stop: ((error: Error) => void) | undefined;

  constructor(
    readonly name: string,
    private readonly log: string[],
  ) {}

  get sortKey(): string {
    return this.name;
  }

  take(): void {
    this.log.push(`take ${this.name}`);
    this.taken = true;
  }

  async wait(waitTime: number): Promise<void> {
    this.log.push(`wait ${waitTime === FOREVER ? '' : `${waitTime} ms `}for ${this.name}`);
    const stopped = new Promise<void>((_, reject) => {
      this.stop = reject;
    });
    await Promise.race([this.onWait(), stopped]);
    this.take();
  }

  stopWaiting(error: Error): void {
    this.stop?.(error);
  }

  async restartLease(): Promise<void> {
    await this.onRestart();
    this.log.push(`restart ${this.name}`);
  }

  async giveBack(): Promise<void> {
    if (!this.taken) return;
    await this.onGiveBack();
    this.log.push(`give back ${this.name}`);
    this.taken = false;
  }

  describe(holder: string | undefined) {
    return { client: undefined, who: `somebody (${holder})` };
  }
}

describe('an acquisition of several locks', () => {
  const open = (...sets: readonly (readonly string[])[]) => {
    const runtime = new VirtualRuntime();
    const log: string[] = [];
    const groups = sets.map((names, n) => new Group(`service ${n + 1}`, names, log));
    const name = sets.flat().join(', ');
    const acquire = (waitTime: number = FOREVER, signal?: AbortSignal, fixed?: number) =>
      acquireAllOrNone(groups, name, { waitTime: ms(waitTime), outageTimeout: FOREVER, signal }, fixed, runtime);
    const [group] = groups;
    return { runtime, log, groups, group, acquire };
  };
  const never = () => new Promise<void>(() => {});
  const failure = (kind: BackendError['kind'] = 'unavailable') => new BackendError('no answer', kind, 'unknown');

  it('gives a lease of each service, and leaves each of them once', async () => {
    const { runtime, groups, log, acquire } = open(['a', 'b'], ['c']);
    expect(await acquire()).toEqual(['lease of service 1', 'lease of service 2']);
    await runtime.settle();
    expect(log).toEqual(['take a', 'take b', 'take c']);
    expect(groups.map(({ arrivals, lefts }) => [arrivals, lefts])).toEqual([
      [1, 1],
      [1, 1],
    ]);
    expect(runtime.timers).toBe(0);
  });

  it('asks no service when the signal was aborted before', async () => {
    const { groups, acquire } = open(['a'], ['b']);
    expect(await errorOf(acquire(FOREVER, AbortSignal.abort()))).toBeInstanceOf(LockAbortedError);
    expect(groups.map(({ arrivals, attempts }) => arrivals + attempts)).toEqual([0, 0]);
  });

  it('leaves the services at which it has arrived when one of them refuses it', async () => {
    const { groups, acquire, runtime } = open(['a'], ['b'], ['c']);
    groups[1].refusal = new LockUnavailableError('an outage', 'b');
    expect(await errorOf(acquire(1_000))).toBe(groups[1].refusal);
    expect(groups.map(({ arrivals, lefts, attempts }) => [arrivals, lefts, attempts])).toEqual([
      [1, 1, 0],
      [1, 1, 0],
      [0, 0, 0],
    ]);
    expect(runtime.timers).toBe(0);
  });

  it('gives back what it has taken when a lock is busy, waits for that lock alone, and then takes the others', async () => {
    const { log, group, groups, acquire } = open(['a', 'b'], ['c', 'd']);
    groups[1].answers = [{ taken: ['c'], busy: 'd' }];
    expect(await acquire()).toHaveLength(2);
    expect(log).toEqual([
      'take a',
      'take b',
      'take c',
      'give back a',
      'give back b',
      'give back c',
      'wait for d',
      'take d',
      'take a',
      'take b',
      'take c',
      'take d',
    ]);
    expect([group.attempts, groups[1].attempts]).toEqual([2, 2]);
  });

  it('does not ask the next service when a lock of the one before is busy', async () => {
    const { groups, acquire } = open(['a'], ['b']);
    groups[0].answers = ['a', 'a'];
    groups[0].all[0].onWait = never;
    expect(await errorOf(acquire(0))).toBeInstanceOf(LockBusyError);
    expect(groups.map(({ attempts }) => attempts)).toEqual([1, 0]);
  });

  it('does not ask the next service when the caller has left meanwhile', async () => {
    const { runtime, groups, acquire, log } = open(['a'], ['b']);
    const leaves = new AbortController();
    groups[0].onAttempt = () => leaves.abort();
    expect(await errorOf(acquire(FOREVER, leaves.signal))).toBeInstanceOf(LockAbortedError);
    await runtime.settle();
    expect(groups.map(({ attempts }) => attempts)).toEqual([1, 0]);
    expect(log).toEqual(['take a', 'give back a']);
    expect(groups.map(({ lefts }) => lefts)).toEqual([1, 1]);
  });

  it('waits for what remains of its waitTime, at least for a millisecond', async () => {
    const { runtime, log, group, acquire } = open(['a', 'b']);
    group.answers = ['b'];
    group.onAttempt = async (attempt) => {
      if (attempt === 1) await new Promise<void>((resolve) => void runtime.timer(300, resolve));
    };
    await runtime.until(acquire(1_000));
    expect(log[0]).toBe('wait 700 ms for b');
    const late = open(['a', 'b']);
    late.group.answers = ['b'];
    late.group.onAttempt = (attempt) => (attempt === 1 ? late.runtime.block(1_000) : undefined);
    await late.acquire(1_000);
    expect(late.log[0]).toBe('wait 1 ms for b');
  });

  describe('that was not served in time', () => {
    it('names the busy lock, its holder and the time', async () => {
      const { runtime, group, acquire } = open(['a', 'b']);
      group.answers = ['b'];
      group.lock('b').onWait = never;
      const error = (await runtime.until(errorOf(acquire(2_000)))) as LockBusyError;
      expect(error).toBeInstanceOf(LockBusyError);
      expect(error.message).toBe(
        "Not all of the locks a, b were free within 2000 ms: 'b' is held by somebody (eve:1); none was taken",
      );
      expect(error).toMatchObject({ lockName: 'a, b', remainingTime: 700, holder: 'eve:1', fixedLease: false });
      expect(runtime.timers).toBe(0);
    });

    it('names no time when it tried once, and no lock when none is known', async () => {
      const { group, acquire, runtime } = open(['a', 'b']);
      group.answers = ['b'];
      expect((await errorOf(acquire(0))).message).toBe(
        "Not all of the locks a, b were free: 'b' is held by somebody (eve:1); none was taken",
      );
      group.onAttempt = never;
      const unknown = (await runtime.until(errorOf(acquire(500)))) as LockBusyError;
      expect(unknown.message).toBe('Not all of the locks a, b were free within 500 ms; none was taken');
      expect(unknown).toMatchObject({ remainingTime: -1, holder: undefined });
    });

    it('gets the error that the only service knows better, but not that of one of several services', async () => {
      const one = open(['a']);
      const own = new LockBusyError('two of three are busy', 'a', 5, 'eve:1');
      one.group.answers = ['a'];
      one.group.busyError = () => own;
      expect(await errorOf(one.acquire(0))).toBe(own);
      one.group.answers = ['a'];
      one.group.busyError = () => undefined;
      expect((await errorOf(one.acquire(0))).message).toMatch(/^Not all of the locks a were free: 'a' is held/);
      const two = open(['a'], ['b']);
      two.group.answers = ['a'];
      two.group.busyError = () => own;
      expect(await errorOf(two.acquire(0))).not.toBe(own);
    });

    it('names the outage that kept one of the services from answering', async () => {
      const { groups, acquire } = open(['a'], ['b']);
      groups[0].answers = ['a'];
      groups[1].outageFound = failure();
      const error = await errorOf(acquire(0));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toBe('The locks a, b could not be acquired: no answer');
      expect(error).toMatchObject({ lockName: 'a, b', cause: groups[1].outageFound });
    });

    it('replaces the error about the lock for which it waited, and passes on all others', async () => {
      const { group, acquire } = open(['a', 'b']);
      group.answers = ['b'];
      group.lock('b').onWait = () => Promise.reject(new LockBusyError("'b' is busy", 'b', 1, undefined));
      expect((await errorOf(acquire(1_000))).message).toMatch(/^Not all of the locks a, b were free within 1000 ms/);
      const outage = new LockUnavailableError('gave up', 'b');
      group.answers = ['b'];
      group.lock('b').onWait = () => Promise.reject(outage);
      expect(await errorOf(acquire(1_000))).toBe(outage);
    });
  });

  describe('that fails', () => {
    it('gives back what it has taken, and tries again after longer and longer pauses', async () => {
      const { runtime, group, groups, log, acquire } = open(['a'], ['b']);
      const times: number[] = [];
      group.onAttempt = () => void times.push(runtime.monotonic());
      groups[1].answers = [failure(), failure(), failure()];
      expect(await runtime.until(acquire())).toHaveLength(2);
      const pauses = times.slice(1).map((time, n) => time - times[n]);
      expect(pauses).toHaveLength(3);
      for (const [n, pause] of pauses.entries()) {
        expect(pause).toBeGreaterThanOrEqual(25 * 2 ** n);
        expect(pause).toBeLessThanOrEqual(50 * 2 ** n);
      }
      expect(log.slice(0, 4)).toEqual(['take a', 'give back a', 'take a', 'give back a']);
      expect(group.reports).toEqual([]);
      expect(groups[1].reports.map(({ message }) => message)).toEqual([
        'The locks a, b could not be acquired: service 2: no answer',
      ]);
    });

    it('begins with a short pause again, and reports again, after an attempt that was answered', async () => {
      const { runtime, group, acquire } = open(['a', 'b']);
      const times: number[] = [];
      group.onAttempt = () => void times.push(runtime.monotonic());
      group.answers = [failure(), failure(), failure(), 'b', failure()];
      await runtime.until(acquire());
      expect(times[5] - times[4]).toBeLessThanOrEqual(50);
      expect(group.reports).toHaveLength(2);
    });

    it.each(['denied', 'closed'] as const)('is refused at once when the backend is %s', async (kind) => {
      const { group, acquire } = open(['a', 'b']);
      group.answers = [failure(kind)];
      const error = await errorOf(acquire());
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.message).toBe('The locks a, b could not be acquired: service 1: no answer');
      expect([group.attempts, group.reports, group.lefts]).toEqual([1, [], 1]);
    });

    it('is refused at once when a key holds something else', async () => {
      const { group, acquire } = open(['a', 'b']);
      group.answers = [failure('key')];
      const error = await errorOf(acquire());
      expect(error).toBeInstanceOf(LockKeyError);
      expect(error.message).toBe('The locks a, b cannot be used: no answer');
      expect(error).toMatchObject({ lockName: 'a, b', cause: expect.any(BackendError) });
      expect(group.attempts).toBe(1);
    });

    it('gets an error of this library as it is, except for a loss, after which it tries again', async () => {
      const { runtime, group, acquire } = open(['a', 'b']);
      const refusal = new LockKeyError('no', 'a');
      group.answers = [refusal];
      expect(await errorOf(acquire())).toBe(refusal);
      group.answers = [new LockLostError('lost', 'a')];
      expect(await runtime.until(acquire())).toEqual(['lease of service 1']);
      expect([group.attempts, group.reports]).toEqual([3, []]);
    });

    it('is not reported when its caller has left', async () => {
      const { runtime, group, acquire } = open(['a', 'b']);
      const leaves = new AbortController();
      group.onAttempt = () => leaves.abort();
      group.answers = [failure()];
      expect(await errorOf(acquire(FOREVER, leaves.signal))).toBeInstanceOf(LockAbortedError);
      await runtime.settle();
      expect([group.attempts, group.reports, group.lefts, runtime.timers]).toEqual([1, [], 1, 0]);
    });

    it('ends its pause at once when its caller leaves', async () => {
      const { runtime, group, acquire } = open(['a', 'b']);
      const leaves = new AbortController();
      group.answers = Array.from({ length: 20 }, () => failure());
      const left = errorOf(acquire(FOREVER, leaves.signal));
      await runtime.advance(3_000);
      const { attempts } = group;
      expect([group.lefts, runtime.keepAliveTimers]).toEqual([0, 1]);
      leaves.abort();
      expect(await left).toBeInstanceOf(LockAbortedError);
      await runtime.settle();
      expect([group.attempts, group.lefts, runtime.timers]).toEqual([attempts, 1, 0]);
    });
  });

  it('ends its wait for a lock at once when its caller leaves', async () => {
    const { runtime, group, log, acquire } = open(['a', 'b']);
    const leaves = new AbortController();
    group.answers = ['b'];
    group.lock('b').onWait = never;
    const left = errorOf(acquire(FOREVER, leaves.signal));
    await runtime.settle();
    leaves.abort(new Error('enough'));
    expect(await left).toMatchObject({ name: 'LockAbortedError', cause: new Error('enough') });
    expect((await left).message).toContain('the locks a, b');
    await runtime.settle();
    expect([log, group.attempts, group.lefts]).toEqual([['wait for b'], 1, 1]);
  });

  it('does not begin to wait for a lock when its caller has left meanwhile', async () => {
    const { runtime, group, log, acquire } = open(['a', 'b']);
    const leaves = new AbortController();
    group.onAttempt = () => leaves.abort();
    group.answers = [{ taken: ['a'], busy: 'b' }];
    expect(await errorOf(acquire(FOREVER, leaves.signal))).toBeInstanceOf(LockAbortedError);
    await runtime.settle();
    expect([log, group.lefts]).toEqual([['take a', 'give back a'], 1]);
  });

  it('gives back a lock that it gets at the moment at which its caller leaves', async () => {
    const { runtime, group, log, acquire } = open(['a', 'b']);
    const leaves = new AbortController();
    group.answers = ['b'];
    group.lock('b').onWait = async () => leaves.abort();
    group.lock('b').onGiveBack = () => new Promise((resolve) => void runtime.timer(100, resolve));
    expect(await errorOf(acquire(FOREVER, leaves.signal))).toBeInstanceOf(LockAbortedError);
    await runtime.advance(99);
    expect([log, group.lefts]).toEqual([['wait for b', 'take b'], 0]);
    await runtime.advance(1);
    await runtime.settle();
    expect([log, group.attempts, group.lefts]).toEqual([['wait for b', 'take b', 'give back b'], 1, 1]);
  });

  describe('that gives locks back', () => {
    /** It takes 100 ms to give back the first of two locks. */
    const slow = () => {
      const opened = open(['a', 'b']);
      const { runtime, group } = opened;
      group.lock('a').onGiveBack = () => new Promise((resolve) => void runtime.timer(100, resolve));
      return opened;
    };

    it('waits for another lock after that', async () => {
      const { runtime, group, log, acquire } = slow();
      group.answers = [{ taken: ['a'], busy: 'b' }];
      const acquired = acquire();
      await runtime.advance(99);
      expect(log).toEqual(['take a']);
      await runtime.advance(1);
      await acquired;
      expect(log.slice(0, 4)).toEqual(['take a', 'give back a', 'wait for b', 'take b']);
    });

    it('is refused after that when it tries once', async () => {
      const { runtime, group, log, acquire } = slow();
      group.answers = [{ taken: ['a'], busy: 'b' }];
      expect(await runtime.until(errorOf(acquire(0)))).toBeInstanceOf(LockBusyError);
      expect([log, runtime.monotonic()]).toEqual([['take a', 'give back a'], 100]);
    });

    it('tries again after that when it has failed, or has lost a lock', async () => {
      const failed = slow();
      failed.group.onAttempt = (attempt) => {
        if (attempt === 1) failed.group.lock('a').take();
      };
      failed.group.answers = [failure()];
      await failed.runtime.until(failed.acquire());
      expect(failed.log).toEqual(['take a', 'give back a', 'take a', 'take b']);
      expect(failed.runtime.monotonic()).toBeGreaterThanOrEqual(125);
      const stale = slow();
      stale.group.onAttempt = (attempt) => {
        stale.group.lock('b').stale = attempt === 1;
      };
      await stale.runtime.until(stale.acquire());
      expect(stale.log.slice(2)).toEqual(['give back b', 'give back a', 'take a', 'take b']);
    });
  });

  it('has its leases when the aged ones have been restarted, and tries again if that fails', async () => {
    const { runtime, groups, log, acquire } = open(['a', 'b'], ['c']);
    const b = groups[0].lock('b');
    b.aged = true;
    b.onRestart = () => new Promise((resolve) => void runtime.timer(100, resolve));
    await runtime.until(acquire());
    expect([log.at(-1), runtime.monotonic()]).toEqual(['restart b', 100]);
    log.length = 0;
    for (const lock of [...groups[0].all, ...groups[1].all]) lock.taken = false;
    b.onRestart = () => {
      b.aged = false;
      return Promise.reject(failure());
    };
    await runtime.until(acquire());
    expect(log.slice(0, 6)).toEqual(['take a', 'take b', 'take c', 'give back a', 'give back b', 'give back c']);
    expect(log).toHaveLength(9);
  });

  it('is not refused as in an outage because it has lost a lock', async () => {
    const { runtime, group, acquire } = open(['a', 'b']);
    group.answers = Array.from({ length: 20 }, () => new LockLostError('lost', 'a'));
    const error = await runtime.until(errorOf(acquire(200)));
    expect(error).toBeInstanceOf(LockBusyError);
    expect(error.message).toBe('Not all of the locks a, b were free within 200 ms; none was taken');
  });

  describe('that was passed over', () => {
    /** It gets the first lock at once, and waits forever for the second one. */
    const passedOver = (fixed?: number) => {
      const { runtime, group, log, acquire } = open(['a', 'b']);
      runtime.random = () => 0;
      const times: [string, number][] = [];
      const push = log.push.bind(log);
      log.push = (line) => {
        times.push([line, runtime.monotonic()]);
        return push(line);
      };
      group.answers = ['a', 'b', 'a', 'b', 'a', 'b'];
      let waits = 0;
      group.lock('b').onWait = () => (++waits > 2 ? never() : Promise.resolve());
      const leaves = new AbortController();
      const left = errorOf(acquire(FOREVER, leaves.signal, fixed));
      return { runtime, group, log, times, leaves, left };
    };

    it.each([
      [undefined, 1_000],
      [5_000, 1_000],
      [400, 200],
    ])('holds locks while it waits for others for a second, or half a fixed lease: %p', async (fixed, time) => {
      const { runtime, times, leaves, left } = passedOver(fixed);
      await runtime.advance(1_100);
      const given = times.filter(([line]) => line === 'give back a').map(([, at]) => at);
      expect(given.filter((at) => at > 0)[0]).toBe(time);
      leaves.abort();
      await left;
    });

    it.each([500, 1_500])('ends at once when its caller leaves after %i ms, and joins no queue again', async (time) => {
      const { runtime, group, log, leaves, left } = passedOver();
      await runtime.advance(time);
      const before = log.filter((line) => line.startsWith('wait')).length;
      leaves.abort();
      expect(await left).toBeInstanceOf(LockAbortedError);
      await runtime.settle();
      expect([group.lefts, runtime.timers]).toEqual([1, 0]);
      expect(log.filter((line) => line.startsWith('wait'))).toHaveLength(before);
      expect(group.all.map(({ taken }) => taken)).toEqual([false, false]);
    });
  });

  it('starts again when one of its locks was lost before it had got them all', async () => {
    const { runtime, group, log, acquire } = open(['a', 'b']);
    group.onAttempt = (attempt) => {
      group.lock('a').stale = attempt === 1;
    };
    expect(await runtime.until(acquire())).toEqual(['lease of service 1']);
    expect(log).toEqual(['take a', 'take b', 'give back a', 'give back b', 'take a', 'take b']);
  });

  it('restarts the leases that have aged while it asked another service', async () => {
    const { runtime, groups, log, acquire } = open(['a', 'b'], ['c']);
    groups[0].lock('b').aged = true;
    await runtime.until(acquire());
    expect(log).toEqual(['take a', 'take b', 'take c', 'restart b']);
    const alone = open(['a', 'b']);
    alone.group.lock('b').aged = true;
    await alone.acquire();
    expect(alone.log).toEqual(['take a', 'take b']);
  });

  it('restarts no lease while a lock is busy', async () => {
    const { groups, log, acquire } = open(['a'], ['b']);
    groups[0].lock('a').aged = true;
    groups[1].answers = ['b'];
    await errorOf(acquire(0));
    expect(log).toEqual(['take a', 'give back a']);
  });

  it('pauses for a moment after it has given back a lock for which it had waited, longer each time', async () => {
    const { runtime, group, acquire } = open(['a', 'b']);
    runtime.random = () => 1;
    const waits: number[] = [];
    for (const lock of group.all) lock.onWait = async () => void waits.push(runtime.monotonic());
    // Busy in turns: whichever it has waited for, the other one is busy then.
    group.answers = ['b', 'a', 'b', 'a', 'b'];
    await runtime.until(acquire());
    expect(waits).toEqual([0, 1, 3, 7, 15]);
  });

  it('holds locks while it waits for others, in sorted order, once it has failed five times', async () => {
    const { runtime, groups, log, acquire } = open(['c', 'a'], ['b']);
    runtime.random = () => 0;
    groups[0].answers = ['a', 'c', 'a', 'c', 'a', 'c'];
    await runtime.until(acquire());
    const since = log.lastIndexOf('give back c') < log.lastIndexOf('give back a') ? 'give back a' : 'give back c';
    expect(log.slice(log.lastIndexOf(since) + 1)).toEqual([
      'wait for a',
      'take a',
      'wait for b',
      'take b',
      'wait for c',
      'take c',
      'take c',
      'take a',
      'take b',
    ]);
  });

  it('restarts the leases that have aged while it held locks and waited for others', async () => {
    const { runtime, group, log, acquire } = open(['a', 'b']);
    runtime.random = () => 0;
    group.lock('a').aged = true;
    group.answers = ['a', 'b', 'a', 'b', 'a', 'b'];
    await runtime.until(acquire());
    expect(log.at(-1)).toBe('restart a');
    expect(log.filter((line) => line.startsWith('restart'))).toHaveLength(1);
  });
});

describe('the order of locks in all processes', () => {
  it('is that of their keys', () => {
    const keys = ['b', 'a', 'C', 'b'].map((sortKey) => ({ sortKey }));
    expect(keys.sort(bySortKey).map(({ sortKey }) => sortKey)).toEqual(['C', 'a', 'b', 'b']);
    expect(bySortKey({ sortKey: 'a' }, { sortKey: 'b' })).toBe(-1);
    expect(bySortKey({ sortKey: 'b' }, { sortKey: 'a' })).toBe(1);
    expect(bySortKey({ sortKey: 'a' }, { sortKey: 'a' })).toBe(0);
  });
});

describe('the holder of a busy lock, in words', () => {
  it('is its owner id with its application, or with the reason why that is not known', () => {
    const client = { application: 'shop', host: 'web-1' } as never;
    expect(holderInWords('eve:1', client, undefined)).toBe("eve:1 of 'shop'");
    expect(holderInWords('eve:1', undefined, 'a Redisson client')).toBe('eve:1 of a Redisson client');
    expect(holderInWords('eve:1', undefined, undefined)).toBe('eve:1');
    expect(holderInWords(undefined, undefined, undefined)).toBe('another owner');
  });
});
