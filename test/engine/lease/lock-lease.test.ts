import { LockLostError, LockNotOwnedError, LockUnavailableError } from '../../../lib/engine/errors.js';
import type { LockEvents } from '../../../lib/engine/events/lock-events.js';
import type { Lease } from '../../../lib/engine/lease/lease.js';
import { ms, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

describe('a lease', () => {
  const world = openVirtualWorld();

  it('has the names of its locks', async () => {
    const { locks } = await world.process();
    const names: string[] = [];
    for (const name of ['order', ['order', 'stock'], ['order', 'parcel', 'stock']])
      await locks.withLock(name as string, (lease) => void names.push(lease.name));
    expect(names).toEqual(['order', 'order, stock', 'order, parcel, stock']);
  });

  it('is not held once its time is over, even if no timer has fired', async () => {
    const { locks, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '10s' });
    runtime.block(9_800);
    expect([lease.held, lease.remainingTime()]).toEqual([true, 98]);
    runtime.block(98);
    expect([lease.held, lease.remainingTime()]).toEqual([false, 0]);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
  });

  it('is not certain to be held while the clocks of its machine diverge', async () => {
    const { locks, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '60s' });
    runtime.setWallClock(-1_100);
    expect(lease.held).toBe(false);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
    runtime.setWallClock(1_100);
    expect(lease.held).toBe(true);
    lease.assertHeld();
    await lease.release();
  });

  it('is extended when extend() settles, and not before', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '10s' });
    await lease.extend('60s');
    expect(lease.remainingTime()).toBeGreaterThan(50_000);
    backend.disturb(refused, 'renew');
    expect(await errorOf(runtime.until(lease.extend('90s')))).toBeInstanceOf(LockUnavailableError);
  });

  it('that is released a second time waits for the first release, whose error it does not repeat', async () => {
    const { locks, backend, runtime } = await world.process();
    const other = await world.process();
    for (const [name, isLost] of [
      ['order', false],
      ['order', true],
      [['order', 'stock'], false],
      [['order', 'stock'], true],
    ] as const) {
      const lease = await locks.acquire(name as string);
      if (isLost) await other.backend.forceRelease(locks.engine.services.keyOf('order'));
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'release');
      const ended: string[] = [];
      const first = lease.release().then(
        () => void ended.push('first'),
        () => void ended.push('first failed'),
      );
      const second = lease.release().then(() => void ended.push('second'));
      await runtime.settle();
      expect(ended).toEqual([]);
      answer.open();
      await Promise.all([first, second]);
      expect(ended.sort()).toEqual([isLost ? 'first failed' : 'first', 'second']);
      backend.heal();
    }
  });

  it('that was detached belongs to its ticket from then on', async () => {
    const { locks, runtime } = await world.process();
    const events: LockEvents['detached'][] = [];
    locks.on('detached', (event) => events.push(event));
    const lease = await locks.acquire('order', { group: 'payments' });
    const ticket = await runtime.until(lease.detach({ for: '5m' }));
    expect(events).toMatchObject([{ name: 'order', group: 'payments', owner: lease.owner, leaseTime: 300_000 }]);
    expect(() => lease.assertHeld()).toThrow(LockNotOwnedError);
    expect(await errorOf(lease.extend('5m'))).toBeInstanceOf(LockNotOwnedError);
    await lease.release();
    const adopted = await locks.adopt(ticket);
    expect(adopted.held).toBe(true);
    await adopted.release();
  });

  it('ends with an event that lacks its duration, if nobody listened when it began', async () => {
    const { locks, runtime } = await world.process();
    const [released, detached] = [await locks.acquire('order'), await locks.acquire('stock')];
    const durations: (number | undefined)[] = [];
    locks.on('released', ({ held }) => durations.push(held));
    locks.on('detached', ({ held }) => durations.push(held));
    await runtime.advance(50);
    await released.release();
    await detached.detach({ for: '5m' });
    expect(durations).toEqual([undefined, undefined]);
    const [next, other] = [await locks.acquire('order'), await locks.acquire('parcel')];
    await runtime.advance(50);
    await next.release();
    await other.detach({ for: '5m' });
    expect(durations.slice(2)).toEqual([50, 50]);
  });

  it('whose time was over before its body had ended is not kept for holdAtLeast', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order', { leaseTime: '1s' });
    const body = () => runtime.block(988); // to the last millisecond that is certain
    const outcome = await errorOf(locks.holdWhile(lease, body, { holdAtLeast: ms(5_000) }));
    expect(outcome).toBeInstanceOf(LockLostError);
    expect(backend.commands).toEqual(['acquire', 'release']);
    expect(await locks.isLocked('order')).toBe(false);
  });

  it('is announced with those of its locks that its process did not hold yet', async () => {
    const { locks } = await world.process();
    const names: string[] = [];
    locks.on('acquired', ({ name }) => names.push(name));
    await locks.withLock(['order', 'stock'], () => locks.withLock(['order', 'parcel'], async () => {}));
    expect(names).toEqual(['order', 'stock', 'parcel']);
  });

  it('tells for how long it was held when it is lost', async () => {
    const { locks, runtime } = await world.process();
    const durations: (number | undefined)[] = [];
    locks.on('lost', ({ held }) => durations.push(held));
    await runtime.advance(500);
    await locks.acquire('order');
    await runtime.advance(70);
    await locks.forceRelease('order');
    expect(durations).toEqual([70]);
  });

  it.each(['order', 'stock'])(
    'of several locks is lost when the backend no longer has one of them: %s',
    async (gone) => {
      const [{ locks }, other] = [await world.process(), await world.process()];
      const lease = await locks.acquire(['order', 'stock']);
      const { signal } = lease;
      await other.backend.forceRelease(locks.engine.services.keyOf(gone));
      const error = await errorOf(lease.release());
      expect(error).toBeInstanceOf(LockLostError);
      expect(signal.reason).toBe(error);
      expect(await locks.isLocked('order')).toBe(false);
      expect(await locks.isLocked('stock')).toBe(false);
    },
  );

  it('runs no body until it is certain to be held, after the clocks have diverged', async () => {
    const { locks, backend, runtime } = await world.process();
    const lease = await locks.acquire('order');
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'renew', 'inspect');
    runtime.suspend(2_000);
    let isRunning = false;
    const running = lease.run(async () => {
      isRunning = true;
      expect(lease.held).toBe(true);
    });
    await runtime.settle();
    expect(isRunning).toBe(false);
    answer.open();
    await runtime.until(running);
    expect(isRunning).toBe(true);
    await lease.release();
  });

  describe('that is released in the background', () => {
    /** Runs a body whose release in the background gets this answer later. */
    const open = async () => {
      const process = await world.process({ shutdownTimeout: ms(10_000) });
      const { locks, backend } = process;
      const losses: LockEvents['lost'][] = [];
      locks.on('lost', (event) => losses.push(event));
      const answer = latch();
      backend.disturb(answerAfter(answer.promise), 'release');
      const run = (body = async (_: Lease) => {}) => locks.withLock('order', { release: 'background' }, body);
      return { ...process, losses, answer, run };
    };

    it('is not lost when the answer is that it was released', async () => {
      const { run, answer, runtime, losses, logger } = await open();
      await run();
      answer.open();
      await runtime.settle();
      expect([...losses, ...logger.warnings]).toEqual([]);
    });

    it('is lost when the answer is that it was gone', async () => {
      const { locks, run, answer, runtime, losses, logger } = await open();
      const other = await world.process();
      let signal: AbortSignal | undefined;
      await run(async (lease) => {
        signal = lease.signal;
        await other.backend.forceRelease(locks.engine.services.keyOf('order'));
      });
      expect(losses).toEqual([]);
      answer.open();
      await runtime.settle();
      expect(losses).toMatchObject([{ name: 'order' }]);
      expect(signal?.reason).toBe(losses[0].error);
      expect(logger.warnings).toHaveLength(1);
    });

    it('keeps its service from closing until the answer has come, and not longer', async () => {
      const { locks, run, answer, runtime } = await open();
      await run();
      let isClosed = false;
      const closing = locks.close().then(() => {
        isClosed = true;
      });
      await runtime.advance(2_000);
      expect(isClosed).toBe(false);
      answer.open();
      await runtime.until(closing, 1_000);
    });

    it('does not keep its service from closing once it was answered', async () => {
      const { locks, run, answer, runtime } = await open();
      answer.open();
      await run();
      await runtime.settle();
      await runtime.until(locks.close(), 1_000);
    });
  });
});
