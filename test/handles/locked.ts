import type { Lease } from '../../lib/engine/terms/lease.js';
import type { LockHandle } from '../../lib/handles/lock-handle.js';

/** Locks, runs `body`, releases. */
export async function locked(lock: LockHandle, body: (lease: Lease) => unknown, leaseTime?: number): Promise<void> {
  const lease = await lock.lock(leaseTime);
  try {
    await body(lease);
  } finally {
    await lease.release();
  }
}
