import type { Runtime } from '../../../lib/backends/runtime.js';
import { LockAbortedError, LockLostError } from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { leftovers, ms, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter } from '../../support/watched/watched-backend.js';

const LEASE = 30_000;

const sleep = (runtime: Runtime, time: number) =>
  new Promise<void>((resolve) => {
    runtime.timer(time, resolve);
  });

describe('a lock that is left to lapse, because its body ignores its signal', () => {
  const world = openVirtualWorld();

  /** A process whose stopped leader still runs, and has not been renewed since. */
  const stopped = async () => {
    const process = await world.process({ shutdownTimeout: ms(1_000), watchdogTimeout: ms(LEASE) });
    const { locks, runtime } = process;
    const end = latch();
    let lease!: Lease;
    const leadership = locks.lead('cleaner', {
      onElected: (elected) => {
        lease = elected;
        return end.promise;
      },
    });
    await runtime.settle();
    await runtime.until(leadership.stop());
    return { ...process, lease, end };
  };

  it('goes to no caller of this process without the backend when the body ends after all', async () => {
    const settings = { shutdownTimeout: ms(5), watchdogTimeout: ms(LEASE) };
    const { locks, runtime } = await world.process(settings);
    const end = latch();
    const other = await world.process();
    const first = await other.locks.acquire('cleaner');
    const leadership = locks.lead('cleaner', { onElected: () => end.promise });
    // A lock is handed off only if callers were already waiting when it was acquired, and only for 20 ms.
    const inside: Lease[] = [];
    const call = locks.withLock('cleaner', async (lease) => {
      inside.push(lease);
      await sleep(runtime, 2 * LEASE);
      expect(lease.held).toBe(true);
      expect(lease.signal.aborted).toBe(false);
    });
    await runtime.advance(100);
    await first.release();
    await runtime.settle();
    await runtime.until(leadership.stop());
    await runtime.advance(2);
    expect(inside).toEqual([]);
    end.open();
    await runtime.advance(1_000);
    expect(inside).toHaveLength(1);
    await runtime.advance(LEASE + 5_000);
    expect(await other.locks.isLocked('cleaner')).toBe(true);
    await runtime.until(call);
  });

  it('is judged by the clock while the body runs on', async () => {
    const { locks, runtime, lease, end } = await stopped();
    const losses: unknown[] = [];
    locks.on('lost', (event) => losses.push(event));
    expect(lease.held).toBe(true);
    await runtime.advance(LEASE);
    expect(lease.held).toBe(false);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
    expect(losses).toHaveLength(1);
    end.open();
    await runtime.settle();
  });

  it('ends with the lease for the code that re-enters it', async () => {
    const { runtime, lease, locks, end } = await stopped();
    const inner = lease.run(() =>
      locks.withLock('cleaner', async ({ signal }) => {
        await sleep(runtime, 2 * LEASE);
        return signal.aborted;
      }),
    );
    const outcome = inner.catch((error) => error);
    expect(await runtime.until(outcome, 4 * LEASE)).toBeInstanceOf(LockLostError);
    end.open();
    await runtime.settle();
  });

  it('is neither detached nor extended', async () => {
    const { lease, end, runtime } = await stopped();
    expect(await errorOf(lease.detach({ for: '5m' }))).toBeInstanceOf(LockAbortedError);
    expect(await errorOf(lease.extend('5m'))).toBeInstanceOf(LockAbortedError);
    await runtime.advance(LEASE);
    const other = await world.process();
    expect(await other.locks.isLocked('cleaner')).toBe(false);
    end.open();
    await runtime.settle();
  });

  it.each<[string, (lease: Lease) => Promise<unknown>]>([
    ['detached', (lease) => lease.detach({ for: '5m' })],
    ['extended', (lease) => lease.extend('5m')],
  ])('is lost when it would be %s after the machine was suspended past its lease', async (_, keep) => {
    const { lease, end, runtime, locks } = await stopped();
    const losses: unknown[] = [];
    locks.on('lost', (event) => losses.push(event));
    runtime.suspend(2 * LEASE);
    expect(await errorOf(keep(lease))).toBeInstanceOf(LockLostError);
    expect(losses).toHaveLength(1);
    end.open();
    await runtime.settle();
  });

  it('is not extended by the code that re-enters it', async () => {
    const { lease, end, runtime, locks } = await stopped();
    const inner = lease.run(() => locks.acquire('cleaner'));
    expect(await errorOf((await inner).extend('5m'))).toBeInstanceOf(LockAbortedError);
    await runtime.advance(LEASE);
    expect((await inner).held).toBe(false);
    const other = await world.process();
    expect(await other.locks.isLocked('cleaner')).toBe(false);
    end.open();
    await runtime.settle();
  });

  it('is judged for several locks of which it is one', async () => {
    const { lease, end, runtime, locks } = await stopped();
    const several = await lease.run(() => locks.acquire(['cleaner', 'order']));
    await runtime.advance(LEASE / 2);
    expect(several.held).toBe(true);
    await runtime.advance(LEASE / 2);
    expect(several.held).toBe(false);
    expect(several.signal.aborted).toBe(true);
    const other = await world.process();
    expect(await other.locks.isLocked('cleaner')).toBe(false);
    expect(await runtime.until(errorOf(several.release()))).toBeInstanceOf(LockLostError);
    expect(await other.locks.isLocked('order')).toBe(false);
    end.open();
    await runtime.settle();
  });

  it('is kept for holdAtLeast, for nobody, if its body ends after all', async () => {
    const { locks, runtime } = await world.process({ watchdogTimeout: ms(LEASE) });
    const end = latch();
    const held = await locks.engine.acquireToRun('order', { holdAtMost: 1_000 }, 'withLock()');
    const body = locks.holdWhile(held, () => end.promise, { holdAtLeast: ms(10_000) });
    const waiting = locks.acquire('order');
    let entered = false;
    void waiting.then(() => {
      entered = true;
    });
    await runtime.advance(2_000);
    end.open();
    await runtime.until(body);
    await runtime.advance(7_900);
    expect(entered).toBe(false);
    const lease = await runtime.until(waiting, LEASE);
    await runtime.advance(2 * LEASE);
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('is released by a writer that reads in its scope, after shutdown has given up on both', async () => {
    const { locks, runtime } = await world.process({ shutdownTimeout: ms(1_000), watchdogTimeout: ms(LEASE) });
    const other = await world.process();
    const end = latch();
    const read = () => locks.withLock('order', { type: 'read' }, () => end.promise);
    const body = locks.withLock('order', { type: 'write' }, read);
    await runtime.settle();
    await runtime.until(locks.drain());
    end.open();
    await runtime.until(body);
    await runtime.settle();
    expect(await other.locks.isLocked('order')).toBe(false);
  });

  it('does not include a lock whose release is unanswered when stop() settles', async () => {
    const process = await world.process({ shutdownTimeout: ms(1_000), watchdogTimeout: ms(LEASE) });
    const { locks, runtime, backend, logger } = process;
    const answered = latch();
    let revoked = 0;
    const leadership = locks.lead('cleaner', {
      onElected: ({ signal }) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())),
      onRevoked: () => void revoked++,
    });
    await runtime.settle();
    backend.disturb(answerAfter(answered.promise), 'release');
    await runtime.until(leadership.stop(), 1_100);
    expect(revoked).toBe(1);
    answered.open();
    await runtime.advance(2_000);
    expect(leftovers(process)).toEqual(NOTHING);
    expect(logger.warnings).toEqual([]);
    expect(revoked).toBe(1);
  });

  it('does not include a lock whose release is unanswered when shutdown stops waiting', async () => {
    const process = await world.process({ shutdownTimeout: ms(1_000), watchdogTimeout: ms(LEASE) });
    const { locks, runtime, backend } = process;
    const answered = latch();
    const lease = await locks.acquire('order');
    backend.disturb(answerAfter(answered.promise), 'release');
    const released = lease.release();
    await runtime.until(locks.drain(), 1_100);
    answered.open();
    await runtime.until(released);
    await runtime.advance(2_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it.each(['reentrant', 'fair', 'write', 'read', 'fenced'] as const)(
    'is released by a body of type %s that ends after shutdown has given up on it',
    async (type) => {
      const { locks, runtime } = await world.process({ shutdownTimeout: ms(1_000), watchdogTimeout: ms(LEASE) });
      const other = await world.process();
      const end = latch();
      const body = locks.withLock('order', { type }, () => end.promise);
      await runtime.settle();
      await runtime.until(locks.drain());
      end.open();
      await runtime.until(body);
      await runtime.settle();
      expect(await other.locks.isLocked('order')).toBe(false);
    },
  );
});
