import { LockAbortedError, LockDeadlockError, type LockService } from '../../../lib/core.js';
import { ms, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter } from '../../support/watched/watched-backend.js';

describe('a single flight that is called by code that holds a lock', () => {
  const world = openVirtualWorld();
  const fly = (locks: LockService) => locks.singleFlight('a', async () => 'done');

  it('is refused if it would wait for itself, also through other locks, with its place in the circle', async () => {
    const { locks, backend } = await world.process();
    let owner: string | undefined;
    const error = (await errorOf(
      locks.withLock('a', (lease) => {
        owner = lease.owner;
        return locks.withLock('b', () => fly(locks));
      }),
    )) as LockDeadlockError;
    expect(error).toBeInstanceOf(LockDeadlockError);
    expect(error.message).toBe(
      "The single flight 'a' was called by code that holds this lock already, and would wait for itself. Call it outside, or give it another name",
    );
    expect(error).toMatchObject({ lockName: 'a', cycle: [{ owner, holds: 'a', waitsFor: 'a' }] });
    expect(backend.count('acquire')).toBe(2);
  });

  it('is refused inside several locks of which one is its own', async () => {
    const { locks } = await world.process();
    const error = await errorOf(locks.withLock(['a', 'b'], () => fly(locks)));
    expect(error).toBeInstanceOf(LockDeadlockError);
  });

  it('runs if the lock has another name, was released, or is that of another service', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    expect(await ann.locks.withLock('b', () => fly(ann.locks))).toBe('done');
    const late = ann.locks.withLock('a', async (lease) => {
      await lease.release();
      return fly(ann.locks);
    });
    expect(await late).toBe('done');
    const waiting = errorOf(
      ann.locks.withLock('a', () => bob.locks.singleFlight('a', { waitTime: 100 }, async () => 'done')),
    );
    expect(await world.runtime.until(waiting)).toMatchObject({ name: 'LockBusyError' });
  });

  it('waits like a stranger with reentry: false', async () => {
    const { locks, runtime } = await world.process();
    const flight = () => locks.singleFlight('a', { reentry: false, waitTime: 100 }, async () => 'done');
    expect(await runtime.until(errorOf(locks.withLock('a', flight)))).toMatchObject({ name: 'LockBusyError' });
  });

  it('may be called until a shutdown has ended', async () => {
    const { locks, runtime } = await world.process();
    let closed: Promise<void> | undefined;
    const inside = locks.withLock('b', async () => {
      closed = locks.close();
      const outside = runtime.detached(() => fly(locks));
      return [await outside, await fly(locks)];
    });
    expect(await inside).toEqual(['done', 'done']);
    await runtime.until(closed as Promise<void>);
    expect(await errorOf(fly(locks))).toBeInstanceOf(LockAbortedError);
  });
});

describe('a single flight that waits', () => {
  const world = openVirtualWorld();

  it('waits on during a shutdown if its caller holds a lock, and is refused otherwise', async () => {
    const [ann, bob] = [
      await world.process({ shutdownTimeout: ms(60_000) }),
      await world.process({ shutdownTimeout: ms(60_000) }),
    ];
    const { runtime } = world;
    const held = await bob.locks.acquire('a');
    const fly = () => ann.locks.singleFlight('a', async () => 'done');
    const outside = errorOf(fly());
    const inside = ann.locks.withLock('b', fly);
    await runtime.advance(10);
    const closed = ann.locks.close();
    expect(await runtime.until(outside, 100)).toBeInstanceOf(LockAbortedError);
    await held.release();
    expect(await runtime.until(inside)).toBe('done');
    await runtime.until(closed);
  });
});

describe('a single flight', () => {
  const world = openVirtualWorld();

  it('asks nothing for a caller whose signal has aborted', async () => {
    const { locks, backend } = await world.process();
    const signal = AbortSignal.abort('too late');
    const error = await errorOf(locks.singleFlight('a', { signal }, async () => 'done'));
    expect(error).toBeInstanceOf(LockAbortedError);
    expect(error).toMatchObject({
      message: "Waiting for the single flight 'a' was aborted by the caller's signal",
      lockName: 'a',
      cause: 'too late',
    });
    expect(backend.count()).toBe(0);
  });

  it('reports whose result a caller got, and how long it waited', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const shared: unknown[] = [];
    bob.locks.on('shared', (event) => shared.push(event));
    const end = latch();
    let owner: string | undefined;
    const own = ann.locks.singleFlight('a', async (lease) => {
      owner = lease.owner;
      await end.promise;
      return 1;
    });
    await world.runtime.settle();
    bob.locks.on('acquired', () => {});
    const other = bob.locks.singleFlight('a', { group: 'prices' }, async () => 2);
    await world.runtime.advance(700);
    end.open();
    expect(await world.runtime.until(Promise.all([own, other]))).toEqual([1, 1]);
    expect(shared).toEqual([
      { name: 'a', type: 'flight', group: 'prices', method: '', owner, shared: true, waited: 700 },
    ]);
  });

  it('reports who runs it, and how long that caller waited for the lock', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const { runtime } = world;
    const acquired: unknown[] = [];
    bob.locks.on('acquired', (event) => acquired.push(event));
    const held = await ann.locks.acquire('a');
    const run = bob.locks.singleFlight('a', { group: 'prices' }, async () => 1);
    await runtime.advance(700);
    await held.release();
    await runtime.until(run);
    expect(acquired).toMatchObject([{ name: 'a', type: 'flight', group: 'prices', waited: 700 }]);
  });

  it('reports no time if nobody listens to times', async () => {
    const { locks, runtime } = await world.process();
    const shared: { waited: number }[] = [];
    locks.on('shared', (event) => void shared.push(event));
    const end = latch();
    const calls = [1, 2].map(() => locks.singleFlight('a', () => end.promise.then(() => 1)));
    await runtime.advance(700);
    end.open();
    expect(await runtime.until(Promise.all(calls))).toEqual([1, 1]);
    expect(shared).toMatchObject([{ waited: 0 }]);
  });

  it('gives its runner a copy of the result, too', async () => {
    const { locks } = await world.process();
    const result = { price: 7 };
    const got = await locks.singleFlight('a', async () => result);
    expect(got).toEqual(result);
    expect(got).not.toBe(result);
  });

  it('fails for all callers of its process if its result is no JSON', async () => {
    const { locks, runtime } = await world.process();
    const end = latch();
    const first = errorOf(locks.singleFlight('a', () => end.promise.then(() => new Date(0) as never)));
    await runtime.settle();
    const second = errorOf(locks.singleFlight('a', async () => 'own'));
    await runtime.settle();
    end.open();
    expect(await runtime.until(first)).toMatchObject({ name: 'LockConfigurationError' });
    expect(await runtime.until(second)).toMatchObject({ name: 'LockConfigurationError' });
    expect(await locks.singleFlight('a', async () => 'own')).toBe('own');
  });

  it('gives back its lock if it came when its caller had left', async () => {
    const { locks, backend, runtime } = await world.process();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'acquire');
    const call = errorOf(locks.singleFlight('a', { waitTime: 200 }, async () => 'own'));
    expect(await runtime.until(call)).toMatchObject({ name: 'LockUnavailableError' });
    backend.heal();
    answer.open();
    await runtime.settle();
    expect(await locks.isLocked('a')).toBe(false);
  });
});
