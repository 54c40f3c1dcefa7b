import { BackendError } from '../../../lib/backends/lock-backend.js';
import { LockAbortedError, LockUpgradeError } from '../../../lib/engine/errors.js';
import { FOREVER } from '../../../lib/engine/terms/duration.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { Caller } from '../../../lib/engine/wait/caller.js';
import { leftovers, ms, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, answerLost, refused } from '../../support/watched/watched-backend.js';

class AnyCaller extends Caller<never> {
  readonly what = 'the locks';
}

describe('the locks of one service that a caller wants together', () => {
  const world = openVirtualWorld();

  const open = async () => {
    const process = await world.process();
    const { locks } = process;
    const wanted = (names: readonly string[], options: LockOptions = {}) =>
      locks.engine.several(names, options, false, 'acquire()');
    return { ...process, wanted };
  };
  const giveBack = (locks: ReturnType<Awaited<ReturnType<typeof open>>['wanted']>) =>
    Promise.all(locks.all.map((wanted) => wanted.giveBack()));
  const taken = (locks: ReturnType<Awaited<ReturnType<typeof open>>['wanted']>) =>
    locks.all.filter((wanted) => wanted.taken).map(({ name }) => name);

  it('are taken by one command if the type and the backend allow that, and otherwise one by one', async () => {
    const process = await open();
    const { backend, wanted } = process;
    const commandsFor = async (names: string[], options?: LockOptions) => {
      const several = wanted(names, options);
      backend.commands.length = 0;
      expect(await several.takeMissing()).toBeUndefined();
      const sent = [...backend.commands];
      expect(taken(several)).toEqual(names);
      await giveBack(several);
      return sent;
    };
    expect(await commandsFor(['a', 'b'])).toEqual(['acquireAll']);
    expect(await commandsFor(['a', 'b'], { type: 'write' })).toEqual(['acquireAll']);
    expect(await commandsFor(['a', 'b'], { type: 'fair' })).toEqual(['acquire', 'acquire']);
    expect(await commandsFor(['a'])).toEqual(['acquire']);
    backend.canAcquireTogether = () => false;
    expect(await commandsFor(['a', 'b'])).toEqual(['acquire', 'acquire']);
    await process.runtime.settle();
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('are asked about together only if all their keys allow that', async () => {
    const { locks, backend, wanted } = await open();
    const asked: (readonly string[])[] = [];
    backend.canAcquireTogether = (keys) => {
      asked.push(keys);
      return true;
    };
    const several = wanted(['a', 'b', 'c']);
    await several.takeMissing();
    expect(asked).toEqual([['a', 'b', 'c'].map((name) => locks.engine.keyOf(name))]);
    await giveBack(several);
  });

  it('are not taken behind one that is busy, whose holder is named', async () => {
    const { backend, wanted } = await open();
    const other = await world.process();
    const busy = await other.locks.acquire('b', { leaseTime: 5_000 });
    const together = wanted(['a', 'b', 'c']);
    expect(await together.takeMissing()).toEqual({
      wanted: together.all[1],
      remaining: 5_000,
      holder: busy.owner,
      released: undefined,
    });
    expect(taken(together)).toEqual([]);
    backend.canAcquireTogether = () => false;
    backend.commands.length = 0;
    const oneByOne = wanted(['a', 'b', 'c']);
    const found = await oneByOne.takeMissing();
    expect([found?.wanted === oneByOne.all[1], found?.holder]).toEqual([true, busy.owner]);
    expect([backend.commands, taken(oneByOne)]).toEqual([['acquire', 'acquire'], ['a']]);
    // Only the missing ones are asked for again.
    await busy.release();
    backend.commands.length = 0;
    expect(await oneByOne.takeMissing()).toBeUndefined();
    expect([backend.commands, taken(oneByOne)]).toEqual([
      ['acquire', 'acquire'],
      ['a', 'b', 'c'],
    ]);
    await giveBack(oneByOne);
  });

  it('leave the other locks to callers of this process when one of them is busy', async () => {
    const { locks, backend, runtime, wanted } = await open();
    const other = await world.process();
    const busy = await other.locks.acquire('b');
    for (const isTogether of [true, false]) {
      backend.canAcquireTogether = () => isTogether;
      const several = wanted(['a', 'b', 'c']);
      await several.takeMissing();
      await giveBack(several);
      for (const name of ['a', 'c']) await (await runtime.until(locks.acquire(name, { waitTime: 0 }))).release();
    }
    await busy.release();
    await (await runtime.until(locks.acquire('b', { waitTime: 0 }))).release();
  });

  it('are not asked for while a caller of this process holds one of them', async () => {
    const { locks, backend, runtime, wanted } = await open();
    const mine = await locks.acquire('b');
    backend.commands.length = 0;
    const several = wanted(['a', 'b']);
    expect(await several.takeMissing()).toEqual({
      wanted: several.all[1],
      remaining: -1,
      holder: undefined,
      released: undefined,
    });
    expect(backend.commands).toEqual([]);
    await mine.release();
    await (await runtime.until(locks.acquire('a', { waitTime: 0 }))).release();
  });

  it('are asked for once more when the owner of this process that is about to leave one of them has left', async () => {
    const { locks, backend, runtime, wanted } = await open();
    const mine = await locks.acquire('b');
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'release');
    const released = mine.release();
    backend.commands.length = 0;
    const several = wanted(['a', 'b']);
    const attempt = several.takeMissing();
    await runtime.settle();
    expect(backend.commands).toEqual([]);
    answer.open();
    expect(await attempt).toBeUndefined();
    expect([backend.commands, taken(several)]).toEqual([['acquireAll'], ['a', 'b']]);
    await released;
    await giveBack(several);
  });

  it('are not asked for once more when the caller has left meanwhile', async () => {
    const { locks, backend, runtime, wanted } = await open();
    const mine = await locks.acquire('b');
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'release');
    const released = mine.release();
    backend.commands.length = 0;
    const several = wanted(['a', 'b']);
    const terms = { waitTime: FOREVER, outageTimeout: FOREVER, signal: undefined };
    const caller = new AnyCaller(
      'a, b',
      terms,
      runtime,
      () => {},
      () => {},
    );
    several.arrived(caller);
    const attempt = several.takeMissing();
    caller.refuse(new Error('aborted'));
    answer.open();
    const busy = await attempt;
    expect([busy?.wanted === several.all[1], busy?.holder, backend.commands]).toEqual([true, mine.owner, []]);
    several.left();
    await released;
  });

  it('leave all locks to callers of this process when there is no answer', async () => {
    const { locks, backend, runtime, wanted } = await open();
    for (const isTogether of [true, false])
      for (const disturbance of [refused, answerLost]) {
        backend.canAcquireTogether = () => isTogether;
        backend.disturb(disturbance, 'acquire', 'acquireAll');
        expect(await errorOf(wanted(['a', 'b']).takeMissing())).toBeInstanceOf(BackendError);
        backend.heal();
        await runtime.advance(1_000);
        for (const name of ['a', 'b']) await (await runtime.until(locks.acquire(name, { waitTime: 0 }))).release();
      }
  });

  it('are not taken if one of them was released by force before the answer came, and are given back then', async () => {
    const process = await open();
    const { locks, backend, runtime, wanted } = process;
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquireAll');
    const several = wanted(['a', 'b']);
    const attempt = errorOf(several.takeMissing());
    await runtime.settle();
    await locks.forceRelease('b');
    answer.open();
    expect(await attempt).toMatchObject({ kind: 'unavailable', message: /released by force/ });
    expect(taken(several)).toEqual(['a']);
    await giveBack(several);
    await runtime.advance(1_000);
    for (const name of ['a', 'b']) expect(await locks.isLocked(name)).toBe(false);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('are shared with the scope of the caller, and the rest is asked for', async () => {
    const { locks, backend, wanted } = await open();
    await locks.withLock(['a', 'b'], async ({ owners }) => {
      backend.commands.length = 0;
      const several = wanted(['a', 'b', 'c', 'd']);
      expect([several, ...several.all].map(({ scoped }) => scoped)).toEqual(Array(5).fill(true));
      expect(await several.takeMissing()).toBeUndefined();
      expect(backend.commands).toEqual(['acquireAll']);
      const lease = several.createLease();
      expect([lease.owners.get('a'), lease.owners.get('b')]).toEqual([owners.get('a'), owners.get('b')]);
      expect(lease.entered.map(({ key }) => key)).toEqual(['a', 'b'].map((name) => locks.engine.keyOf(name)));
      await lease.release();
    });
    expect(wanted(['a']).scoped).toBe(false);
  });

  it('leave the gates of the scope to its other children when one of them is busy, or nobody answers', async () => {
    const { locks, backend, runtime, wanted } = await open();
    const other = await world.process();
    const busy = await other.locks.acquire('z');
    await locks.withLock(['a', 'b'], async () => {
      expect(await wanted(['a', 'b', 'z']).takeMissing()).toBeDefined();
      await runtime.until(locks.withLock(['a', 'b'], { waitTime: 0 }, async () => {}));
      backend.disturb(refused, 'acquire');
      expect(await errorOf(wanted(['a', 'b', 'z']).takeMissing())).toBeInstanceOf(BackendError);
      backend.heal();
      await runtime.until(locks.withLock(['a', 'b'], { waitTime: 0 }, async () => {}));
    });
    await busy.release();
  });

  it('are confirmed by the backend if they are shared and the clocks have diverged, also those that are taken', async () => {
    const { locks, backend, runtime, wanted } = await open();
    await locks.withLock('a', async () => {
      const several = wanted(['a', 'b']);
      runtime.suspend(5_000);
      await several.takeMissing();
      expect([taken(several), backend.count('renew')]).toEqual([['a', 'b'], 1]);
      runtime.suspend(5_000);
      await several.takeMissing();
      expect(backend.count('renew')).toBe(2);
      await several.takeMissing();
      expect(backend.count('renew')).toBe(2);
      await giveBack(several);
    });
  });

  it('are acquired if the scope that shared them has ended, and shared if one has begun', async () => {
    const { locks, wanted } = await open();
    const lease = await locks.acquire('a');
    const several = await lease.run(() => wanted(['a', 'b']));
    await lease.release();
    expect(await several.takeMissing()).toBeUndefined();
    expect(several.all[0].held?.owner).not.toBe(lease.owner);
    expect(several.all.map(({ stale }) => stale)).toEqual([false, false]);
    await giveBack(several);
    const early = wanted(['a', 'b']);
    await locks.withLock('a', async ({ owner }) => {
      expect(await early.takeMissing()).toBeUndefined();
      expect(early.all[0].held?.owner).toBe(owner);
      await giveBack(early);
    });
  });

  it('were kept from a caller by an outage only if the backend gives no answer about one of them', async () => {
    const { locks, backend, runtime, wanted } = await open();
    const terms = { waitTime: ms(1_000), outageTimeout: FOREVER, signal: undefined };
    const caller = new AnyCaller(
      'a, b',
      terms,
      runtime,
      () => {},
      () => {},
    );
    const several = wanted(['a', 'b']);
    several.arrived(caller);
    expect(several.outage(caller)).toBeUndefined();
    await runtime.advance(1_000);
    expect(several.outage(caller)).toBeUndefined();
    const { outages } = locks.engine.services;
    const failure = new BackendError('no answer for 900 ms', 'unavailable', 'unknown');
    outages.isSilent = (_, keys) => keys[0].endsWith(':b');
    outages.failure = () => failure;
    expect(several.outage(caller)).toBe(failure);
    outages.failure = () => undefined;
    expect(several.outage(caller)?.message).toBe(`${backend.description}: no answer within 1000 ms`);
    several.left();
  });

  it('have failures that name the last error of the connection, and report them to the limit of outages', async () => {
    const { locks, backend, wanted } = await open();
    const several = wanted(['a', 'b']);
    const failure = new BackendError('no answer', 'unavailable', 'unknown');
    expect(several.explained(failure)).toBe(failure);
    Object.defineProperty(backend, 'connectionError', { value: new Error('ECONNREFUSED') });
    expect(several.explained(failure).message).toBe('no answer (ECONNREFUSED)');
    const reported: Error[] = [];
    locks.engine.services.outages.attemptFailed = (error) => void reported.push(error());
    several.failedOnce(() => failure);
    expect(reported).toEqual([failure]);
  });

  it('are refused as an upgrade when a reader wants to write', async () => {
    const { locks, wanted } = await open();
    await locks.withLock('a', { type: 'read' }, async () => {
      expect(() => wanted(['a', 'b'], { type: 'write' })).toThrow(LockUpgradeError);
    });
  });

  it('belong to the unfinished work of the service from the arrival of the caller until it leaves', async () => {
    const { locks, runtime, wanted } = await open();
    const { work, outages } = locks.engine.services;
    let left = 0;
    outages.left = () => void left++;
    const several = wanted(['a', 'b']);
    const refusals: Error[] = [];
    const terms = { waitTime: FOREVER, outageTimeout: FOREVER, signal: undefined };
    const caller = new AnyCaller(
      'a, b',
      terms,
      runtime,
      () => {},
      (error) => refusals.push(error),
    );
    several.refuseWhere(() => new Error('too early'));
    expect(work.several.size).toBe(0);
    expect(several.arrived(caller)).toBeUndefined();
    expect([...work.several]).toEqual([several]);
    expect(several.keys).toEqual(['a', 'b'].map((name) => locks.engine.keyOf(name)));
    several.refuseWhere((one) => (one === caller ? undefined : new Error('not this one')));
    expect([refusals, caller.settled]).toEqual([[], false]);
    const refusal = new Error('shutdown');
    several.refuseWhere((one) => (one === caller ? refusal : undefined));
    expect(refusals).toEqual([refusal]);
    let changes = 0;
    work.watch(() => changes++);
    several.left();
    expect([work.several.size, left, changes]).toEqual([0, 1, 1]);
  });

  it('do not belong to it when the caller is refused on arrival', async () => {
    const { locks, runtime, wanted } = await open();
    const { work, outages } = locks.engine.services;
    const refusal = new Error('an outage') as never;
    outages.arrived = () => refusal;
    const several = wanted(['a', 'b']);
    const terms = { waitTime: ms(0), outageTimeout: FOREVER, signal: undefined };
    const caller = new AnyCaller(
      'a, b',
      terms,
      runtime,
      () => {},
      () => {},
    );
    expect(several.arrived(caller)).toBe(refusal);
    expect(work.several.size).toBe(0);
  });

  it('are not created once their service has drained', async () => {
    const { locks, runtime, wanted } = await open();
    await runtime.until(locks.drain());
    expect(() => wanted(['a', 'b'])).toThrow(LockAbortedError);
    expect(() => wanted(['a', 'b'])).toThrow('acquire()');
  });

  it('have a lease whose locks are announced one by one, with the time since the call', async () => {
    const { locks, runtime, wanted } = await open();
    const heard: unknown[] = [];
    locks.on('acquired', ({ name, waited, group }) => heard.push([name, waited, group]));
    const several = wanted(['a', 'b'], { group: 'jobs', leaseTime: 9_000 });
    await runtime.advance(70);
    await several.takeMissing();
    const lease = several.createLease();
    expect(heard).toEqual([
      ['a', 70, 'jobs'],
      ['b', 70, 'jobs'],
    ]);
    expect(lease.names).toEqual(['a', 'b']);
    expect(lease.locks.map(({ fixed, leaseTime }) => [fixed, leaseTime])).toEqual([
      [true, 9_000],
      [true, 9_000],
    ]);
    await lease.release();
  });

  it('have new owner ids at each attempt', async () => {
    const { backend, wanted } = await open();
    const other = await world.process();
    const busy = await other.locks.acquire('b');
    const owners: string[] = [];
    backend.disturb(async (execute, requests) => {
      owners.push(...(requests as { owner: string }[]).map(({ owner }) => owner));
      return execute();
    }, 'acquireAll');
    const several = wanted(['a', 'b']);
    await several.takeMissing();
    await several.takeMissing();
    expect(owners).toHaveLength(4);
    expect(new Set(owners).size).toBe(4);
    await busy.release();
  });
});
