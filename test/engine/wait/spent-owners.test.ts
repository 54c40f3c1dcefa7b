import { type AcquireReply, type AcquireRequest, BackendError } from '../../../lib/backends/lock-backend.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import type { Disturbance } from '../../support/watched/watched-backend.js';

const TYPES = ['reentrant', 'fenced', 'read', 'write', 'fair'] as const;

/**
 * A backend may release an acquisition by itself. The owner id must not be used again then, because the release may
 * arrive late.
 */
describe('an acquisition that the backend has given back', () => {
  const world = openVirtualWorld();

  /** Answers the first acquisitions, and records the owners of all. */
  function answering(...answers: (() => AcquireReply)[]): { owners: string[]; disturbance: Disturbance } {
    const owners: string[] = [];
    const disturbance: Disturbance = async (execute, request) => {
      owners.push((request as AcquireRequest).owner);
      return (answers.shift() ?? execute)();
    };
    return { owners, disturbance };
  }

  const tooFewReplicas = () => {
    throw new BackendError('too few replicas had it', 'unavailable', 'refused', { spent: true });
  };
  const noMajority = (): AcquireReply => ({ acquired: false, remaining: 5, holder: 'other:1', spent: true });

  it.each(TYPES)('is tried again as another owner after a failure: type %s', async (type) => {
    const { locks, backend, runtime } = await world.process();
    const { owners, disturbance } = answering(tooFewReplicas);
    backend.disturb(disturbance, 'acquire');
    const lease = await runtime.until(locks.acquire('order', { type }));
    expect(owners).toHaveLength(2);
    expect(owners[1]).not.toBe(owners[0]);
    expect(lease.owner).toBe(owners[1]);
    await lease.release();
  });

  // A quorum does not support fair locks.
  it.each(TYPES.filter((type) => type !== 'fair'))(
    'is tried again as another owner when it was busy: type %s',
    async (type) => {
      const { locks, backend, runtime } = await world.process();
      const { owners, disturbance } = answering(noMajority, noMajority);
      backend.disturb(disturbance, 'acquire');
      const lease = await runtime.until(locks.acquire('order', { type }));
      expect(owners.length).toBeGreaterThanOrEqual(3);
      expect(new Set(owners).size).toBe(owners.length);
      await lease.release();
    },
  );

  it('leaves no writer announced', async () => {
    const { locks, backend, runtime } = await world.process();
    backend.hasLines = false;
    const removed: string[] = [];
    backend.disturb(async (execute, request) => {
      removed.push((request as AcquireRequest).owner);
      return execute();
    }, 'removeWaiter');
    const { owners, disturbance } = answering(noMajority);
    backend.disturb(disturbance, 'acquire');
    const lease = await runtime.until(locks.acquire('page', { type: 'write' }));
    await runtime.settle();
    expect(removed).toEqual([owners[0]]);
    await lease.release();
  });

  it('leaves no announcement of a writer that has left', async () => {
    const { locks, backend, runtime } = await world.process();
    backend.hasLines = false;
    const removed: string[] = [];
    backend.disturb(async (execute, request) => {
      removed.push((request as AcquireRequest).owner);
      return execute();
    }, 'removeWaiter');
    const { owners, disturbance } = answering(...Array.from({ length: 100 }, () => noMajority));
    backend.disturb(disturbance, 'acquire');
    const refusal = locks.acquire('page', { type: 'write', waitTime: 100 }).catch((error: Error) => error.name);
    expect(await runtime.until(refusal)).toBe('LockBusyError');
    await runtime.settle();
    expect(owners.length).toBeGreaterThan(2);
    expect(removed).toEqual(expect.arrayContaining(owners));
  });
});
