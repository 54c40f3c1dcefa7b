import { createLockService, type Lease } from 'nestjs-redis-lock';
import type { Contestant, LockClient } from './contestant.js';

/** Uses withLock with background releases, which are not waited for. */
export const inBackground: Contestant = {
  name: "nestjs-redis-lock, release: 'background'",
  waits: 'listens',
  does: 'withLock: as above, in a scope; a call settles before its release is answered',
  async open(port): Promise<LockClient<Lease>> {
    const locks = createLockService({ connection: `redis://127.0.0.1:${port}`, release: 'background' });
    let latest = 'none';
    return {
      acquire: (key) => locks.acquire(key),
      release: (lease) => lease.release(),
      hold: (key, body) => {
        latest = key;
        return locks.withLock(key, body);
      },
      settled: () => locks.isLocked(latest), // this request is sent after the release
      close: () => locks.close(),
    };
  },
};

/** Uses the defaults: fencing and watchdog are on in every workload. */
export const thisLibrary: Contestant = {
  name: 'nestjs-redis-lock',
  waits: 'listens',
  does: 'fencing token, watchdog, re-entry, loss signal',
  async open(port): Promise<LockClient<Lease>> {
    const locks = createLockService({ connection: `redis://127.0.0.1:${port}` });
    return {
      acquire: (key) => locks.acquire(key),
      tryFor: async (key, waitTime) => (await locks.tryAcquire(key, { waitTime })) ?? undefined,
      release: (lease) => lease.release(),
      close: () => locks.close(),
    };
  },
};
