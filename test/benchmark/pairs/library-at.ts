import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Contestant, LockClient } from '../contestants/contestant.js';

type Library = typeof import('nestjs-redis-lock/core');
type Lease = Awaited<ReturnType<ReturnType<Library['createLockService']>['acquire']>>;

/** What one operation takes: one lock, two names at once, or a lock and another one in its scope. */
export type Way = 'one' | 'several' | 'nested';

/** The client library of Redis that locks use. */
export type RedisClient = 'ioredis' | 'node-redis';

/**
 * A build of this library as a contestant. Its name, by which a worker finds it, is its folder, and the way and the
 * client after a `#`.
 */
export function libraryAt(folder: string, way: Way = 'one', client: RedisClient = 'ioredis'): Contestant {
  return {
    name: `${folder}#${way}#${client}`,
    waits: 'listens',
    does: '',
    async open(port): Promise<LockClient> {
      const { createLockService }: Library = await import(pathToFileURL(join(folder, 'esm', 'core.js')).href);
      const url = `redis://127.0.0.1:${port}`;
      const locks = createLockService({ connection: client === 'ioredis' ? url : { client, url } });
      const close = () => locks.close();
      const inner = (key: string) => `${key}:inner`;
      const release = (lease: Lease) => lease.release();
      const one: LockClient<Lease> = { acquire: (key) => locks.acquire(key), release, close };
      const several: LockClient<Lease> = { acquire: (key) => locks.acquire([key, inner(key)]), release, close };
      const nested: LockClient<readonly Lease[]> = {
        acquire: async (key) => {
          const outer = await locks.acquire(key);
          return [await outer.run(() => locks.acquire(inner(key))), outer];
        },
        release: async (leases) => {
          for (const lease of leases) await lease.release();
        },
        close,
      };
      return { one, several, nested }[way] as LockClient;
    },
  };
}

/** @param name of a contestant that {@link libraryAt} has made */
export function libraryNamed(name: string): Contestant {
  const [folder, way, client] = name.split('#');
  return libraryAt(folder, way as Way, client as RedisClient);
}
