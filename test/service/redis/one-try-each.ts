import type { LockService } from '../../../lib/service/lock-service.js';

/** What a job does once, at the same moment on every replica of an application. Each returns whether the job ran. */
export const TRIES: Record<string, (locks: LockService) => Promise<boolean>> = {
  'a lock': (locks) => ran(locks, 'job'),
  'a fair lock': (locks) => ran(locks, 'fair-job', { type: 'fair' }),
  'a read lock': (locks) => ran(locks, 'read-job', { type: 'read' }),
  'a write lock': (locks) => ran(locks, 'write-job', { type: 'write' }),
  'several locks': (locks) => ran(locks, ['job:a', 'job:b']),
  'many locks': (locks) =>
    ran(
      locks,
      Array.from({ length: 12 }, (_, n) => `job:${n}`),
    ),
  'locks of two kinds': async (locks) => {
    const lease = await locks.getMultiLock(locks.getLock('multi:a'), locks.getFairLock('multi:b')).tryLock();
    await lease?.release().catch(() => {});
    return lease !== null;
  },
  'a permit': (locks) => locks.getSemaphore('permits', { permits: 1_000 }).tryAcquire(),
  'a permit with a lease': async (locks) =>
    (await locks.getPermitExpirableSemaphore('leased', { permits: 1_000 }).tryAcquire()) !== null,
  'a single flight': async (locks) =>
    (await locks.singleFlight('flight', { waitTime: 0, keepFor: 0 }, () => 'done')) === 'done',
};

async function ran(locks: LockService, names: string | string[], options = {}): Promise<boolean> {
  const lease = await locks.tryAcquire(names as string, options);
  await lease?.release().catch(() => {});
  return lease !== null;
}
