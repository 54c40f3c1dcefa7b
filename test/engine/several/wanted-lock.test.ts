import { FOREVER } from '../../../lib/engine/terms/duration.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { Caller } from '../../../lib/engine/wait/caller.js';
import { ms, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

class AnyCaller extends Caller<never> {
  readonly what = 'the locks';
}

describe('one of several locks that a caller wants', () => {
  const world = openVirtualWorld();

  const open = async (options: LockOptions = {}) => {
    const process = await world.process();
    const wantedOf = (name: string, type?: LockOptions['type']) =>
      process.locks.engine.several([name], { ...options, type }, false, 'acquire()').all[0];
    const terms = { waitTime: FOREVER, outageTimeout: FOREVER, signal: undefined };
    const caller = new AnyCaller(
      'a, b',
      terms,
      process.runtime,
      () => {},
      () => {},
    );
    const departed = () => new Error('departed');
    return { ...process, wantedOf, caller, departed };
  };

  it('is sorted by its name, its type and its backend', async () => {
    const { wantedOf, backend } = await open();
    expect(wantedOf('a').sortKey).toBe(`a\0reentrant\0${backend.description}`);
    const keys = [wantedOf('b'), wantedOf('a', 'write'), wantedOf('a', 'fair'), wantedOf('ab')];
    expect(
      keys.sort((one, other) => (one.sortKey < other.sortKey ? -1 : 1)).map(({ sortKey }) => sortKey.slice(0, 4)),
    ).toEqual(['a\0fa', 'a\0wr', 'ab\0r', 'b\0re']);
  });

  it('is waited for in its queue, and can be given back once', async () => {
    const { backend, wantedOf, caller, departed, runtime, locks } = await open();
    const other = await world.process();
    const busy = await other.locks.acquire('a');
    const wanted = wantedOf('a');
    expect([wanted.taken, wanted.stale]).toEqual([false, true]);
    const waiting = wanted.wait(FOREVER, caller, departed);
    await runtime.advance(100);
    expect(locks.engine.waiting('a')).toBe(1);
    await busy.release();
    await runtime.until(waiting);
    expect([wanted.taken, wanted.stale, await other.locks.isLocked('a')]).toEqual([true, false, true]);
    await wanted.giveBack();
    expect([wanted.taken, await other.locks.isLocked('a')]).toEqual([false, false]);
    await wanted.giveBack();
    expect(backend.count('release')).toBe(1);
  });

  it('is waited for only as long as the wait may last', async () => {
    const { wantedOf, caller, departed, runtime, locks } = await open();
    const other = await world.process();
    await other.locks.acquire('a');
    const refusal = await runtime.until(errorOf(wantedOf('a').wait(ms(300), caller, departed)));
    expect([refusal.name, runtime.monotonic()]).toEqual(['LockBusyError', 300]);
    expect(locks.engine.waiting('a')).toBe(0);
  });

  it('is no longer waited for when the wait is stopped', async () => {
    const { wantedOf, caller, departed, runtime, locks } = await open();
    const other = await world.process();
    const busy = await other.locks.acquire('a');
    const wanted = wantedOf('a');
    const stop = new Error('enough');
    wanted.stopWaiting(stop); // it does not wait yet
    const waiting = errorOf(wanted.wait(FOREVER, caller, departed));
    await runtime.advance(100);
    wanted.stopWaiting(stop);
    expect(await waiting).toBe(stop);
    expect(locks.engine.waiting('a')).toBe(0);
    await busy.release();
    const again = wanted.wait(FOREVER, caller, departed);
    await runtime.until(again);
    wanted.stopWaiting(stop); // the wait is over
    expect(wanted.taken).toBe(true);
    await wanted.giveBack();
  });

  it('is waited for at the gate of a scope that holds it, until the wait is stopped', async () => {
    const { wantedOf, caller, departed, runtime, locks } = await open();
    await locks.withLock('a', async (outer) => {
      const sibling = await locks.acquire('a');
      const wanted = wantedOf('a');
      expect([wanted.shared, wanted.holder, wanted.leaving]).toEqual([true, outer.owner, undefined]);
      expect(wanted.claim()).toBe(false);
      const stop = new Error('enough');
      const stopped = errorOf(wanted.wait(FOREVER, caller, departed));
      await runtime.settle();
      wanted.stopWaiting(stop);
      expect(await stopped).toBe(stop);
      expect((await runtime.until(errorOf(wanted.wait(ms(200), caller, departed)))).message).toBe('departed');
      const waiting = wanted.wait(FOREVER, caller, departed);
      await runtime.settle();
      expect(wanted.taken).toBe(false);
      await sibling.release();
      await waiting;
      expect([wanted.taken, wanted.stale, wanted.entered.length]).toEqual([true, false, 1]);
      expect(await locks.tryAcquire('a')).toBeNull();
      await wanted.giveBack();
      expect([wanted.taken, wanted.entered]).toEqual([false, []]);
      await (await locks.acquire('a', { waitTime: 0 })).release();
    });
  });

  it('is stale when it was lost, and when the scope that shared it has ended', async () => {
    const { wantedOf, caller, departed, runtime, locks } = await open({ leaseTime: 2_000 });
    const lost = wantedOf('a');
    await lost.wait(FOREVER, caller, departed);
    expect(lost.stale).toBe(false);
    runtime.block(2_000);
    expect(lost.stale).toBe(true);
    await lost.giveBack();
    const lease = await locks.acquire('b');
    const shared = await lease.run(async () => {
      const wanted = wantedOf('b');
      expect(wanted.claim()).toBe(true);
      wanted.share();
      expect([wanted.taken, wanted.stale]).toEqual([true, false]);
      return wanted;
    });
    expect(shared.stale).toBe(true);
    await shared.giveBack();
    await lease.release();
  });

  it('has aged when more than a tenth of its fixed lease is over, and can be restarted then', async () => {
    const { backend, wantedOf, caller, departed, runtime, locks } = await open({ leaseTime: 2_000 });
    const wanted = wantedOf('a');
    expect(wanted.aged).toBe(false);
    await wanted.wait(FOREVER, caller, departed);
    runtime.block(200);
    expect(wanted.aged).toBe(false);
    await wanted.restartLease();
    expect(backend.count('renew')).toBe(0);
    runtime.block(1);
    expect(wanted.aged).toBe(true);
    await wanted.restartLease();
    expect([wanted.aged, backend.count('renew')]).toEqual([false, 1]);
    expect((await locks.inspect('a')).owners[0].remainingTime).toBe(2_000);
    await wanted.giveBack();
    await wanted.restartLease();
    expect(backend.count('renew')).toBe(1);
  });

  it('does not age if its lease is renewed, or belongs to the scope around', async () => {
    const renewed = await open();
    const wanted = renewed.wantedOf('a');
    await wanted.wait(FOREVER, renewed.caller, renewed.departed);
    renewed.runtime.block(9_000);
    expect(wanted.aged).toBe(false);
    await wanted.giveBack();
    const { locks, runtime, wantedOf } = await open({ leaseTime: 2_000 });
    await locks.withLock('b', { leaseTime: 5_000 }, async () => {
      runtime.block(1_000);
      const shared = wantedOf('b');
      shared.claim();
      shared.share();
      expect(shared.aged).toBe(false);
      await shared.giveBack();
    });
  });

  it('is not certain to be held while the clocks disagree, until the backend has confirmed it', async () => {
    const { backend, locks, runtime, wantedOf } = await open();
    expect(wantedOf('a').unsure).toBe(false);
    await locks.withLock('a', async () => {
      const wanted = wantedOf('a');
      expect(wanted.unsure).toBe(false);
      runtime.suspend(5_000);
      expect(wanted.unsure).toBe(true);
      await wanted.confirm();
      expect([wanted.unsure, backend.count('renew')]).toEqual([false, 1]);
    });
    await wantedOf('a').confirm();
    expect(backend.count('renew')).toBe(1);
  });

  it('names an owner of this process that is about to leave the lock, unless others wait for it', async () => {
    const { backend, locks, runtime, wantedOf } = await open();
    const lease = await locks.acquire('a');
    expect(wantedOf('a').leaving).toBeUndefined();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'release');
    const released = lease.release();
    await runtime.settle();
    expect(wantedOf('a').leaving).toBe(lease.owner);
    answer.open();
    await released;
  });

  it('describes its holder by the record of its client, or without one', async () => {
    const { locks, wantedOf } = await open();
    const { holders } = locks.engine.services;
    const client = { application: 'shop' } as never;
    holders.known = (owner) => (owner === 'eve:1' ? client : undefined);
    holders.unrecorded = (owner) => (owner === 'joe:1' ? 'a Redisson client' : undefined);
    expect(wantedOf('a').describe('eve:1')).toEqual({ client, who: "eve:1 of 'shop'" });
    expect(wantedOf('a').describe('joe:1')).toEqual({ client: undefined, who: 'joe:1 of a Redisson client' });
    expect(wantedOf('a').describe(undefined)).toEqual({ client: undefined, who: 'another owner' });
  });

  it('is waited for in its queue if the scope that shared it has ended', async () => {
    const { wantedOf, caller, departed, runtime, locks } = await open();
    const lease = await locks.acquire('a');
    const wanted = await lease.run(() => wantedOf('a'));
    await lease.release();
    await runtime.until(wanted.wait(FOREVER, caller, departed));
    expect([wanted.shared, wanted.stale, wanted.held?.owner === lease.owner]).toEqual([false, false, false]);
    await wanted.giveBack();
  });

  it('is waited for as a part of a possible deadlock, in its queue and at a gate', async () => {
    const { wantedOf, caller, departed, locks } = await open();
    const { deadlocks } = locks.engine.services;
    const { add } = deadlocks;
    const waits: string[] = [];
    deadlocks.add = (waiter, place) => {
      waits.push(waiter.name);
      add.call(deadlocks, waiter, place);
    };
    const other = await world.process();
    await other.locks.acquire('b');
    await locks.withLock('a', async () => {
      const sibling = await locks.acquire('a');
      const wanted = [wantedOf('a'), wantedOf('b')];
      const waiting = wanted.map((one) => errorOf(one.wait(FOREVER, caller, departed)));
      expect(waits).toEqual(['a', 'b']);
      for (const one of wanted) one.stopWaiting(new Error('enough'));
      await Promise.all(waiting);
      await sibling.release();
    });
  });

  it('is waited for during shutdown by callers that run in a scope of the service only', async () => {
    const { wantedOf, caller, departed, runtime, locks } = await open();
    const other = await world.process();
    const busy = await other.locks.acquire('b');
    const outside = errorOf(wantedOf('b').wait(FOREVER, caller, departed));
    const end = latch();
    const body = locks.withLock('a', async () => {
      const wanted = wantedOf('b');
      const waiting = wanted.wait(FOREVER, caller, departed);
      await end.promise;
      await waiting;
      await wanted.giveBack();
    });
    await runtime.settle();
    for (const { callers: line } of locks.engine.services.work.queues.values())
      line.refuseWhere(({ scoped }) => (scoped ? undefined : new Error('shutdown')));
    expect((await outside).message).toBe('shutdown');
    await busy.release();
    end.open();
    await runtime.until(body);
  });

  it('is waited for in an outage for as long as a caller may wait that came after its beginning', async () => {
    const { locks, backend, runtime } = await world.process();
    await locks.acquire('b');
    backend.disturb(refused, 'acquire', 'acquireAll', 'renew', 'ping' as never);
    await errorOf(locks.acquire('x', { waitTime: 0 }));
    await runtime.advance(3_000);
    const began = runtime.monotonic();
    const several = errorOf(locks.acquire(['a', 'b'], { outageTimeout: 5_000 }));
    // A search for callers whose time is over finds this one in between.
    await runtime.until(errorOf(locks.acquire('x', { outageTimeout: 3_000 })));
    expect(runtime.monotonic() - began).toBeLessThan(4_000);
    const refusal = await runtime.until(several);
    expect(refusal.name).toBe('LockUnavailableError');
    expect(runtime.monotonic() - began).toBeGreaterThanOrEqual(5_000);
    expect(runtime.monotonic() - began).toBeLessThan(6_000);
    backend.heal();
  });

  it('keeps the other branches of its scope out while it is claimed or shared', async () => {
    const { locks, wantedOf } = await open();
    await locks.withLock('a', async () => {
      const wanted = wantedOf('a');
      expect([wanted.claim(), await locks.tryAcquire('a')]).toEqual([true, null]);
      wanted.unclaim();
      await (await locks.acquire('a', { waitTime: 0 })).release();
      wanted.claim();
      wanted.share();
      expect(await locks.tryAcquire('a')).toBeNull();
      await wanted.giveBack();
      await (await locks.acquire('a', { waitTime: 0 })).release();
    });
  });
});
