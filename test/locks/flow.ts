import { lockScopes } from '../../lib/engine/lock-scope.js';
import type { LockHandle } from '../../lib/locks/lock-handle.js';

/** Runs `body` as a flow of control of its own, as a request is in a server: handles mark the flow that calls them. */
export function flow<T>(body: () => Promise<T>): Promise<T> {
  return lockScopes.run(undefined, body);
}

/** Locks, runs `body`, unlocks; as a flow of its own. */
export function locked(lock: LockHandle, body: () => unknown, leaseTime?: number): Promise<void> {
  return flow(async () => {
    await lock.lock(leaseTime);
    try {
      await body();
    } finally {
      await lock.unlock();
    }
  });
}
