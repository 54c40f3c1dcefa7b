import { BackendError } from '../../../lib/backends/lock-backend.js';
import { LockKeyError, LockLostError, LockUnavailableError } from '../../../lib/engine/errors.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, answerLost, type Disturbance, refused } from '../../support/watched/watched-backend.js';

describe('a writer that reads in its own scope', () => {
  const world = openVirtualWorld();

  it('is followed by a writer with a higher token than its reader had', async () => {
    const { locks, runtime } = await world.process();
    const first = await locks.acquire('page', { type: 'write' });
    const waiters = [0, 1].map(() => locks.acquire('page', { type: 'write' }));
    await first.release();
    const second = await runtime.until(waiters[0]);
    await runtime.advance(1);
    const reading = await second.run(() => locks.acquire('page', { type: 'read' }));
    await reading.release();
    await second.release();
    const third = await runtime.until(waiters[1]);
    expect(third.fencingToken).toBeGreaterThan(reading.fencingToken);
    await third.release();
  });

  it.each<[string, LockOptions]>([
    ['tokens reserved for it', {}],
    ['a fixed lease', { leaseTime: '30s' }],
  ])('keeps the next writer of its process waiting while it continues to read: %s', async (_, options) => {
    const { locks, runtime } = await world.process();
    const first = await locks.acquire('page', { type: 'write' });
    const waiters = [0, 1, 2].map(() => locks.acquire('page', { ...options, type: 'write' }));
    await runtime.advance(200); // until the clock of the tokens is no longer ahead
    await first.release();
    const second = await runtime.until(waiters[0]);
    const reading = await second.run(() => locks.acquire('page', { type: 'read' }));
    await second.release();
    let isWriting = false;
    void waiters[1].then(() => {
      isWriting = true;
    });
    await runtime.advance(1_000);
    expect([isWriting, reading.held]).toEqual([false, true]);
    await reading.release();
    await (await runtime.until(waiters[1])).release();
    await (await runtime.until(waiters[2])).release();
  });

  it('does not lose its read lock to holdAtLeast of a reader that has left', async () => {
    const [{ locks, backend, runtime }, other] = [await world.process(), await world.process()];
    const { engine } = locks;
    const write = await locks.acquire('page', { type: 'write' });
    const read = () => locks.acquire('page', { type: 'read' });
    const first = await write.run(() => engine.acquireToRun('page', { type: 'read' }, 'withLock()'));
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'renew');
    const left = engine.holdWhile(first, () => {}, 500);
    await runtime.settle();
    const second = await write.run(read); // while that time still runs
    answer.open();
    await runtime.until(left);
    backend.heal();
    const third = await write.run(read);
    await second.release();
    await runtime.advance(600);
    await write.release();
    expect(await other.locks.tryAcquire('page', { type: 'write' })).toBeNull();
    expect(third.held).toBe(true);
    await third.release();
    await (await runtime.until(other.locks.acquire('page', { type: 'write' }))).release();
  });

  it('reads for as long as holdAtLeast of its reader says, also after the write lock was given back', async () => {
    const [{ locks, runtime }, other] = [await world.process(), await world.process()];
    const { engine } = locks;
    const write = await locks.acquire('page', { type: 'write' });
    const reading = await write.run(() => engine.acquireToRun('page', { type: 'read' }, 'withLock()'));
    await engine.holdWhile(reading, () => {}, 500);
    await runtime.advance(100);
    await write.release();
    await runtime.advance(300);
    expect(await other.locks.tryAcquire('page', { type: 'write' })).toBeNull();
    await runtime.advance(200);
    const next = await other.locks.tryAcquire('page', { type: 'write' });
    expect(next).not.toBeNull();
    await next?.release();
  });

  it('reads under another owner id if the write lock was given back while its read lock was being confirmed', async () => {
    const { locks, backend, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    const read = () => locks.acquire('page', { type: 'read' });
    await (await write.run(read)).release();
    runtime.setWallClock(5_000);
    const answer = latch();
    const onlyOfReaders: Disturbance = async (execute, request) => {
      const reply = await execute();
      if ((request as { type: string }).type === 'read') await answer.promise;
      return reply;
    };
    backend.disturb(onlyOfReaders, 'renew');
    const reading = write.run(read);
    await runtime.settle();
    await write.release();
    answer.open();
    const lease = await runtime.until(reading);
    expect(lease.owner).not.toBe(write.owner);
    await lease.release();
    expect(await locks.isLocked('page')).toBe(false);
  });

  it('only reads in what it calls while it reads, which may go on after it', async () => {
    const [{ locks, runtime }, other] = [await world.process(), await world.process()];
    const write = await locks.acquire('page', { type: 'write' });
    const read = await write.run(() => locks.acquire('page', { type: 'read' }));
    const inside = await read.run(() => locks.acquire('page', { type: 'read' }));
    expect(inside.owner).toBe(read.owner);
    await write.release();
    await read.release();
    const reading = await runtime.until(other.locks.acquire('page', { type: 'read', waitTime: 1_000 }));
    expect(inside.held).toBe(true);
    expect(await other.locks.tryAcquire('page', { type: 'write', reentry: false })).toBeNull();
    await reading.release();
    await inside.release();
    expect(await other.locks.isLocked('page')).toBe(false);
  });

  it('waits out an outage for its read lock', async () => {
    const { locks, backend, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    backend.disturb(refused, 'acquire');
    const reading = write.run(() => locks.acquire('page', { type: 'read' }));
    await runtime.advance(3_000);
    backend.heal();
    await (await runtime.until(reading)).release();
    await write.release();
    expect(await locks.isLocked('page')).toBe(false);
  });

  it('leaves no read lock behind whose answer was lost', async () => {
    const { locks, backend, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    backend.disturb(answerLost, 'acquire');
    const reading = write.run(() => locks.acquire('page', { type: 'read', waitTime: 200 }));
    await expect(runtime.until(reading)).rejects.toThrow('could not be acquired');
    expect(runtime.monotonic()).toBeLessThan(1_000);
    await write.release();
    await runtime.settle();
    expect(await locks.isLocked('page')).toBe(false);
  });

  it('does not report its read lock as lost because an earlier request for it is undone at the same time', async () => {
    const { locks, backend, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    backend.disturb(answerLost, 'acquire');
    const waiting = write.run(() => locks.acquire('page', { type: 'read' }));
    await runtime.advance(200);
    backend.heal();
    const reading = await runtime.until(waiting);
    await runtime.until(write.release());
    let sent = 0;
    backend.disturb(async (execute) => {
      if (sent++ === 0) await new Promise<void>((resolve) => runtime.timer(5, resolve)); // the next one overtakes it
      return execute();
    }, 'release');
    await runtime.until(reading.release());
    await runtime.settle();
    expect(sent).toBe(2);
    expect(await locks.isLocked('page')).toBe(false);
  });

  it('keeps reading when an earlier reader gives back a lost read lock late', async () => {
    const { locks, backend, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    const read = (leaseTime?: number) => write.run(() => locks.acquire('page', { type: 'read', leaseTime }));
    const first = await read(200);
    await runtime.advance(250);
    const arrived = latch();
    backend.disturb(async (execute) => {
      await arrived.promise;
      return execute();
    }, 'release');
    await expect(first.release()).rejects.toThrow(LockLostError);
    const second = await read();
    backend.heal();
    arrived.open();
    await runtime.settle();
    await write.release();
    expect(second.held).toBe(true);
    const other = await world.process();
    expect((await other.locks.tryAcquire('page', { type: 'write' }))?.owner).toBeUndefined();
    await second.release();
    expect(await other.locks.isLocked('page')).toBe(false);
  });

  it('keeps reading when an earlier reader gives back a lost read lock after the write lock', async () => {
    const { locks, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    const first = await write.run(() => locks.acquire('page', { type: 'read', leaseTime: 200 }));
    await runtime.advance(250);
    const second = await write.run(() => locks.acquire('page', { type: 'read' }));
    await write.release();
    await expect(first.release()).rejects.toThrow(LockLostError);
    await runtime.settle();
    expect(second.held).toBe(true);
    const other = await world.process();
    expect((await other.locks.tryAcquire('page', { type: 'write' }))?.owner).toBeUndefined();
    await second.release();
    expect(await other.locks.isLocked('page')).toBe(false);
  });

  describe('lets the next writer in', () => {
    /** Expects that another process gets the write lock long before any lease can have ended. */
    const isFreeFor = async ({ locks }: Awaited<ReturnType<typeof world.process>>) => {
      const next = await world.runtime.until(locks.acquire('page', { type: 'write', waitTime: '1s' }));
      expect(next.held).toBe(true);
      await next.release();
    };

    it.each(['before', 'after'])(
      'when its reader left before the answer came, which came %s the write lock was given back',
      async (order) => {
        const [{ locks, backend, runtime }, other] = [await world.process(), await world.process()];
        const write = await locks.acquire('page', { type: 'write' });
        const answer = latch();
        backend.disturb(answerAfter(answer.promise), 'acquire');
        const reading = errorOf(write.run(() => locks.acquire('page', { type: 'read', waitTime: 100 })));
        await runtime.until(reading);
        backend.heal();
        if (order === 'before') answer.open();
        await runtime.settle();
        await write.release();
        answer.open();
        await runtime.settle();
        expect(await other.locks.isLocked('page')).toBe(false);
        await isFreeFor(other);
      },
    );

    it('when its reader has released before it', async () => {
      const [{ locks, runtime }, other] = [await world.process(), await world.process()];
      await locks.withLock('page', { type: 'write' }, () => locks.withLock('page', { type: 'read' }, async () => {}));
      await runtime.settle();
      await isFreeFor(other);
    });

    it('when it was lost and is not released, and its reader has released before that', async () => {
      const [{ locks, runtime }, other] = [await world.process(), await world.process()];
      const lease = await locks.acquire('page', { type: 'write', leaseTime: '5s' });
      await lease.run(() => locks.withLock('page', { type: 'read' }, async () => {}));
      await runtime.advance(40_000); // longer than the lease that its reader had
      expect(lease.held).toBe(false);
      await isFreeFor(other);
      await expect(lease.release()).rejects.toThrow(LockLostError);
    });
  });

  it.each([
    ['it still waits', 60_000],
    ['it has left', 100],
  ])(
    'does not hold by the old owner when its acquisition failed after the write lock was released, and %s',
    async (_, waitTime) => {
      const { locks, backend, runtime } = await world.process();
      const write = await locks.acquire('page', { type: 'write' });
      const answer = latch();
      backend.disturb(async (execute, request) => {
        const reply = answerLost(execute, request);
        await answer.promise;
        return reply;
      }, 'acquire');
      const reading = write.run(() => locks.acquire('page', { type: 'read', waitTime }));
      const outcome = reading.catch((error: Error) => error);
      await runtime.advance(200);
      await write.release();
      backend.heal();
      answer.open();
      await runtime.advance(1_000);
      expect((await locks.inspect('page')).owners.map(({ owner }) => owner)).not.toContain(write.owner);
      if (waitTime === 100) return expect(await outcome).toBeInstanceOf(LockUnavailableError);
      const read = await runtime.until(reading);
      expect(read.owner).not.toBe(write.owner);
      await read.release();
      expect(await locks.isLocked('page')).toBe(false);
    },
  );

  it.each([
    ['still holds the write lock', true],
    ['has given the write lock back', false],
  ])('does not read when both were released by force during the acquisition, and it %s', async (_, holds) => {
    const { locks, backend, runtime } = await world.process({ onLost: 'warn' });
    const other = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const reading = write.run(() => locks.acquire('page', { type: 'read', waitTime: '1m' }));
    const outcome = reading.catch((error: Error) => error);
    await runtime.settle();
    if (!holds) await write.release();
    expect(await locks.forceRelease('page')).toBe(true);
    const next = await other.locks.acquire('page', { type: 'write' });
    backend.heal();
    answer.open();
    await runtime.advance(1_000);
    expect(next.held).toBe(true);
    if (holds) expect(await outcome).toBeInstanceOf(LockLostError);
    expect((await locks.inspect('page')).owners.map(({ owner }) => owner)).toEqual([next.owner]);
    await next.release();
    if (holds) return;
    // The reader, which is independent now, has waited for the next writer.
    const read = await runtime.until(reading);
    expect(read.owner).not.toBe(write.owner);
    expect(read.held).toBe(true);
    await read.release();
  });

  it('leaves no read lock behind that was acquired after a forced release of both', async () => {
    const [{ locks, backend, runtime }, other] = [await world.process({ onLost: 'warn' }), await world.process()];
    const write = await locks.acquire('page', { type: 'write' });
    const arrived = latch();
    backend.disturb(async (execute) => {
      await arrived.promise;
      return execute();
    }, 'acquire');
    const outcome = errorOf(write.run(() => locks.acquire('page', { type: 'read', waitTime: '1m' })));
    await runtime.settle();
    expect(await locks.forceRelease('page')).toBe(true);
    backend.heal();
    arrived.open();
    await runtime.advance(1_000);
    expect(await outcome).toBeInstanceOf(LockLostError);
    expect(await other.locks.isLocked('page')).toBe(false);
    await write.release();
    await runtime.advance(1_000);
    expect(await other.locks.isLocked('page')).toBe(false);
  });

  it('frees the lock when writer and reader have both released it, in either order', async () => {
    for (const writerFirst of [true, false]) {
      const { locks } = await world.process();
      const write = await locks.acquire('page', { type: 'write' });
      const reading = await write.run(() => locks.acquire('page', { type: 'read' }));
      await (writerFirst ? write : reading).release();
      await (writerFirst ? reading : write).release();
      expect(await locks.isLocked('page')).toBe(false);
    }
  });

  describe('and gets no read lock', () => {
    const open = async () => {
      const process = await world.process();
      const write = await process.locks.acquire('page', { type: 'write' });
      const read = (options: LockOptions = {}) =>
        write.run(() => process.locks.acquire('page', { ...options, type: 'read' }));
      return { ...process, write, read };
    };
    const failing =
      (kind: BackendError['kind']): Disturbance =>
      async () => {
        throw new BackendError('no usable answer', kind, 'refused');
      };

    it.each([
      ['denied', LockUnavailableError, "The lock 'page' could not be acquired: no usable answer"],
      ['key', LockKeyError, "The lock 'page' cannot be used: no usable answer"],
    ] as const)('is refused at once when the backend is %s', async (kind, type, message) => {
      const { backend, runtime, write, read } = await open();
      backend.disturb(failing(kind), 'acquire');
      const errors = await runtime.until(Promise.all([errorOf(read()), errorOf(read())]), 100);
      for (const error of errors) expect(error).toBeInstanceOf(type);
      expect(errors.map((error) => error.message)).toEqual([message, message]);
      expect([backend.count('acquire'), runtime.timers, runtime.monotonic()]).toEqual([2, 1, 0]); // one is the heartbeat
      await write.release();
    });

    it('is refused after one request when it tries once, while a patient reader continues to wait', async () => {
      const { backend, runtime, write, read } = await open();
      backend.disturb(refused, 'acquire');
      const patient = read();
      const refusal = await runtime.until(errorOf(read({ waitTime: 0 })), 100);
      expect(refusal).toBeInstanceOf(LockUnavailableError);
      expect([refusal.message, runtime.monotonic()]).toEqual([
        "The lock 'page' could not be acquired: the connection is closed",
        0,
      ]);
      expect(runtime.keepAliveTimers).toBe(1);
      await runtime.advance(3_000);
      backend.heal();
      await (await runtime.until(patient, 1_100)).release();
      await write.release();
    });

    it('is refused when an outage has lasted for its outageTimeout', async () => {
      const { backend, runtime, write, read } = await open();
      backend.disturb(refused, 'acquire', 'renew', 'ping' as never);
      const refusal = await runtime.until(errorOf(read({ outageTimeout: 2_000 })));
      expect(refusal).toBeInstanceOf(LockUnavailableError);
      expect(refusal.message).toMatch(/^Gave up waiting for the lock 'page': /);
      expect(runtime.monotonic()).toBeGreaterThanOrEqual(2_000);
      expect(runtime.monotonic()).toBeLessThan(3_500);
      expect(runtime.keepAliveTimers).toBe(0);
      backend.heal();
      await write.release();
    });

    it.each(['abort', 'timeout'])('leaves no timer and sends no request after %s', async (how) => {
      const { backend, runtime, write, read } = await open();
      backend.disturb(refused, 'acquire');
      const leaves = new AbortController();
      const left = errorOf(read(how === 'abort' ? { signal: leaves.signal } : { waitTime: 3_000 }));
      await runtime.advance(2_999);
      expect(runtime.keepAliveTimers).toBeGreaterThan(0);
      leaves.abort();
      await runtime.advance(1);
      expect((await left).name).toBe(how === 'abort' ? 'LockAbortedError' : 'LockUnavailableError');
      expect(runtime.keepAliveTimers).toBe(0);
      const sent = backend.count('acquire');
      await runtime.advance(5_000);
      expect(backend.count('acquire')).toBe(sent);
      backend.heal();
      await write.release();
    });
  });

  it('has one timer for its next request, also if another reader asks in between', async () => {
    const { locks, backend, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    backend.disturb(refused, 'acquire');
    const read = () => write.run(() => locks.acquire('page', { type: 'read' }));
    const readers = [read()];
    await runtime.advance(3_000);
    const sent = backend.count('acquire');
    readers.push(read());
    await runtime.settle();
    expect([backend.count('acquire'), runtime.keepAliveTimers]).toEqual([sent + 1, 1]);
    backend.heal();
    for (const lease of await runtime.until(Promise.all(readers))) await lease.release();
    expect(runtime.keepAliveTimers).toBe(0);
    await write.release();
  });

  it('asks again after a short pause in an outage, whatever the one before had been', async () => {
    const { locks, backend, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    const read = () => write.run(() => locks.acquire('page', { type: 'read', leaseTime: 1_000 }));
    backend.disturb(refused, 'acquire');
    const first = read();
    await runtime.advance(3_000);
    backend.heal();
    await (await runtime.until(first)).release();
    await runtime.advance(1_500); // the read lock lapses
    backend.disturb(refused, 'acquire');
    const sent = backend.count('acquire');
    const second = read();
    await runtime.advance(60);
    expect(backend.count('acquire') - sent).toBeGreaterThan(1);
    backend.heal();
    await (await runtime.until(second)).release();
    await write.release();
  });

  it('gets an error about the missing answer, not about a failure before its last read lock', async () => {
    const { locks, backend, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    const read = (waitTime?: number) =>
      write.run(() => locks.acquire('page', { type: 'read', leaseTime: 1_000, waitTime }));
    backend.disturb(refused, 'acquire');
    const first = read();
    await runtime.advance(100);
    backend.heal();
    await (await runtime.until(first)).release();
    await runtime.advance(1_500);
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const refusal = await runtime.until(errorOf(read(300)));
    expect(refusal.message).toMatch(/^The lock 'page' could not be acquired: .*: no answer within 300 ms$/);
    answer.open();
    await runtime.settle();
    await write.release();
  });

  it('asks once for all of its readers, also for those that come later', async () => {
    const { locks, backend, runtime } = await world.process();
    await locks.withLock('page', { type: 'write' }, async () => {
      const read = () => locks.acquire('page', { type: 'read' });
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'acquire');
      const readers = [read(), read()];
      await runtime.settle();
      expect(backend.count('acquire')).toBe(2);
      answer.open();
      const leases = await Promise.all(readers);
      const late = await read();
      expect(new Set([...leases, late].map(({ owner, fencingToken }) => `${owner} ${fencingToken}`)).size).toBe(1);
      expect(backend.count('acquire')).toBe(2);
      for (const lease of [...leases, late]) await lease.release();
      await (await read()).release();
      expect([backend.count('acquire'), backend.count('release')]).toEqual([2, 0]);
    });
    expect(backend.count('release')).toBe(2);
  });

  it('has a read lock with the lease of its first reader', async () => {
    const { locks, runtime } = await world.process();
    const write = await locks.acquire('page', { type: 'write' });
    const read = await write.run(() => locks.acquire('page', { type: 'read', leaseTime: 7_000 }));
    expect(read.remainingTime()).toBeLessThanOrEqual(7_000);
    await runtime.advance(7_000);
    expect([read.held, write.held]).toEqual([false, true]);
    await errorOf(read.release());
    await write.release();
  });

  it('waits no longer than its waitTime in all when it asks as an independent reader after the write lock', async () => {
    const [{ locks, backend, runtime }, other] = [await world.process(), await world.process()];
    const write = await locks.acquire('page', { type: 'write' });
    const answer = latch();
    backend.disturb(async () => {
      await answer.promise;
      throw new BackendError('no answer', 'unavailable', 'refused');
    }, 'acquire');
    const reading = errorOf(write.run(() => locks.acquire('page', { type: 'read', waitTime: 3_000 })));
    await runtime.advance(2_000);
    await write.release();
    const next = await other.locks.acquire('page', { type: 'write' });
    backend.heal();
    answer.open();
    expect((await runtime.until(reading)).name).toBe('LockBusyError');
    expect(runtime.monotonic()).toBe(3_000);
    await next.release();
  });

  it('hears of the loss of a read lock that somebody uses, and lets an unused one lapse without a release', async () => {
    const { locks, backend, runtime } = await world.process();
    const lost: string[] = [];
    locks.on('lost', ({ type, name }) => lost.push(`${type} ${name}`));
    const write = await locks.acquire('page', { type: 'write' });
    const read = () => write.run(() => locks.acquire('page', { type: 'read', leaseTime: 1_000 }));
    await (await read()).release();
    await runtime.advance(2_000);
    // A late release would free the lock of the next reader, which has the same owner.
    expect([lost, backend.count('release')]).toEqual([[], 0]);
    const used = await read();
    await runtime.advance(2_000);
    expect([lost, used.held, write.held]).toEqual([['read page'], false, true]);
    await errorOf(used.release());
    await write.release();
  });
});
