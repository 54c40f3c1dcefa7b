import { LockAbortedError, LockUnavailableError } from '../../../lib/engine/errors.js';
import { leftovers, NOTHING, openVirtualWorld } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { refused } from '../../support/watched/watched-backend.js';

describe('a caller of several locks', () => {
  const world = openVirtualWorld();

  it('takes a lock again that it has lost while it took the others', async () => {
    const [ann, bob] = [await world.process(), await world.process()];
    const { locks, backend, runtime } = ann;
    const busy = await bob.locks.acquire('b');
    const waiting = locks.acquire(['a', 'b']);
    await runtime.advance(100);
    const [taking, go] = [latch(), latch()];
    backend.disturb(async (execute, request) => {
      const reply = await execute();
      if ((request as { key: string }).key.endsWith(':a')) {
        taking.open();
        await go.promise;
      }
      return reply;
    }, 'acquire');
    await busy.release();
    await runtime.until(taking.promise);
    backend.heal();
    expect(await locks.forceRelease('b')).toBe(true);
    go.open();
    const lease = await runtime.until(waiting);
    expect(lease.held).toBe(true);
    for (const name of ['a', 'b']) expect(await bob.locks.isLocked(name)).toBe(true);
    await lease.release();
    await runtime.advance(5_000);
    expect(leftovers(ann)).toEqual(NOTHING);
  });

  it('waits inside a scope until its siblings have left the lock that they share', async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    const over = latch();
    const seen: string[] = [];
    await locks.withLock('a', async (outer) => {
      const sibling = locks.withLock('a', async () => {
        await over.promise;
        seen.push('sibling');
      });
      const several = locks.withLock(['a', 'b'], async ({ owners }) => {
        expect(owners.get('a')).toBe(outer.owner);
        seen.push('several');
      });
      await runtime.advance(1_000);
      expect(seen).toEqual([]);
      expect(await locks.tryAcquire(['a', 'b'])).toBeNull();
      over.open();
      await runtime.until(Promise.all([sibling, several]));
    });
    expect(seen).toEqual(['sibling', 'several']);
    await runtime.advance(5_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('that leaves lets in the readers that wait behind it in a scope', async () => {
    const process = await world.process();
    const { locks, runtime } = process;
    const [reading, leaves] = [latch(), new AbortController()];
    await locks.withLock('a', { type: 'write' }, async () => {
      const first = locks.withLock('a', { type: 'read' }, () => reading.promise);
      const several = errorOf(locks.acquire(['a', 'b'], { type: 'write', signal: leaves.signal }));
      await runtime.settle();
      const second = locks.withLock('a', { type: 'read', waitTime: '1s' }, () => 'read');
      await runtime.settle();
      leaves.abort();
      expect(await several).toBeInstanceOf(LockAbortedError);
      expect(await runtime.until(second)).toBe('read');
      reading.open();
      await first;
    });
    await runtime.advance(5_000);
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('is refused when the backend is away for longer than its outageTimeout', async () => {
    const { locks, backend, runtime } = await world.process();
    const busy = await locks.acquire('a');
    const waiting = errorOf(locks.acquire(['a', 'b'], { outageTimeout: '2s' }));
    await runtime.advance(1_000);
    backend.disturb(refused, 'acquire', 'acquireAll', 'renew', 'ping' as never);
    const error = await runtime.until(waiting, 24_000);
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error).toMatchObject({ lockName: 'a, b' });
    backend.heal();
    await busy.release();
  });

  it('is refused when its service shuts down, with the names of all of them', async () => {
    const { locks, runtime } = await world.process();
    const other = await world.process();
    const busy = await other.locks.acquire('a');
    const waiting = errorOf(locks.acquire(['a', 'b']));
    await runtime.advance(1_000);
    const closed = locks.close();
    const error = await runtime.until(waiting);
    expect(error).toBeInstanceOf(LockAbortedError);
    expect(error).toMatchObject({ lockName: 'a, b' });
    await runtime.until(closed);
    await busy.release();
  });

  it('that tries once asks again after one release of its process, not after the next one', async () => {
    const { locks, backend, runtime } = await world.process();
    const leases = await Promise.all(['x', 'y'].map((name) => locks.acquire(name)));
    const answers = leases.map(() => latch());
    const byOwner = new Map(leases.map(({ owner }, n) => [owner, answers[n].promise]));
    backend.disturb(async (execute, request) => {
      await byOwner.get((request as { owner: string }).owner);
      return execute();
    }, 'release');
    const released = leases.map((lease) => lease.release());
    // The backend names an owner that is being released, and another one at the next question.
    const holders = leases.map(({ owner }) => owner);
    backend.disturb(
      async () => ({ acquired: false, index: 0, remaining: 1_000, holder: holders.shift() }),
      'acquireAll',
    );
    let result: unknown = 'waiting';
    const tried = locks.tryAcquire(['a', 'b']).then((lease) => {
      result = lease;
    });
    await runtime.settle();
    expect([result, holders]).toEqual(['waiting', [leases[1].owner]]);
    answers[0].open();
    await runtime.settle();
    expect([result, holders]).toEqual([null, []]);
    answers[1].open();
    await Promise.all([tried, ...released]);
  });
});
