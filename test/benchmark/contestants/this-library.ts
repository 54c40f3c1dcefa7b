import { createLockService, type Lease } from 'nestjs-redis-lock';
import type { Contestant, LockClient } from './contestant.js';

/** Its defaults: fencing and watchdog are on in every workload. */
export const thisLibrary: Contestant = {
  name: 'nestjs-redis-lock',
  waits: 'listens',
  does: 'fencing token, watchdog, re-entry, loss signal',
  async open(port): Promise<LockClient<Lease>> {
    const locks = createLockService({ connection: `redis://127.0.0.1:${port}` });
    return {
      acquire: (key) => locks.acquire(key),
      release: (lease) => lease.release(),
      close: () => locks.close(),
    };
  },
};
