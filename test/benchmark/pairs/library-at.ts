import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Contestant, LockClient } from '../contestants/contestant.js';

type Library = typeof import('nestjs-redis-lock/core');
type Lease = Awaited<ReturnType<ReturnType<Library['createLockService']>['acquire']>>;

/** A build of this library as a contestant; its folder is its name, by which a worker finds it. */
export function libraryAt(folder: string): Contestant {
  return {
    name: folder,
    waits: 'listens',
    does: '',
    async open(port): Promise<LockClient<Lease>> {
      const { createLockService }: Library = await import(pathToFileURL(join(folder, 'esm', 'core.js')).href);
      const locks = createLockService({ connection: `redis://127.0.0.1:${port}` });
      return {
        acquire: (key) => locks.acquire(key),
        release: (lease) => lease.release(),
        close: () => locks.close(),
      };
    },
  };
}
