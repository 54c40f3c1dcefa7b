import { BackendError, type Busy } from '../../../lib/backends/lock-backend.js';
import type { HeldLock, LockWaiter } from '../../../lib/engine/hold/held-lock.js';
import { Callers } from '../../../lib/engine/queue/callers.js';
import { ms } from '../../support/lock-world.js';
import { lockScene, type TestWaiter } from './scripted-scene.js';

const KEY = 'lock:page';
const BUSY: Busy = { acquired: false, remaining: 5_000, holder: 'other:1' };
const unavailable = new BackendError('no connection', 'unavailable', 'refused');

describe('a line of callers', () => {
  const setUp = (settings: Parameters<typeof lockScene>[1] = {}) => {
    const { services, runtime, backend, logger, caller } = lockScene('reentrant', settings);
    const left: LockWaiter[] = [];
    const queue = {
      key: KEY,
      holders: [] as readonly HeldLock[],
      isAsking: false,
      askedAt: undefined as number | undefined,
      isUndecided: undefined as boolean | undefined,
      describeObstacle: undefined as ((write: (obstacle: string) => void) => Promise<void>) | undefined,
      left: (waiters: readonly LockWaiter[]) => void left.push(...waiters),
    };
    const line: Callers = new Callers(services, queue);
    services.work.permitQueues.set(KEY, { callers: line, length: 1, recheck: () => {}, close: async () => {} });
    const join = (options: Parameters<typeof caller>[0] = {}): TestWaiter => {
      const waiter = caller(options);
      line.waiters.push(waiter);
      return waiter;
    };
    return { services, runtime, backend, logger, queue, line, left, join };
  };
  const heldLock = (more: Partial<HeldLock>) =>
    ({ type: 'reentrant', shares: [], since: 0, ...more }) as unknown as HeldLock;

  it('is idle when nobody waits, asks or holds the lock', () => {
    const { line, queue, join } = setUp();
    expect([line.key, line.keys, line.isEmpty, line.isIdle]).toEqual([KEY, [KEY], true, true]);
    queue.isAsking = true;
    expect(line.isIdle).toBe(false);
    queue.isAsking = false;
    queue.holders = [heldLock({})];
    expect(line.isIdle).toBe(false);
    queue.holders = [];
    line.remove(join());
    expect(line.isIdle).toBe(true);
    join();
    expect([line.isEmpty, line.isIdle]).toEqual([false, false]);
  });

  describe('lets a caller leave', () => {
    it('when its waitTime has ended, and tells the queue', async () => {
      const { runtime, line, left, join } = setUp();
      const waiter = join({ waitTime: ms(1_000) });
      line.watch(waiter);
      await runtime.advance(1_001);
      expect(waiter.outcome).toBe('LockBusyError');
      expect([left, line.isEmpty]).toEqual([[waiter], true]);
    });

    it('when its signal aborts, which is not announced as busy', () => {
      const { services, line, left, join } = setUp();
      const abort = new AbortController();
      const events: unknown[] = [];
      services.events.on('busy', (event) => events.push(event));
      const waiter = join({ signal: abort.signal });
      line.watch(waiter);
      abort.abort();
      expect(waiter.outcome).toBe('LockAbortedError');
      expect([left, line.isEmpty, events]).toEqual([[waiter], true, []]);
    });

    it('that is dismissed, before it learns that', () => {
      const { line, left, join } = setUp();
      const waiter = join();
      const error = new Error('closed');
      line.dismiss(waiter, error);
      expect([waiter.error, left, line.isEmpty]).toEqual([error, [waiter], true]);
    });

    it('for which there is an error, and no other', () => {
      const { line, left, join } = setUp();
      const [first, second, third] = [join(), join(), join()];
      line.refuseWhere((waiter) => (waiter === second ? undefined : unavailable));
      expect([first.error, second.error, third.error]).toEqual([unavailable, undefined, unavailable]);
      expect(left).toEqual([first, third]);
    });

    it('together with others that are refused, before the queue learns of any of them', () => {
      const { line, queue, join } = setUp();
      const [first, second] = [join(), join()];
      const calls: unknown[] = [];
      queue.left = (waiters) => void calls.push([...waiters], line.isEmpty, first.outcome);
      line.refuseWhere(() => unavailable);
      expect(calls).toEqual([[first, second], true, undefined]);
      line.refuseWhere(() => unavailable);
      expect(calls).toHaveLength(3);
    });

    it('once, although a listener lets it leave while others are refused', () => {
      const { line, queue, join } = setUp();
      const [first, second] = [join(), join()];
      const calls: unknown[] = [];
      queue.left = (waiters) => void calls.push([...waiters]);
      line.refuseWhere((waiter) => {
        if (waiter === second) line.dismiss(first, new Error('aborted'));
        return unavailable;
      });
      expect([calls, first.outcome, second.error]).toEqual([[[first], [second]], 'Error', unavailable]);
    });

    it('whose request has failed for good, but not one that may try again, or has left', () => {
      const { line, left, join } = setUp();
      const [first, second] = [join(), join()];
      line.failed(first, unavailable);
      expect([first.error, line.failure, left]).toEqual([undefined, unavailable, []]);
      const denied = new BackendError('NOPERM', 'denied', 'refused');
      line.failed(first, denied);
      expect([first.outcome, line.failure, left]).toEqual(['LockUnavailableError', denied, [first]]);
      line.waiters.remove(second);
      second.refuse(new Error('aborted'));
      line.failed(second, denied);
      expect(left).toEqual([first]);
    });

    it('and says whether it was still in the line', () => {
      const { line, join } = setUp();
      const waiter = join();
      expect([line.remove(waiter), line.remove(waiter)]).toEqual([true, false]);
    });
  });

  describe('that rests', () => {
    it('has its key pinged until nobody waits any more', async () => {
      const { runtime, backend, line, join } = setUp({ health: true });
      const [first, second] = [join(), join()];
      line.rest();
      line.rest();
      await runtime.advance(3_000);
      expect(backend.pings).toBe(1);
      line.remove(first);
      await runtime.advance(3_000);
      expect(backend.pings).toBe(2);
      line.remove(second);
      expect(runtime.timers).toBe(0);
    });

    it('reports a long wait for a lock with its holder', async () => {
      const { runtime, logger, line, join } = setUp();
      join();
      line.foundBusy(BUSY, { monotonic: 0, wall: 0 });
      line.rest();
      await runtime.advance(30_000);
      await runtime.settle();
      expect(logger.warnings).toEqual(["A caller has waited for the lock 'order' for over 30 s; held by other:1"]);
    });

    it('reports what else a long wait is for as its queue does', async () => {
      const { runtime, logger, queue, line, join } = setUp();
      join();
      queue.describeObstacle = async (write) => write('its count is 2');
      line.rest();
      await runtime.advance(30_000);
      await runtime.settle();
      expect(logger.warnings).toEqual(["A caller has waited for the lock 'order' for over 30 s; its count is 2"]);
    });

    it('reports no long wait once it is closed', async () => {
      const { runtime, logger, line, join } = setUp({ health: true });
      join();
      line.rest();
      line.close();
      expect(runtime.timers).toBe(0);
      await runtime.advance(60_000);
      expect(logger.warnings).toEqual([]);
    });

    it('may be closed although it never rested', () => {
      const { services, backend, runtime, line, join } = setUp({ health: true });
      const other = { resting: false };
      services.pings.rest(other);
      join();
      line.close();
      expect(backend.pings).toBe(0);
      expect(runtime.timers).toBe(1);
    });
  });

  describe('warns of a wait without a limit', () => {
    const due = () => setUp({ warnsOfUnlimitedWaits: true });

    it('when it rests behind a holder of this process', () => {
      const { logger, queue, line, join } = due();
      join();
      line.rest();
      expect(logger.warnings).toEqual([]);
      queue.holders = [heldLock({})];
      line.rest();
      expect(logger.warnings).toHaveLength(1);
    });

    it('when the backend has named another holder', () => {
      const { logger, line, join } = due();
      line.foundBusy(BUSY, { monotonic: 0, wall: 0 });
      expect(logger.warnings).toEqual([]);
      join();
      line.rest();
      expect(logger.warnings).toHaveLength(1);
      const other = due();
      other.join();
      other.line.foundBusy(BUSY, { monotonic: 0, wall: 0 });
      expect(other.logger.warnings).toHaveLength(1);
    });

    it('but not if this process has taken the lock since', () => {
      const { logger, line, join } = due();
      line.foundBusy(BUSY, { monotonic: 0, wall: 0 });
      line.forgetHolder();
      join();
      line.rest();
      expect(logger.warnings).toEqual([]);
    });
  });

  describe('refuses a caller', () => {
    it('as busy, with the holder that the backend has named and the time that its lease has left', async () => {
      const { services, runtime, line, join } = setUp();
      const waiter = join();
      line.foundBusy(BUSY, services.clock.now());
      await runtime.advance(1_000);
      expect(line.refusal(waiter)).toMatchObject({ name: 'LockBusyError', holder: 'other:1', remainingTime: 4_000 });
      await runtime.advance(10_000);
      expect(line.busy(waiter).remainingTime).toBe(0);
      line.foundBusy({ ...BUSY, remaining: 0 }, services.clock.now());
      expect(line.busy(waiter).remainingTime).toBe(0);
      line.foundBusy({ ...BUSY, remaining: -1 }, services.clock.now());
      expect(line.busy(waiter).remainingTime).toBe(-1);
      line.forgetHolder();
      expect(line.busy(waiter)).toMatchObject({ holder: undefined, remainingTime: -1 });
    });

    it('as busy, with the holder of this process', async () => {
      const { services, runtime, queue, line, join } = setUp();
      const waiter = join();
      line.foundBusy(BUSY, services.clock.now());
      queue.holders = [heldLock({ owner: 'me:1', validFor: 3_000, confirmed: services.clock.now(), fixed: true })];
      await runtime.advance(1_000);
      const error = line.busy(waiter);
      expect(error).toMatchObject({ holder: 'me:1', remainingTime: 2_000, fixedLease: true });
      expect(error.message).toContain('(this process)');
    });

    it.each([
      ['permits', 'me:2'],
      ['read', 'me:1'],
    ] as const)('as busy, with the holder that makes room for it: type %s', (type, expected) => {
      const { services, queue, line, join } = setUp();
      const confirmed = services.clock.now();
      const holder = (owner: string, leaseEnd: number) =>
        heldLock({ type, owner, leaseEnd, validFor: leaseEnd, confirmed });
      queue.holders = [holder('me:1', 5_000), holder('me:2', 3_000), holder('me:3', 4_000)];
      expect(line.busy(join()).holder).toBe(expected);
      queue.holders = queue.holders.slice(0, 2);
      expect(line.busy(join()).holder).toBe(expected);
    });

    it('as unavailable after a failure, until there is an answer', () => {
      const { services, line, join } = setUp();
      const waiter = join();
      line.failure = unavailable;
      expect(line.isUnavailableTo(waiter)).toBe(true);
      expect(line.refusal(waiter)).toMatchObject({ name: 'LockUnavailableError', cause: unavailable });
      line.foundBusy(BUSY, services.clock.now());
      expect(line.isUnavailableTo(waiter)).toBe(false);
    });

    it('as unavailable if the node of the key is silent', async () => {
      const { services, runtime, queue, line, join } = setUp({ health: true });
      const waiter = join({ waitTime: ms(500) });
      await runtime.advance(500);
      services.outages.isSilent = (caller, keys, asked, askedAt) =>
        caller === waiter && keys[0] === KEY && asked && askedAt === 7;
      expect(line.isUnavailableTo(waiter)).toBe(false);
      queue.isAsking = true;
      queue.askedAt = 7;
      expect(line.isUnavailableTo(waiter)).toBe(true);
    });

    it('as unavailable if a backend in which callers wait has not said for what, and had the time', () => {
      const { services, queue, line, join } = setUp();
      queue.isUndecided = true;
      expect(line.isUnavailableTo(join({ waitTime: ms(100) }))).toBe(true);
      expect(line.isUnavailableTo(join({ waitTime: ms(99) }))).toBe(false);
      queue.isUndecided = false;
      expect(line.isUnavailableTo(join({ waitTime: ms(100) }))).toBe(false);
      queue.isUndecided = true;
      line.foundBusy(BUSY, services.clock.now());
      expect(line.isUnavailableTo(join({ waitTime: ms(100) }))).toBe(false);
    });

    it('whose place was taken, and announces that', () => {
      const { services, line, join } = setUp();
      const events: unknown[] = [];
      services.events.on('busy', ({ superseded, holder }) => events.push([superseded, holder]));
      line.foundBusy(BUSY, services.clock.now());
      const waiter = join();
      expect(line.superseded(waiter)).toMatchObject({ name: 'LockSupersededError', holder: 'other:1' });
      line.busy(waiter);
      expect(events).toEqual([
        [true, 'other:1'],
        [false, 'other:1'],
      ]);
    });
  });

  it('lets the record of a holder be read before a caller gives up that may need it for its error', async () => {
    const { runtime, services, line, join } = setUp();
    const expected: string[] = [];
    services.holders.expect = (owner) => void expected.push(owner);
    join();
    join({ waitTime: ms(0) });
    join({ waitTime: ms(5_000) });
    const settled = join({ waitTime: ms(500) });
    settled.settled = true;
    line.foundBusy({ ...BUSY, holder: undefined }, services.clock.now());
    await runtime.advance(500);
    line.foundBusy({ ...BUSY, holder: 'another:1' }, services.clock.now());
    line.foundBusy(BUSY, services.clock.now());
    await runtime.advance(3_899);
    expect(expected).toEqual([]);
    await runtime.advance(1);
    expect(expected).toEqual(['other:1']);
    const late = join({ waitTime: ms(600) });
    line.watch(late);
    line.foundBusy({ ...BUSY, holder: 'another:1' }, services.clock.now(), late);
    expect(expected).toEqual(['other:1', 'other:1', 'another:1']);
    expect(runtime.timers).toBe(1);
  });

  describe('looks for callers that give up soon', () => {
    const crowd = () => {
      const scene = setUp();
      const expected: string[] = [];
      scene.services.holders.expect = (owner) => void expected.push(owner);
      const searches = { count: 0 };
      const patient = scene.join({ waitTime: ms(600_000) });
      const remainingWait = () => ++searches.count && 600_000;
      Object.defineProperty(patient, 'remainingWait', { get: remainingWait });
      return { ...scene, expected, searches };
    };

    it('only now and then, although thousands give up one after another', async () => {
      const { runtime, services, line, join, expected, searches } = crowd();
      for (let i = 0; i < 1_000; i++) line.watch(join({ waitTime: ms(2_000 + i) }));
      line.foundBusy(BUSY, services.clock.now());
      await runtime.advance(1_399);
      expect(expected).toEqual([]);
      const before = searches.count;
      for (let time = 0; time < 1_000; time += 100) {
        expected.length = 0;
        await runtime.advance(100);
        expect(new Set(expected)).toEqual(new Set(['other:1']));
      }
      expect(searches.count - before).toBeLessThanOrEqual(11);
    });

    it('only now and then, although the lock often comes to this process and leaves it again', async () => {
      const { runtime, services, line, join, expected, searches } = crowd();
      for (let time = 0; time < 1_000; time += 10) {
        line.forgetHolder();
        line.foundBusy(BUSY, services.clock.now());
        await runtime.advance(10);
      }
      expect(searches.count).toBeLessThanOrEqual(11);
      expect(expected).toEqual([]);
      // One that came while this process held the lock is found a little later.
      line.foundBusy(BUSY, services.clock.now());
      line.forgetHolder();
      join({ waitTime: ms(500) });
      line.foundBusy(BUSY, services.clock.now());
      await runtime.advance(100);
      expect(expected).toEqual(['other:1']);
    });
  });

  it('reports a failure for its first caller, if it has one, on a backend that does not report outages', () => {
    const { logger, line, join } = setUp();
    line.failure = unavailable;
    line.reportFailure();
    expect(logger.errors).toEqual([]);
    join();
    line.reportFailure();
    expect(logger.errors).toEqual(["The lock 'order' could not be acquired: no connection"]);
  });

  it('gives the reason of an outage that its callers wait for', () => {
    const { backend, line, join } = setUp({ health: true });
    const waiter = join();
    backend.health?.health.failed(false, 'ECONNRESET');
    expect(line.unavailable(waiter).message).toContain('scripted: no usable answer for 0 ms (ECONNRESET)');
    line.failure = unavailable;
    expect(line.unavailable(waiter).message).toContain('no connection');
  });
});
