import type { LockBackend } from '../../../lib/backends/lock-backend.js';
import { RedisWorld } from './redis-world.js';

type Call = (backend: LockBackend, world: RedisWorld) => Promise<unknown>;

const synchronizers = (backend: LockBackend) => {
  if (backend.synchronizers === undefined) throw new Error('it has no semaphores');
  return backend.synchronizers;
};

/** What a call does, for each way of sending its script. */
const CALLS: readonly (readonly [string, Call])[] = [
  ['an acquisition, in a batch', (backend, world) => backend.acquire(world.request())],
  ['a renewal, in a batch', (backend, world) => backend.renew(world.request())],
  ['a release, in a batch', (backend, world) => backend.release(world.request())],
  ['an acquisition of several locks', (backend, world) => backend.acquireAll([world.request(), world.request()])],
  ['a question about a lock', (backend, world) => backend.inspect(world.request().key)],
  ['a forced release', (backend, world) => backend.forceRelease(world.request().key)],
  [
    'a place in the queue of a fair lock',
    (backend, world) => backend.removeWaiter({ ...world.request(), type: 'fair' }),
  ],
  [
    'a change of a semaphore',
    (backend, world) =>
      synchronizers(backend).trySetPermits(world.request().key, 3, { session: 'one', sequence: 1 }, 'semaphore'),
  ],
];

describe('a script that the server does not know', () => {
  const world = new RedisWorld();

  it.each(CALLS)('is sent to it once: %s', async (_, call) => {
    const backend = world.backend();
    await backend.acquire(world.request());
    await world.redis.script('FLUSH');
    await world.redis.config('RESETSTAT');
    await call(backend, world);
    await call(backend, world);
    expect(await world.redis.info('errorstats')).toContain('errorstat_NOSCRIPT:count=1\r\n');
  });
});
