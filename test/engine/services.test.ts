import { MemoryBackend } from '../../lib/backends/redis/in-process/memory-backend.js';
import { MemoryStore } from '../../lib/backends/redis/in-process/memory-store.js';
import { LockKeyError } from '../../lib/engine/errors.js';
import { LockEngine } from '../../lib/engine/lock-engine.js';
import { ENGINE_DEFAULTS } from '../support/engine-defaults.js';
import { ms, openVirtualWorld, RecordingLogger } from '../support/lock-world.js';
import { errorOf } from '../support/section.js';
import { refused } from '../support/watched/watched-backend.js';

describe('the parts of a service', () => {
  const world = openVirtualWorld();

  it('know which locks the process holds: all of them, or those with one key', async () => {
    const { locks } = await world.process();
    const { services } = locks.engine;
    const leases = [
      await locks.acquire('order'),
      await locks.acquire('order', { type: 'fenced', waitTime: 0 }).catch(() => undefined),
      await locks.acquire('stock', { type: 'fair' }),
    ];
    const namesUnder = (key?: string) => services.heldLocks(key).map(({ name }) => name);
    expect(namesUnder().sort()).toEqual(['order', 'stock']);
    expect(namesUnder(services.keyOf('order'))).toEqual(['order']);
    expect(namesUnder(services.keyOf('parcel'))).toEqual([]);
    expect(namesUnder('order')).toEqual([]); // without the prefix
    expect(namesUnder(`elsewhere:${services.keyOf('order')}`)).toEqual([]);
    expect(namesUnder(services.keyOf('order').replace('lock', 'lick'))).toEqual([]); // as long as the prefix
    for (const lease of leases) await lease?.release();
    expect(namesUnder()).toEqual([]);
  });

  it('refuse the key of a name that was built from a missing value', async () => {
    const strict = (await world.process()).locks.engine.services;
    expect(() => strict.keyOf('order:undefined')).toThrow(LockKeyError);
    expect(() => strict.keyOf('order:undefined')).toThrow(/^The lock: the lock name/);
    expect(() => strict.keyOf('order:undefined', 'adopt()')).toThrow(/^adopt\(\): the lock name/);
    expect(strict.keyOf('order-undefined')).toMatch(/:order-undefined$/);
    expect(strict.keyOf('order:1')).toMatch(/:order:1$/);
    expect(() => strict.keyOf('x'.repeat(1_024), 'adopt()')).toThrow(/^adopt\(\): /);
  });

  it('create owner ids that belong to the client, and differ', async () => {
    const { newOwner, clientId } = (await world.process()).locks.engine.services;
    expect([newOwner(), newOwner(), newOwner()]).toEqual([1, 2, 3].map((n) => `${clientId}:${n}`));
  });

  it('listen for forced releases, and write the record of the client, once a lock is held for a second', async () => {
    const { runtime } = world;
    const backend = new MemoryBackend({ runtime, store: new MemoryStore() });
    const log: string[] = [];
    backend.directory.writeClient = async ({ held }) => void log.push(`${held} held at ${runtime.monotonic()}`);
    backend.listenToClient = (clientId) => {
      log.push(`${clientId} listens`);
      return { ready: Promise.resolve(), close: () => {} };
    };
    const engine = new LockEngine({
      ...ENGINE_DEFAULTS,
      backend,
      runtime,
      logger: new RecordingLogger(),
      clientId: 'ann',
      identity: { application: 'shop', host: 'web-1', pid: 7, version: '' },
      watchdogTimeout: ms(30_000),
      waiterTimeout: ms(5_000),
      shutdownTimeout: ms(0),
    });
    const short = await engine.acquire('order');
    await runtime.advance(900);
    await short.release();
    await runtime.advance(5_000);
    expect(log).toEqual([]);
    const lease = await engine.acquire('order');
    await runtime.advance(1_000);
    expect(log).toEqual(['ann listens', `1 held at ${runtime.monotonic()}`]);
    await lease.release();
    await runtime.until(engine.close());
  });

  it('do nothing any more once they were stopped', async () => {
    const { locks, backend, runtime } = await world.process();
    const other = await world.process();
    await locks.acquire('order');
    await other.locks.acquire('stock');
    const waiting = errorOf(locks.acquire('stock'));
    await runtime.advance(2_500);
    backend.disturb(refused, 'acquire', 'renew', 'ping' as never, 'release');
    await runtime.advance(10_000);
    expect(runtime.timers).toBeGreaterThan(0);
    const { services } = locks.engine;
    const { outages, pings, watchdog, backgroundReleases, forcedReleases, deadlocks, presence, holders } = services;
    const parts = { outages, pings, watchdog, backgroundReleases, forcedReleases, deadlocks, presence, holders };
    const closed: string[] = [];
    for (const [name, part] of Object.entries(parts)) {
      const close = part.close.bind(part);
      part.close = () => {
        closed.push(name);
        close();
      };
    }
    services.stop();
    expect(closed).toEqual(Object.keys(parts));
    const renewals = backend.count('renew');
    await runtime.advance(60_000);
    expect(backend.count('renew')).toBe(renewals);
    await runtime.until(locks.close());
    await waiting;
  });

  it('count the permits that are renewed among what the process holds', async () => {
    const { locks, runtime } = await world.process();
    await locks.getPermitExpirableSemaphore('printers').trySetPermits(3);
    const { work } = locks.engine.services;
    expect(work.countPermits()).toBe(0);
    const permits = locks.getPermitExpirableSemaphore('printers');
    const id = await permits.acquire();
    expect(work.countPermits()).toBe(1);
    await permits.release(id as never);
    expect(work.countPermits()).toBe(0);
    await runtime.settle();
  });
});
