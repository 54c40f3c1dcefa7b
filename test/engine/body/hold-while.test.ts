import { LockLostError } from '../../../lib/engine/errors.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import { leftovers, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter } from '../../support/watched/watched-backend.js';

describe('a body that runs while a lease is held', () => {
  const world = openVirtualWorld();

  const open = async () => {
    const process = await world.process();
    const { engine } = process.locks;
    const lease = await engine.acquire('order');
    return { ...process, engine, lease, work: engine.services.work };
  };

  it('gets the lease, runs in a scope of it, and has the result of the call, after which the lease is released', async () => {
    const { engine, lease, locks } = await open();
    const result = await engine.holdWhile(lease, async (given) => {
      expect([given, currentLease()]).toEqual([lease, lease]);
      return 'sold';
    });
    expect([result, currentLease(), await locks.isLocked('order')]).toEqual(['sold', undefined, false]);
  });

  it('is unfinished work until it has ended, also if it has released the lease itself', async () => {
    const { engine, lease, work, runtime } = await open();
    const end = latch();
    const seen: boolean[] = [];
    const running = engine.holdWhile(lease, async () => {
      await lease.release();
      work.watch(() => seen.push(work.isIdle));
      await end.promise;
    });
    await runtime.settle();
    expect([work.isIdle, seen]).toEqual([false, []]);
    end.open();
    await running;
    expect([work.isIdle, seen]).toEqual([true, [true]]);
  });

  it.each(['at once', 'later'])(
    'releases the lease when it throws %s, and its error is that of the call',
    async (when) => {
      const { engine, lease, locks, work } = await open();
      const failure = new Error('sold out');
      const body = () => {
        if (when === 'at once') throw failure;
        return Promise.reject(failure);
      };
      expect(await errorOf(engine.holdWhile(lease, body))).toBe(failure);
      expect([await locks.isLocked('order'), work.isIdle]).toEqual([false, true]);
    },
  );

  it('has its own error rather than the loss of its lock, which is the error of one that succeeds', async () => {
    const failing = await open();
    const failure = new Error('sold out');
    const failed = failing.engine.holdWhile(failing.lease, async () => {
      await failing.locks.forceRelease('order');
      throw failure;
    });
    expect(await errorOf(failed)).toBe(failure);
    const succeeding = await open();
    const succeeded = succeeding.engine.holdWhile(succeeding.lease, () => succeeding.locks.forceRelease('order'));
    expect(await errorOf(succeeded)).toBeInstanceOf(LockLostError);
  });

  it.each(['returns', 'throws'])('waits for the answer to the release before it %s', async (how) => {
    const { engine, lease, backend, runtime } = await open();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'release');
    const ended: string[] = [];
    const body = () => (how === 'returns' ? Promise.resolve('sold') : Promise.reject(new Error('sold out')));
    const running = engine.holdWhile(lease, body).then(
      (result) => ended.push(result),
      (error: Error) => ended.push(error.message),
    );
    await runtime.settle();
    expect(ended).toEqual([]);
    answer.open();
    await running;
    expect(ended).toEqual([how === 'returns' ? 'sold' : 'sold out']);
  });

  it.each([true, false])(
    'is no longer timed by holdAtMost once it has ended, whether it succeeds: %s',
    async (succeeds) => {
      const process = await world.process();
      const { locks, runtime, logger } = process;
      const body = () => (succeeds ? Promise.resolve() : Promise.reject(new Error('sold out')));
      await locks.withLock('order', { holdAtMost: '1s', holdAtLeast: '5s' } as never, body).catch(() => {});
      await locks.withLock('stock', { holdAtMost: '1s' }, body).catch(() => {});
      await runtime.settle();
      expect(leftovers(process).timers).toBe(0);
      await runtime.advance(2_000);
      expect(logger.warnings).toEqual([]);
    },
  );

  it('keeps the lock for the rest of the time for which it is to be held at least', async () => {
    const { engine, lease, locks, runtime, backend } = await open();
    await engine.holdWhile(lease, () => runtime.advance(300), 1_000);
    await runtime.advance(690);
    expect([await locks.isLocked('order'), backend.count('release')]).toEqual([true, 0]);
    await runtime.advance(20);
    expect(await locks.isLocked('order')).toBe(false);
  });

  it('frees the lock at once if it took at least as long', async () => {
    const process = await open();
    const { engine, lease, locks, runtime, backend } = process;
    await engine.holdWhile(lease, () => runtime.advance(1_000), 1_000);
    expect([await locks.isLocked('order'), backend.count('release')]).toEqual([false, 1]);
    await runtime.advance(5_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });
});
