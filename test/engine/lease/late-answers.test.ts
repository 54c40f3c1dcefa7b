import type { MultiLease } from '../../../lib/engine/terms/lease.js';
import { openVirtualWorld, type VirtualProcess } from '../../support/lock-world.js';
import type { Disturbance } from '../../support/watched/watched-backend.js';

const LEASE = { leaseTime: '30s' } as const;

describe('a lease whose answer came ten seconds late', () => {
  const world = openVirtualWorld();

  /** Delays the first `count` answers. */
  const late = ({ runtime }: VirtualProcess, count = Number.POSITIVE_INFINITY): Disturbance => {
    let answers = 0;
    return async (execute) => {
      const reply = await execute();
      if (++answers <= count) await new Promise<void>((resolve) => runtime.timer(10_000, resolve));
      return reply;
    };
  };

  it.each<[string, (process: VirtualProcess) => Promise<MultiLease>]>([
    ['of a reentrant lock', ({ locks }) => locks.acquire('order', LEASE)],
    ['of a fenced lock', ({ locks }) => locks.acquire('order', { ...LEASE, type: 'fenced' })],
    ['of a fair lock', ({ locks }) => locks.acquire('order', { ...LEASE, type: 'fair' })],
    ['of a read lock', ({ locks }) => locks.acquire('order', { ...LEASE, type: 'read' })],
    ['of a write lock', ({ locks }) => locks.acquire('order', { ...LEASE, type: 'write' })],
    ['of several locks in one step', ({ locks }) => locks.acquire(['order', 'stock'], LEASE)],
    [
      'of the first of several locks that are taken one by one',
      (process) => {
        const { locks, backend } = process;
        backend.canAcquireTogether = () => false;
        backend.disturb(late(process, 1), 'acquire');
        return locks.acquire(['order', 'stock'], LEASE);
      },
    ],
    [
      'that a predecessor in the process passed on',
      async (process) => {
        const { locks, backend } = process;
        backend.heal();
        const before = await locks.acquire('order', LEASE);
        const next = locks.acquire('order', LEASE);
        backend.disturb(late(process), 'transfer');
        void before.release();
        return next;
      },
    ],
    [
      'of a read lock inside of the write lock',
      async (process) => {
        const { locks, backend } = process;
        backend.heal();
        const written = await locks.acquire('order', { type: 'write', leaseTime: '5m' });
        backend.disturb(late(process), 'acquire');
        return written.run(() => locks.acquire('order', { ...LEASE, type: 'read' }));
      },
    ],
  ])('%s ends when the backend ends it, counted from before the request', async (_, acquire) => {
    const process = await world.process();
    const { backend, runtime } = process;
    backend.disturb(late(process), 'acquire', 'acquireAll');
    const lease = await runtime.until(acquire(process));
    expect(runtime.monotonic()).toBe(10_000);
    expect(lease.remainingTime()).toBeGreaterThan(19_000);
    expect(lease.remainingTime()).toBeLessThan(20_000);
    await runtime.advance(19_000);
    expect([lease.held, lease.signal.aborted]).toEqual([true, false]);
    await runtime.advance(1_000);
    expect([lease.held, lease.signal.aborted]).toEqual([false, true]);
    await lease.release().catch(() => {});
  });
});
