import type { OwnerRef } from '../../../lib/backends/lock-backend.js';
import { LockAbortedError } from '../../../lib/engine/errors.js';
import type { Lease } from '../../../lib/engine/terms/lease.js';
import { openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import { errorOf, latch } from '../../support/section.js';
import { answerAfter, refused } from '../../support/watched/watched-backend.js';

const FAIR_WAIT_TIMEOUT = 5_000;

describe('a writer that waits behind a reader of another process', () => {
  const world = openVirtualWorld();

  /** The processes of a reader that holds the lock, of the writer, and of a reader that arrives later. */
  const scene = async () => {
    const [first, writer, later] = [await world.process(), await world.process(), await world.process()];
    const reading = await first.locks.acquire('page', { type: 'read' });
    return { reading, writer, later };
  };
  const mayRead = async ({ locks }: VirtualProcess) => {
    const lease = await locks.tryAcquire('page', { type: 'read' });
    await lease?.release();
    return lease !== null;
  };
  const finish = async (reading: Lease, writing: Promise<Lease>) => {
    await reading.release();
    await (await world.runtime.until(writing)).release();
  };

  it('keeps later readers out for as long as it waits', async () => {
    const { reading, writer, later } = await scene();
    const writing = writer.locks.acquire('page', { type: 'write' });
    for (let second = 0; second < 25; second++) {
      await world.runtime.advance(1_000);
      expect(await mayRead(later)).toBe(false);
    }
    await finish(reading, writing);
  });

  it('is announced again when it was taken for dead meanwhile', async () => {
    const { reading, writer, later } = await scene();
    const writing = writer.locks.acquire('page', { type: 'write' });
    await world.runtime.settle();
    writer.backend.disturb(refused, 'refreshWaiters');
    await world.runtime.advance(FAIR_WAIT_TIMEOUT + 500);
    expect(await mayRead(later)).toBe(true);
    writer.backend.heal();
    await world.runtime.advance(FAIR_WAIT_TIMEOUT);
    expect(await mayRead(later)).toBe(false);
    await finish(reading, writing);
  });

  it('keeps later readers out although an acquisition of it has failed', async () => {
    const { reading, writer, later } = await scene();
    const { locks, backend, runtime } = writer;
    const writing = locks.acquire('page', { type: 'write' });
    await runtime.settle();
    backend.disturb(refused, 'acquire');
    const asked = backend.count('acquire');
    await reading.release(); // the writer is notified, and tries again
    await runtime.settle();
    expect(backend.count('acquire')).toBe(asked + 1);
    expect(await mayRead(later)).toBe(false);
    backend.heal();
    await (await runtime.until(writing)).release();
    expect(await mayRead(later)).toBe(true);
  });

  it('lets readers in at once when it has left before its acquisition was answered that found the lock busy', async () => {
    const { reading, writer, later } = await scene();
    const { locks, backend, runtime } = writer;
    const answer = latch();
    let asked = 0;
    backend.disturb(
      // The second acquisition enters the line.
      (execute, request) => (++asked === 1 ? execute() : answerAfter(answer.promise)(execute, request)),
      'acquire',
    );
    const leaving = new AbortController();
    const writing = errorOf(locks.acquire('page', { type: 'write', signal: leaving.signal }));
    await runtime.settle();
    expect(await mayRead(later)).toBe(false);
    leaving.abort();
    expect(await writing).toBeInstanceOf(LockAbortedError);
    answer.open();
    await runtime.settle();
    expect(await mayRead(later)).toBe(true);
    await reading.release();
  });

  it('lets readers in at once when it has left before another acquisition failed', async () => {
    const { reading, writer, later } = await scene();
    const { locks, backend, runtime } = writer;
    const leaving = new AbortController();
    const writing = errorOf(locks.acquire('page', { type: 'write', signal: leaving.signal }));
    await runtime.settle();
    const answer = latch();
    backend.disturb((execute, request) => answer.promise.then(() => refused(execute, request)), 'acquire');
    await reading.release(); // the writer is notified, and tries again
    await runtime.settle();
    expect(backend.underWay).toBe(1);
    leaving.abort();
    expect(await writing).toBeInstanceOf(LockAbortedError);
    answer.open();
    await runtime.settle();
    expect(await mayRead(later)).toBe(true);
  });

  it('lets readers in when its departure reaches the backend only at the second try', async () => {
    const { reading, writer, later } = await scene();
    const { locks, backend, runtime } = writer;
    const leaving = new AbortController();
    const writing = errorOf(locks.acquire('page', { type: 'write', signal: leaving.signal }));
    await runtime.advance(100);
    let removals = 0;
    backend.disturb((execute, request) => (++removals === 1 ? refused(execute, request) : execute()), 'removeWaiter');
    leaving.abort();
    expect(await writing).toBeInstanceOf(LockAbortedError);
    await runtime.advance(500);
    expect(await mayRead(later)).toBe(true);
    await reading.release();
  });
});

describe('a fair waiter whose departure reaches the backend only at the second try', () => {
  const world = openVirtualWorld();

  it('is soon behind nobody in the queue', async () => {
    const [holder, { locks, backend, runtime }] = [await world.process(), await world.process()];
    const held = await holder.locks.acquire('order', { type: 'fair' });
    const leaving = new AbortController();
    const waiting = errorOf(locks.acquire('order', { type: 'fair', signal: leaving.signal }));
    await runtime.advance(100);
    expect((await holder.locks.inspect('order')).waiting).toBe(1);
    const removed: string[] = [];
    backend.disturb((execute, request) => {
      removed.push((request as OwnerRef).owner);
      return removed.length === 1 ? refused(execute, request) : execute();
    }, 'removeWaiter');
    leaving.abort();
    expect(await waiting).toBeInstanceOf(LockAbortedError);
    await runtime.advance(500);
    expect(removed).toEqual([removed[0], removed[0]]);
    expect((await holder.locks.inspect('order')).waiting).toBe(0);
    await held.release();
  });
});
