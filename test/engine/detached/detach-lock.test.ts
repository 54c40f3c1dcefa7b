import { BackendError, type ReleaseRequest, type TransferRequest } from '../../../lib/backends/lock-backend.js';
import { toDetachedTime } from '../../../lib/engine/detached/detach-lock.js';
import { LockConfigurationError, LockLostError } from '../../../lib/engine/errors.js';
import { leftovers, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, answerLost } from '../../support/watched/watched-backend.js';

describe('a lock that is being detached', () => {
  const world = openVirtualWorld();

  /** A lock that the process has for ten seconds. The owners are those that were released. */
  const open = async () => {
    const process = await world.process();
    const { locks, backend } = process;
    const lease = await locks.acquire('order', { leaseTime: 10_000 });
    const released: string[] = [];
    backend.disturb(async (execute, request) => {
      released.push((request as ReleaseRequest).owner);
      return execute();
    }, 'release');
    return { ...process, process, lease, released };
  };

  it('goes from its owner to the owner of the ticket, for the time of the ticket', async () => {
    const { locks, backend, lease } = await open();
    const requests: TransferRequest[] = [];
    backend.disturb(async (execute, request) => {
      requests.push(request as TransferRequest);
      return execute();
    }, 'transfer');
    await lease.detach({ for: '5m' });
    const [{ to }] = requests;
    const key = locks.engine.keyOf('order');
    expect(requests).toEqual([{ key, type: 'reentrant', from: lease.owner, to, leaseTime: 300_000, reserve: 0 }]);
    expect((await locks.inspect('order')).owners).toMatchObject([{ owner: to, remainingTime: 300_000 }]);
  });

  it.each(['denied', 'closed', 'key'] as const)(
    'is lost at once when the backend is %s, and released by either owner',
    async (kind) => {
      const { backend, runtime, lease, released, process } = await open();
      backend.disturb(async () => {
        throw new BackendError('no usable answer', kind, 'unknown');
      }, 'transfer');
      const error = await runtime.until(errorOf(lease.detach({ for: '5m' })));
      expect(error).toBeInstanceOf(LockLostError);
      expect(error.message).toBe("The lock 'order' was lost while it was being detached: no usable answer");
      expect(error.cause).toMatchObject({ kind });
      expect(backend.count('transfer')).toBe(1);
      await runtime.settle();
      expect(released).toEqual([lease.owner, expect.stringMatching(/:t-/)]);
      await runtime.advance(1_000);
      expect(leftovers(process)).toEqual(NOTHING);
    },
  );

  it('is not asked for again when the backend has released the new owner', async () => {
    const { backend, runtime, lease } = await open();
    backend.disturb(async () => {
      throw new BackendError('no answer', 'unavailable', 'unknown', { spent: true });
    }, 'transfer');
    expect(await runtime.until(errorOf(lease.detach({ for: '5m' })))).toBeInstanceOf(LockLostError);
    expect(backend.count('transfer')).toBe(1);
  });

  it('is asked for again until its lease has ended, and not after that', async () => {
    const { backend, runtime, lease } = await open();
    const times: number[] = [];
    backend.disturb(async (execute, request) => {
      times.push(runtime.monotonic());
      return answerLost(execute, request);
    }, 'transfer');
    const error = await runtime.until(errorOf(lease.detach({ for: '5m' })));
    expect(error.message).toBe("The lock 'order' was lost while it was being detached: no answer in time");
    // One percent and two milliseconds of a lease are not certain.
    expect(times.at(-1)).toBeCloseTo(9_898, 3);
    expect(times.at(-2)).toBeLessThan(9_898);
  });

  it('is lost if the backend does not hold it any more, or answers too late', async () => {
    const gone = await open();
    await gone.backend.forceRelease(gone.locks.engine.keyOf('order'));
    expect((await errorOf(gone.lease.detach({ for: '5m' }))).message).toBe(
      "The lock 'order' was lost while it was being detached: it no longer existed",
    );
    const late = await open();
    const answer = latch();
    late.backend.disturb(async () => {
      await answer.promise;
      return undefined;
    }, 'transfer');
    const detaching = errorOf(late.lease.detach({ for: '5m' }));
    await late.runtime.advance(10_000);
    answer.open();
    expect((await detaching).message).toBe(
      "The lock 'order' was lost while it was being detached: its lease ended before the backend answered",
    );
  });

  it('is lost if this process releases the owner of the ticket by force meanwhile', async () => {
    const { locks, backend, runtime, lease } = await open();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'transfer');
    const detaching = errorOf(lease.detach({ for: '5m' }));
    await runtime.settle();
    await locks.forceRelease('order');
    answer.open();
    expect((await detaching).message).toBe(
      "The lock 'order' was lost while it was being detached: it was force-released",
    );
    await runtime.settle();
    expect(await locks.isLocked('order')).toBe(false);
  });

  it('is asked for by callers of its process once it was detached, and not before', async () => {
    const { locks, backend, runtime, lease } = await open();
    const answer = latch();
    backend.disturb(answerAfter(answer.promise), 'transfer');
    const detaching = lease.detach({ for: 500 });
    const waiting = locks.acquire('order');
    await runtime.advance(50);
    expect(backend.count('acquire')).toBe(1);
    answer.open();
    await detaching;
    await runtime.settle();
    expect(backend.count('acquire')).toBeGreaterThan(1);
    await (await runtime.until(waiting, 1_000)).release();
  });

  it('is released once more by its former owner if a copy of its acquisition may still arrive', async () => {
    const process = await world.process();
    const { locks, backend, runtime } = process;
    backend.disturb(async (execute) => ({ ...(await execute()), validUntil: 5_000 }), 'acquire');
    const lease = await locks.acquire('order');
    const released: string[] = [];
    backend.disturb(async (execute, request) => {
      released.push((request as ReleaseRequest).owner);
      return { ...(await execute()), at: 6_000 };
    }, 'release');
    await lease.detach({ for: '5m' });
    await runtime.advance(1_000);
    expect(released).toEqual([lease.owner]);
    const certain = await locks.acquire('stock');
    expect(await locks.isLocked('order')).toBe(true);
    await certain.release();
  });
});

describe('the time for which a lock is detached', () => {
  it.each([
    [undefined, "detach() of 'order': say how long the lock waits to be adopted: detach({ for: '5m' })"],
    [null, "detach() of 'order': say how long the lock waits to be adopted: detach({ for: '5m' })"],
    ['5m', "detach() of 'order': say how long the lock waits to be adopted: detach({ for: '5m' })"],
    [{ for: '5m', until: 7 }, "detach() of 'order': there is no option 'until'; there are for"],
    [{}, "detach() of 'order': for is undefined"],
  ])('is refused with the reason: %j', (options, message) => {
    const check = () => toDetachedTime(options as never, 'order');
    expect(check).toThrow(LockConfigurationError);
    expect(check).toThrow(message);
  });

  it('is a duration', () => {
    expect([toDetachedTime({ for: '5m' }, 'order'), toDetachedTime({ for: 100 }, 'order')]).toEqual([300_000, 100]);
  });
});
