import { BackendError } from '../../../lib/backends/lock-backend.js';
import { LockAbortedError, LockBusyError, LockKeyError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import { leftovers, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerLost, type Disturbance, refused } from '../../support/watched/watched-backend.js';

const silent: Disturbance = () => new Promise(() => {});

/** The error of a backend that hangs, with a command timeout of two seconds. */
const timingOut =
  (runtime: { timer(delay: number, callback: () => void): unknown }): Disturbance =>
  () =>
    new Promise((_, reject) =>
      runtime.timer(2_000, () => reject(new BackendError('no answer within 2000 ms', 'unavailable', 'unknown'))),
    );

describe('when the backend gives no answer', () => {
  const world = openVirtualWorld();

  describe('to an acquisition', () => {
    it.each([
      ['refused', refused],
      ['not answered', answerLost],
    ])(
      'that is %s, a caller without waitTime waits for an answer, and one error is reported',
      async (_, disturbance) => {
        const process = await world.process({ outageTimeout: FOREVER });
        const { locks, backend, runtime } = process;
        const errors: Error[] = [];
        locks.on('error', (error) => errors.push(error));
        backend.disturb(disturbance, 'acquire');
        const waiting = locks.acquire('order');
        await runtime.advance(60_000);
        expect(errors).toEqual([expect.any(LockUnavailableError)]);
        // It neither loops without a pause, nor pauses for more than a second.
        expect(backend.count('acquire')).toBeGreaterThan(55);
        expect(backend.count('acquire')).toBeLessThan(200);
        backend.heal();
        const lease = await runtime.until(waiting);
        expect(lease.held).toBe(true);
        expect((await locks.inspect('order')).owners.length).toBe(1);
        await lease.release();
        await runtime.advance(1_000);
        expect(leftovers(process)).toEqual(NOTHING);
      },
    );

    it('logs the error when nobody listens for it', async () => {
      const { locks, backend, runtime, logger } = await world.process();
      backend.disturb(refused, 'acquire');
      const waiting = locks.acquire('order');
      await runtime.advance(5_000);
      expect(logger.errors).toEqual([
        "memory does not answer. A caller waits for the lock 'order'. If there is no answer by 00:00:10 UTC, it gets LockUnavailableError (outageTimeout)",
      ]);
      backend.heal();
      await (await runtime.until(waiting)).release();
    });

    it('tells a caller with a waitTime of 0 at once, with the cause', async () => {
      const { locks, backend } = await world.process();
      backend.disturb(refused, 'acquire');
      const error = await errorOf(locks.acquire('order', { waitTime: 0 }));
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.cause).toBeInstanceOf(BackendError);
      expect(await errorOf(locks.tryAcquire('order'))).toBeInstanceOf(LockUnavailableError);
      expect(backend.count('acquire')).toBe(2);
    });

    it('tells a caller with a waitTime of 0 although others wait out the outage', async () => {
      const { locks, backend, runtime } = await world.process();
      backend.disturb(refused, 'acquire');
      const waiting = locks.acquire('order');
      await runtime.advance(100);
      expect(await errorOf(locks.acquire('order', { waitTime: 0 }))).toBeInstanceOf(LockUnavailableError);
      backend.heal();
      await (await runtime.until(waiting)).release();
    });

    it.each([
      ['refuses', () => refused],
      ['says nothing', () => silent],
      ['times out', timingOut],
    ])('tells all callers with a waitTime in time when it %s', async (_, make) => {
      const process = await world.process();
      const { locks, backend, runtime } = process;
      backend.disturb(make(runtime), 'acquire', 'ping');
      const times = [300, 500, 700, 3_000].map(async (waitTime) => {
        const error = await errorOf(locks.acquire('order', { waitTime }));
        expect(error).toBeInstanceOf(LockUnavailableError);
        return runtime.monotonic();
      });
      await runtime.advance(4_000);
      expect(await Promise.all(times)).toEqual([300, 500, 700, 3_000]);
    });

    it('does not report a holder that was seen before the outage', async () => {
      const [process, other] = [await world.process(), await world.process()];
      const { locks, backend, runtime } = process;
      const holder = await other.locks.acquire('order');
      const waiting = locks.acquire('order');
      await runtime.advance(100);
      const abort = new AbortController();
      const late = locks.acquire('order', { signal: abort.signal });
      await holder.release();
      const lease = await runtime.until(waiting);
      await runtime.advance(30); // longer than one process may hand the lock on
      backend.disturb(silent, 'acquire', 'release');
      void lease.release();
      const error = errorOf(locks.acquire('order', { waitTime: 500 }));
      await runtime.advance(600);
      expect(await error).toBeInstanceOf(LockUnavailableError);
      abort.abort();
      await errorOf(late);
    });

    it('ends the wait of a caller whose signal aborts', async () => {
      const { locks, backend, runtime } = await world.process();
      backend.disturb(silent, 'acquire');
      const abort = new AbortController();
      const error = errorOf(locks.acquire('order', { signal: abort.signal }));
      await runtime.advance(100);
      abort.abort();
      expect(await error).toBeInstanceOf(LockAbortedError);
    });

    it('but executes it, the next attempt recognises its own lock', async () => {
      const { locks, backend, runtime } = await world.process();
      backend.disturb(answerLost, 'acquire');
      const waiting = locks.acquire('order');
      await runtime.settle();
      backend.heal();
      const lease = await runtime.until(waiting);
      expect(runtime.monotonic()).toBeLessThan(1_000);
      expect(lease.held).toBe(true);
      await lease.release();
      expect(await locks.isLocked('order')).toBe(false);
    });

    it.each([
      ['waits no more', { waitTime: 500 }],
      ['tries once', { waitTime: 0 }],
    ])('but executes it, gives the lock back when its caller %s', async (_, options) => {
      const process = await world.process();
      const { locks, backend, runtime } = process;
      backend.disturb(answerLost, 'acquire');
      const error = await runtime.until(errorOf(locks.acquire('order', options)));
      expect(error).toBeInstanceOf(LockUnavailableError);
      await runtime.settle();
      expect(await locks.isLocked('order')).toBe(false);
      expect(leftovers(process)).toEqual(NOTHING);
    });

    it('but executes it, gives the lock back when it can be reached again', async () => {
      const process = await world.process();
      const { locks, backend, runtime } = process;
      backend.disturb(answerLost, 'acquire');
      backend.disturb(refused, 'release');
      const failed = errorOf(locks.acquire('order', { waitTime: 500 }));
      await runtime.advance(5_000);
      expect(await failed).toBeInstanceOf(LockUnavailableError);
      expect(await locks.isLocked('order')).toBe(true);
      backend.heal();
      await runtime.advance(2_500);
      expect(await locks.isLocked('order')).toBe(false);
      expect(leftovers(process)).toEqual(NOTHING);
    });

    it.each([
      ['fair', 'fair', 'fair'],
      ['write', 'read', 'read'],
    ] as const)(
      'to the second attempt of a %s lock whose caller left meanwhile, removes the waiter of the first attempt',
      async (type, held, next) => {
        const [{ locks, backend, runtime }, { locks: others }] = [await world.process(), await world.process()];
        const holder = await others.acquire('order', { type: held });
        const controller = new AbortController();
        const waiting = errorOf(locks.acquire('order', { type, signal: controller.signal }));
        await runtime.advance(100);
        let refuse = () => {};
        const underWay: Disturbance = () =>
          new Promise((_, reject) => {
            refuse = () => reject(new BackendError('the connection is closed', 'unavailable', 'refused'));
          });
        backend.disturb(underWay, 'acquire');
        await holder.release();
        await runtime.advance(100);
        controller.abort();
        expect(await waiting).toBeInstanceOf(LockAbortedError);
        refuse();
        await runtime.advance(100);
        await (await others.acquire('order', { type: next, waitTime: 0 })).release();
      },
    );

    it('because access is denied, or the key holds something else, tells the caller at once, and continues with others', async () => {
      const { locks, backend, runtime } = await world.process();
      const fail = (kind: 'denied' | 'key') => async () => {
        throw new BackendError(`${kind}!`, kind, 'refused');
      };
      backend.disturb(fail('denied'), 'acquire');
      const denied = await errorOf(locks.acquire('order'));
      expect(denied).toBeInstanceOf(LockUnavailableError);
      expect(denied.message).toContain('denied!');
      backend.disturb(fail('key'), 'acquire');
      const errors = await Promise.all([1, 2, 3].map(() => errorOf(locks.acquire('order'))));
      for (const error of errors) expect(error).toBeInstanceOf(LockKeyError);
      backend.heal();
      await (await runtime.until(locks.acquire('order'))).release();
    });
  });

  describe('to a release', () => {
    it.each([
      ['refused', refused],
      ['not answered', answerLost],
    ])('that is %s, serves the next waiter as soon as it can', async (_, disturbance) => {
      const process = await world.process();
      const { locks, backend, runtime } = process;
      const other = await world.process();
      // After a waiter has slept, this process is subscribed to the lock.
      const holder = await other.locks.acquire('order');
      const first = locks.acquire('order');
      const second = locks.acquire('order');
      await runtime.advance(100);
      await holder.release();
      const lease = await runtime.until(first);
      await runtime.advance(30); // longer than one process may hand the lock on
      backend.disturb(disturbance, 'release');
      await lease.release();
      await runtime.advance(10);
      backend.heal();
      const before = runtime.monotonic();
      const next = await runtime.until(second);
      expect(runtime.monotonic() - before).toBeLessThan(1_000);
      await next.release();
      await runtime.advance(1_000);
      expect(leftovers(process)).toEqual(NOTHING);
    });

    it('does not take the next message of another process for its own', async () => {
      const { locks, backend, runtime } = await world.process();
      const other = await world.process();
      const third = await world.process();
      const holder = await other.locks.acquire('order');
      const first = locks.acquire('order');
      const second = locks.acquire('order');
      const theirs = third.locks.acquire('order');
      await runtime.advance(100);
      await holder.release();
      const lease = await runtime.until(first);
      await runtime.advance(30);
      // The release is never executed, so the lock lapses, and no message arrives.
      backend.disturb(refused, 'release');
      await lease.release();
      const between = await runtime.until(theirs, 60_000);
      backend.heal();
      await runtime.advance(5_000);
      const before = runtime.monotonic();
      await between.release();
      const next = await runtime.until(second);
      expect(runtime.monotonic() - before).toBeLessThan(1_000);
      await next.release();
    });

    it('that was executed twice, counts it as released', async () => {
      const { locks, backend } = await world.process();
      backend.disturb(async (execute) => {
        await execute();
        return { ...(await execute()), resent: true };
      }, 'release');
      await locks.withLock('order', async () => {});
      expect(await locks.isLocked('order')).toBe(false);
    });
  });

  describe('to a subscription', () => {
    it('waits for the end of the lease', async () => {
      const { locks, backend, runtime } = await world.process();
      const other = await world.process();
      backend.delaySubscriptions(new Promise(() => {}));
      const holder = await other.locks.acquire('order', { leaseTime: '10s' });
      const waiting = locks.acquire('order');
      await runtime.advance(100);
      await holder.release();
      const lease = await runtime.until(waiting);
      expect(runtime.monotonic()).toBeLessThan(10_100);
      await lease.release();
    });

    it('tries again when it is finally confirmed', async () => {
      const { locks, backend, runtime } = await world.process();
      const other = await world.process();
      const confirmed = latch();
      backend.delaySubscriptions(confirmed.promise);
      const holder = await other.locks.acquire('order');
      const waiting = locks.acquire('order');
      await runtime.advance(100);
      await holder.release();
      await runtime.advance(500);
      confirmed.open();
      await runtime.until(waiting);
      expect(runtime.monotonic()).toBeLessThan(700);
      await (await waiting).release();
    });

    it('does not mistake the first message that it receives for one of its own that it missed', async () => {
      const { locks, backend, runtime } = await world.process();
      const other = await world.process();
      const confirmed = latch();
      backend.delaySubscriptions(confirmed.promise);
      await other.locks.acquire('order', { leaseTime: '1s' });
      const first = locks.acquire('order');
      const second = locks.acquire('order');
      const lease = await runtime.until(first); // when that lease has ended
      const theirs = other.locks.acquire('order');
      await runtime.advance(100);
      await lease.release();
      const holder = await runtime.until(theirs);
      await runtime.advance(500);
      confirmed.open();
      await runtime.advance(500);
      const before = runtime.monotonic();
      await holder.release();
      const next = await runtime.until(second);
      expect(runtime.monotonic() - before).toBeLessThan(1_000);
      await next.release();
    });
  });

  it('to inspect(), isLocked() and forceRelease(), says so', async () => {
    const { locks, backend } = await world.process();
    backend.disturb(refused, 'inspect', 'forceRelease');
    for (const ask of [locks.inspect('order'), locks.isLocked('order'), locks.forceRelease('order')]) {
      const error = await errorOf(ask);
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(error.cause).toBeInstanceOf(BackendError);
    }
  });

  it('reports what is left of the holder’s lease at the end of the wait, not at its start', async () => {
    const { locks, runtime } = await world.process();
    const other = await world.process();
    await other.locks.acquire('order', { leaseTime: '20s' });
    const error = (await runtime.until(errorOf(locks.acquire('order', { waitTime: '8s' })))) as LockBusyError;
    expect(error).toBeInstanceOf(LockBusyError);
    expect(error.remainingTime).toBeGreaterThan(11_000);
    expect(error.remainingTime).toBeLessThanOrEqual(12_000);
  });
});
