import { BackendError, type OwnerRef } from '../../../lib/backends/lock-backend.js';
import { LockAbortedError, LockKeyError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { confirmLease, confirmLeases } from '../../../lib/engine/hold/confirm-lease.js';
import type { HeldLock } from '../../../lib/engine/hold/held-lock.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import type { WaitTerms } from '../../../lib/engine/terms/wait-terms.js';
import { ms, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

describe('whether a lock is still held after the clocks have diverged', () => {
  const world = openVirtualWorld();

  /** A process that holds locks whose leases have to be confirmed. */
  const open = async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    const { services } = locks.engine;
    const leases = [await locks.acquire('order'), await locks.acquire('stock')];
    const [order, stock] = ['order', 'stock'].map((name) => services.heldLocks(services.keyOf(name))[0]);
    runtime.setWallClock(-3_600_000);
    const confirm = (terms: Partial<WaitTerms> = {}, held: HeldLock = order) =>
      confirmLease(services, held, { waitTime: FOREVER, outageTimeout: FOREVER, signal: undefined, ...terms });
    return { ...process, services, leases, order, stock, confirm };
  };

  it('is known when the backend has confirmed it', async () => {
    const { confirm, backend, leases } = await open();
    expect(leases[0].held).toBe(false);
    expect(await confirm()).toBe(true);
    expect(leases[0].held).toBe(true);
    expect(backend.count('renew')).toBe(1);
  });

  it('is known when the backend says that it is gone', async () => {
    const { confirm, services, order } = await open();
    const other = await world.process();
    await other.backend.forceRelease(order.key);
    expect(await confirm()).toBe(false);
    expect(services.watchdog.judge(order)).toBe('lost');
  });

  it('is known when it was given back meanwhile, whatever the answer is', async () => {
    const { confirm, backend, leases, runtime } = await open();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'renew');
    const confirmed = confirm();
    await runtime.settle();
    await leases[0].release();
    answer.open();
    expect(await runtime.until(confirmed)).toBe(false);
  });

  it('is asked for again after pauses, until there is an answer', async () => {
    const { confirm, backend, runtime, leases, order } = await open();
    runtime.random = () => 0;
    const times: number[] = [];
    backend.disturb(async (execute, request) => {
      if ((request as OwnerRef).key !== order.key) return execute();
      times.push(runtime.monotonic());
      return times.length < 4 ? refused(execute, request) : execute();
    }, 'renew');
    const confirmed = confirm();
    await runtime.settle();
    expect(runtime.keepAliveTimers).toBe(1);
    expect(await runtime.until(confirmed, 900)).toBe(true);
    // When the outage is over, everything is confirmed that was confirmed before it.
    expect(times.slice(0, 4)).toEqual([0, 25, 75, 175]);
    expect(leases[0].held).toBe(true);
    expect(runtime.keepAliveTimers).toBe(0);
  });

  it('is not known in time if there is no answer', async () => {
    const { confirm, backend, runtime } = await open();
    backend.disturb(refused, 'renew');
    const error = errorOf(confirm({ waitTime: ms(500) }));
    await runtime.advance(499);
    expect(runtime.keepAliveTimers).toBeGreaterThan(0);
    expect(await runtime.until(error, 10)).toBeInstanceOf(LockUnavailableError);
    expect((await error).message).toContain("'order' could not be acquired: the connection is closed");
    const asked = backend.count('renew');
    await runtime.advance(400);
    expect(backend.count('renew')).toBe(asked);
    expect(runtime.keepAliveTimers).toBe(0);
  });

  it('is not known by the first answer, for a caller that tries once, if that is none', async () => {
    const { confirm, backend, runtime } = await open();
    backend.disturb(refused, 'renew');
    expect(await errorOf(confirm({ waitTime: ms(0) }))).toBeInstanceOf(LockUnavailableError);
    expect(backend.count('renew')).toBe(1);
    expect(runtime.keepAliveTimers).toBe(0);
    backend.heal();
    expect(await confirm({ waitTime: ms(0) })).toBe(true);
  });

  it('is not known to a caller that stops waiting', async () => {
    const { confirm, backend, runtime } = await open();
    backend.disturb(refused, 'renew');
    const abort = new AbortController();
    const error = errorOf(confirm({ signal: abort.signal }));
    await runtime.advance(100);
    abort.abort();
    expect(await error).toBeInstanceOf(LockAbortedError);
    const asked = backend.count('renew');
    await runtime.advance(800);
    expect(backend.count('renew')).toBe(asked);
  });

  it.each([
    ['key', LockKeyError],
    ['denied', LockUnavailableError],
  ] as const)('is not asked for again after an error that stays: %s', async (kind, type) => {
    const { confirm, backend, runtime } = await open();
    backend.disturb(() => Promise.reject(new BackendError('refused', kind, 'refused')), 'renew');
    const error = await errorOf(confirm());
    expect(error).toBeInstanceOf(type);
    expect(error.message).toContain("he lock 'order'");
    await runtime.advance(500);
    expect(backend.count('renew')).toBe(1);
    expect(runtime.keepAliveTimers).toBe(0);
  });

  it('is lost to a caller that waits when its lease ends without an answer', async () => {
    const { confirm, backend, runtime } = await open();
    backend.disturb(refused, 'renew');
    expect(await runtime.until(confirm(), 40_000)).toBe(false);
    expect(runtime.monotonic()).toBeGreaterThan(29_000);
  });

  it('is asked for only where it is not certain', async () => {
    const { services, order, stock, backend, runtime } = await open();
    await services.watchdog.confirmNow(order);
    const asked = backend.count('renew');
    expect(confirmLeases(services, [order])).toBeUndefined();
    expect(confirmLeases(services, [])).toBeUndefined();
    const both = confirmLeases(services, [order, stock]);
    expect(await runtime.until(both as Promise<unknown>)).toEqual([true]);
    expect(backend.count('renew')).toBe(asked + 1);
  });
});
