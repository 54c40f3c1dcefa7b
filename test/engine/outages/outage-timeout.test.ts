import { LockBusyError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { leftovers, NOTHING, openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';
import { refused } from '../../support/watched/watched-backend.js';

const FAILING = ['acquire', 'acquireAll', 'release', 'renew', 'transfer', 'refreshWaiters', 'ping'] as const;

describe('while the backend does not answer', () => {
  const world = openVirtualWorld();

  /** Makes the backend unreachable for all commands. */
  function goAway({ backend }: VirtualProcess): void {
    backend.disturb(refused, ...FAILING);
    backend.synchronizerRequests.disturb(refused, 'takePermits', 'takeLeasedPermits', 'getCount');
  }

  /** Settles with the time at which a call fails with LockUnavailableError. */
  async function refusedAt({ runtime }: VirtualProcess, call: Promise<unknown>): Promise<number> {
    expect(await errorOf(call)).toBeInstanceOf(LockUnavailableError);
    return runtime.monotonic();
  }

  it('refuses callers without waitTime after 10 s, whatever they wait for', async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    goAway(process);
    const calls = {
      reentrant: locks.acquire('a'),
      fair: locks.acquire('b', { type: 'fair' }),
      read: locks.acquire('c', { type: 'read' }),
      write: locks.acquire('d', { type: 'write' }),
      second: locks.acquire('a'),
      several: locks.acquire(['e', 'f']),
      severalBehind: locks.acquire(['a', 'g']),
      handle: locks.getLock('h').lock(),
      fenced: locks.getFencedLock('i').lock(),
      multi: locks.getMultiLock(locks.getLock('j'), locks.getFairLock('k')).lock(),
      red: locks.getRedLock(locks.getLock('o'), locks.getLock('p')).lock(),
      semaphore: locks.getSemaphore('l').acquire(),
      permit: locks.getPermitExpirableSemaphore('m').acquire(),
      latch: locks.getCountDownLatch('n').await(),
    };
    const times = Object.entries(calls).map(async ([call, promise]) => [call, await refusedAt(process, promise)]);
    await runtime.advance(11_000);
    for (const [call, time] of await Promise.all(times))
      expect([call, Math.floor(Number(time) / 1_000)]).toEqual([call, 10]);
    await runtime.advance(40_000); // background releases end with the leases
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('refuses a caller of a multi-lock whose red lock has lost its majority', async () => {
    const [one, two, healthy] = [await world.process(), await world.process(), await world.process()];
    goAway(one);
    goAway(two);
    const red = one.locks.getRedLock(one.locks.getLock('a'), two.locks.getLock('b'));
    const call = refusedAt(one, healthy.locks.getMultiLock(red, healthy.locks.getLock('c')).lock());
    let time = 0;
    call.then((refused) => {
      time = refused;
    });
    await world.runtime.advance(13_000);
    expect(Math.floor(time / 1_000)).toBe(10);
    await world.runtime.advance(40_000);
    for (const each of [one, two, healthy]) expect(leftovers(each)).toEqual(NOTHING);
  });

  it('refuses callers that pause between attempts too, because it sends a PING', async () => {
    const [process, other] = [await world.process(), await world.process()];
    const { locks, runtime } = process;
    const holder = await other.locks.acquire('order');
    const resting = refusedAt(process, locks.acquire('order'));
    await runtime.advance(100);
    goAway(process);
    await runtime.advance(14_000);
    expect(await resting).toBeLessThan(13_200);
    await holder.release();
  });

  it('sends one PING every 3 s, however many wait, and none when nobody does', async () => {
    const [{ locks, backend, runtime }, other] = [await world.process(), await world.process()];
    const names = Array.from({ length: 20 }, (_, n) => `order:${n}`);
    const holders = await Promise.all(names.map((name) => other.locks.acquire(name)));
    const waiting = [...names, ...names].map((name) => locks.acquire(name));
    await runtime.advance(30_500);
    expect(backend.count('ping')).toBe(10);
    for (const holder of holders) await runtime.until(holder.release());
    for (const lease of waiting) void lease.then((held) => held.release());
    await runtime.until(Promise.all(waiting));
    const before = backend.count('ping');
    await runtime.advance(30_000);
    expect(backend.count('ping')).toBe(before);
  });

  it('counts from the call if that came later than the outage', async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    goAway(process);
    const first = refusedAt(process, locks.acquire('a'));
    await runtime.advance(6_000);
    const later = [
      locks.acquire('a'),
      locks.acquire(['b', 'c']),
      locks.getSemaphore('d').acquire(),
      locks.acquire('e', { outageTimeout: '3s' }),
    ].map((call) => refusedAt(process, call));
    await runtime.advance(12_000);
    expect(await first).toBe(10_000);
    const [one, several, permits, short] = await Promise.all(later);
    for (const time of [one, several, permits]) expect(time - 16_000).toBeLessThan(50);
    expect(short - 9_000).toBeLessThan(50);
  });

  it('begins again after any answer', async () => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    goAway(process);
    const call = refusedAt(process, locks.acquire('order'));
    await runtime.advance(8_000);
    backend.disturb((execute) => execute(), 'acquire');
    await (await locks.acquire('another')).release().catch(() => {});
    backend.disturb(refused, 'acquire');
    await runtime.advance(9_000);
    expect(locks.engine.waiting('order')).toBeLessThanOrEqual(1);
    await runtime.advance(10_000);
    await call;
  });

  it('waits it out with outageTimeout: Infinity, of the call or of the module', async () => {
    const [process, patient] = [
      await world.process(),
      await world.process({ outageTimeout: Number.POSITIVE_INFINITY as never }),
    ];
    const { runtime } = process;
    for (const each of [process, patient]) goAway(each);
    const calls = [
      process.locks.acquire('order', { outageTimeout: Number.POSITIVE_INFINITY }),
      patient.locks.acquire('other'),
    ];
    await runtime.advance(3_600_000);
    for (const each of [process, patient]) each.backend.heal();
    for (const lease of await runtime.until(Promise.all(calls))) await lease.release();
  });

  it('bounds outages alone: a busy lock is waited for', async () => {
    const [{ locks, runtime }, other] = [await world.process(), await world.process()];
    const holder = await other.locks.acquire('order');
    const waiting = locks.acquire('order', { outageTimeout: '1s' });
    await runtime.advance(60_000);
    await holder.release();
    await (await runtime.until(waiting)).release();
  });

  it('fails with LockUnavailableError when a waitTime ends, also behind a local waiter, of several names, and of a lock that is held', async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    const held = await locks.acquire('held', { leaseTime: '60s' });
    goAway(process);
    const calls = [errorOf(locks.acquire('x'))]; // waits in the queue of x
    await runtime.advance(2_000);
    for (const names of ['x', ['a', 'x'], 'held', ['a', 'held']])
      for (const waitTime of [0, 500]) calls.push(errorOf(locks.acquire(names, { waitTime })));
    calls.push(errorOf(locks.getSemaphore('s').tryAcquire(1, 500)));
    await runtime.advance(9_000);
    for (const error of await Promise.all(calls)) expect(error).toBeInstanceOf(LockUnavailableError);
    process.backend.heal();
    await held.release().catch(() => {});
  });

  it('fails with LockUnavailableError, not LockBusyError, for several names behind a local waiter: nobody holds any of them', async () => {
    const process = await world.process();
    goAway(process);
    const first = errorOf(process.locks.acquire('x', { waitTime: 6_000 }));
    const several = errorOf(process.locks.acquire(['a', 'x'], { waitTime: 5_000 }));
    await process.runtime.advance(7_000);
    expect(await several).toBeInstanceOf(LockUnavailableError);
    expect(await first).toBeInstanceOf(LockUnavailableError);
  });

  it('refuses a writer that asks for its read lock', async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    const write = await locks.acquire('page', { type: 'write' });
    goAway(process);
    const reading = refusedAt(
      process,
      write.run(() => locks.acquire('page', { type: 'read' })),
    );
    await runtime.advance(12_000);
    expect(await reading).toBeGreaterThanOrEqual(10_000);
    await write.release().catch(() => {});
  });

  it('renews what is held until its lease ends', async () => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    const lease = await locks.acquire('order');
    goAway(process);
    await runtime.advance(20_000);
    expect(lease.held).toBe(true);
    backend.heal();
    await runtime.advance(60_000);
    expect(lease.held).toBe(true);
    await lease.release();
  });

  it('writes one line for all who wait, with their number and the time until which they do', async () => {
    const process = await world.process();
    const { locks, runtime, logger } = process;
    goAway(process);
    const calls = ['a', 'b', 'c'].map((name) => refusedAt(process, locks.acquire(name)));
    await runtime.advance(11_000);
    await Promise.all(calls);
    expect(logger.errors).toEqual([
      "memory does not answer. 3 callers wait, one of them for the lock 'a'. If there is no answer by 00:00:10 UTC, the first of them gets LockUnavailableError (outageTimeout)",
    ]);
  });

  it('is over with an answer: then a lock is busy', async () => {
    const [process, other] = [await world.process(), await world.process()];
    const { locks, backend, runtime } = process;
    const holder = await other.locks.acquire('order');
    goAway(process);
    expect(await errorOf(locks.acquire('order', { waitTime: 0 }))).toBeInstanceOf(LockUnavailableError);
    backend.heal();
    expect(await errorOf(runtime.until(locks.acquire('order', { waitTime: 300 })))).toBeInstanceOf(LockBusyError);
    await holder.release();
  });
});
