import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Contestant, LockClient } from '../contestants/contestant.js';

type Library = typeof import('nestjs-redis-lock/core');
type Lease = Awaited<ReturnType<ReturnType<Library['createLockService']>['acquire']>>;

/**
 * What one operation acquires: one lock, two names at once, or a lock and another one in its scope. `body`: one lock by
 * withLock. `background`: the same without waiting for the release, if the build has that option.
 */
export type Way = 'one' | 'several' | 'nested' | 'body' | 'background';

const SILENT = { warn() {}, error() {} };

/** The Redis client that the locks use. */
export type RedisClient = 'ioredis' | 'node-redis';

/**
 * A build of this library as a contestant. A worker finds it by its name, which consists of its folder and, after a
 * `#`, the kind of operation and the client.
 */
export function libraryAt(folder: string, way: Way = 'one', client: RedisClient = 'ioredis'): Contestant {
  return {
    name: `${folder}#${way}#${client}`,
    waits: 'listens',
    does: '',
    async open(port): Promise<LockClient> {
      const { createLockService }: Library = await import(pathToFileURL(join(folder, 'esm', 'core.js')).href);
      const url = `redis://127.0.0.1:${port}`;
      const connection = client === 'ioredis' ? url : { client, url };
      const make = (options: object) => createLockService({ connection, logger: SILENT, ...options });
      const locks = way === 'background' ? inBackground(make) : make({});
      const close = () => locks.close();
      const inner = (key: string) => `${key}:inner`;
      const release = (lease: Lease) => lease.release();
      // On a busy machine, Redis may not even answer within a short wait.
      const tryFor = async (key: string, waitTime: number) => {
        try {
          return (await locks.tryAcquire(key, { waitTime })) ?? undefined;
        } catch (error) {
          if ((error as Error).name === 'LockUnavailableError') return undefined;
          throw error;
        }
      };
      const one: LockClient<Lease> = { acquire: (key) => locks.acquire(key), tryFor, release, close };
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
      let latest = 'none';
      const hold = (key: string, body: () => void) => {
        latest = key;
        return locks.withLock(key, body);
      };
      const body: LockClient<Lease> = { ...one, hold };
      const background: LockClient<Lease> = { ...one, hold, settled: () => locks.isLocked(latest) };
      return { one, several, nested, body, background }[way] as LockClient;
    },
  };
}

/** Commits from before this option confirm each release. */
function inBackground<Locks>(make: (options: object) => Locks): Locks {
  try {
    return make({ release: 'background' });
  } catch {
    return make({});
  }
}

/** @param name the name of a contestant that {@link libraryAt} has made */
export function libraryNamed(name: string): Contestant {
  const [folder, way, client] = name.split('#');
  return libraryAt(folder, way as Way, client as RedisClient);
}
