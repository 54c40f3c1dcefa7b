import { LockConfigurationError, LockUnavailableError } from '../../../lib/engine/errors.js';
import type { ListedLock, ListOptions } from '../../../lib/service/lock-inspection.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openPlace, PLACES, Place } from '../../support/places.js';
import { startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

async function listAll(locks: LockService, options: ListOptions = {}): Promise<ListedLock[]> {
  const all = new Map<string, ListedLock>();
  let { locks: found, cursor } = await locks.list(options);
  for (;;) {
    for (const lock of found) all.set(lock.name, lock);
    if (cursor === undefined) return [...all.values()];
    ({ locks: found, cursor } = await locks.list({ ...options, cursor }));
  }
}

const namesOf = (locks: readonly ListedLock[]) => locks.map(({ name }) => name).sort();

describe.each(PLACES)('list() in %s', (name) => {
  const place = openPlace(name);

  it('has every lock that is held, with its name, type, owners and lease', async () => {
    const [{ locks }, { locks: other }] = [place.service(), place.service()];
    const leases = [
      await locks.acquire('order:1', { leaseTime: '20s' }),
      await other.acquire('order:2', { type: 'fair' }),
      await locks.acquire('page', { type: 'read', leaseTime: '10s' }),
      await other.acquire('page', { type: 'read', leaseTime: '20s' }),
      await other.acquire('text', { type: 'write' }),
      await other.acquire('fenced', { type: 'fenced' }),
    ];
    const all = await listAll(locks);
    expect(namesOf(all)).toEqual(['fenced', 'order:1', 'order:2', 'page', 'text']);
    const of = (lock: string) => all.find((listed) => listed.name === lock);
    expect(of('order:1')).toMatchObject({ type: 'exclusive', owners: [{ owner: leases[0].owner, mine: true }] });
    expect(of('order:2')).toMatchObject({ type: 'exclusive', owners: [{ owner: leases[1].owner, mine: false }] });
    expect(of('text')).toMatchObject({ type: 'write', owners: [{ owner: leases[4].owner }], waiting: 0 });
    expect(of('page')?.type).toBe('read');
    expect(
      of('page')
        ?.owners.map(({ owner }) => owner)
        .sort(),
    ).toEqual([leases[2].owner, leases[3].owner].sort());
    expect(of('page')?.remainingTime).toBeGreaterThan(10_000);
    expect(of('order:1')?.remainingTime).toBeLessThanOrEqual(20_000);
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await listAll(locks)).toEqual([]);
  });

  it('comes in pages, which together have every lock', async () => {
    const { locks } = place.service();
    const names = Array.from({ length: 300 }, (_, n) => `n:${n}`);
    await Promise.all(names.map((each) => locks.acquire(each)));
    const first = await locks.list({ count: 50 });
    expect(first.locks.length).toBeLessThan(300);
    expect(first.cursor).toEqual(expect.any(String));
    expect(namesOf(await listAll(locks, { count: 50 }))).toEqual(names.sort());
    expect(namesOf(await listAll(locks, { count: 10_000 }))).toEqual(names.sort());
  });

  it('has the names that match a pattern, and takes the prefix verbatim', async () => {
    const { locks } = place.service({ keyPrefix: 'a[b]*c?\\:' });
    const { locks: others } = place.service({ keyPrefix: 'ab-c-x:' });
    for (const each of ['order:1', 'order:2', 'order:10', 'stock:1', 'odd[1]', 'odd*']) await locks.acquire(each);
    await others.acquire('order:1');
    expect(namesOf(await listAll(locks))).toEqual(['odd*', 'odd[1]', 'order:1', 'order:10', 'order:2', 'stock:1']);
    expect(namesOf(await listAll(locks, { match: 'order:*' }))).toEqual(['order:1', 'order:10', 'order:2']);
    expect(namesOf(await listAll(locks, { match: 'order:?' }))).toEqual(['order:1', 'order:2']);
    expect(namesOf(await listAll(locks, { match: '*:[13-9]' }))).toEqual(['order:1', 'stock:1']);
    expect(namesOf(await listAll(locks, { match: 'order:[^1]' }))).toEqual(['order:2']);
    expect(namesOf(await listAll(locks, { match: 'odd\\[1\\]' }))).toEqual(['odd[1]']);
    expect(namesOf(await listAll(locks, { match: 'odd\\*' }))).toEqual(['odd*']);
    expect(namesOf(await listAll(locks, { match: 'order:1' }))).toEqual(['order:1']);
    expect(namesOf(await listAll(locks, { match: '*:[9-3]' }))).toEqual([]);
    expect(namesOf(await listAll(locks, { match: '*:[3-1]' }))).toEqual(['order:1', 'order:2', 'stock:1']);
    expect(namesOf(await listAll(locks, { match: 'x-[a-]*' }))).toEqual([]);
    expect(namesOf(await listAll(others))).toEqual(['order:1']);
  });

  it('counts the callers that wait, also those of other processes', async () => {
    const [{ locks }, { locks: other }, { locks: viewer }] = [place.service(), place.service(), place.service()];
    const leases = [await locks.acquire('plain'), await locks.acquire('fair', { type: 'fair' })];
    const waiting = [
      locks.withLock('plain', async () => {}),
      other.withLock('plain', async () => {}),
      other.withLock('plain', async () => {}),
      other.withLock('fair', { type: 'fair' }, async () => {}),
    ];
    await until(async () => {
      const all = await listAll(viewer);
      const plain = all.find((lock) => lock.name === 'plain')?.waiting;
      return plain === 3 && all.find((lock) => lock.name === 'fair')?.waiting === 1;
    }, 15_000);
    expect((await viewer.inspect('plain')).waiting).toBe(3);
    expect(await locks.inspect('plain')).toMatchObject({ waiting: 3, owners: [{ mine: true }] });
    for (const lease of leases) await lease.release();
    await Promise.all(waiting);
  });

  it('refuses a wrong cursor, and other wrong options', async () => {
    const { locks } = place.service();
    await locks.acquire('order');
    for (const cursor of ['', 'x', '-1', '1e3', '10.0.0.1:1/0', 'after:', 'nobody:6379/12x']) {
      await expect(locks.list({ cursor })).rejects.toThrow(LockConfigurationError);
      await expect(locks.list({ cursor })).rejects.toThrow(
        /cursor .* is not one that list\(\) of this service returned/,
      );
    }
    await expect(locks.list({ count: 0 })).rejects.toThrow('count is 0; it must be a whole number from 1 to 10000');
    await expect(locks.list({ match: '' })).rejects.toThrow(LockConfigurationError);
    await expect(locks.list({ cursor: 7 } as never)).rejects.toThrow(LockConfigurationError);
    await expect(locks.list({ pattern: 'x' } as never)).rejects.toThrow("no option 'pattern'");
    expect(namesOf(await listAll(locks))).toEqual(['order']);
  });
});

describe('list() on Redis', () => {
  it('shows locks only, among other keys with the prefix', async () => {
    const redis = await startRedis();
    const place = await Place.open('memory');
    const client = redis.client();
    const { locks } = place.service({ backend: undefined, connection: redis.url, keyPrefix: 'lock:' });
    await client.set('lock:text', 'x');
    await client.zadd('lock:scores', 1, 'x');
    await locks.getSemaphore('permits').trySetPermits(3);
    await locks.acquire('{slot}:a', { type: 'read' });
    await locks.acquire('b');
    expect(namesOf(await listAll(locks))).toEqual(['b', '{slot}:a']);
    await place.close();
    await redis.stop();
  });

  it('fails with LockUnavailableError when Redis does not answer', async () => {
    const redis = await startRedis();
    const place = await Place.open('memory');
    const { locks } = place.service({ backend: undefined, connection: redis.url, commandTimeout: 200 });
    await locks.acquire('a');
    redis.pause();
    await expect(locks.list()).rejects.toThrow(LockUnavailableError);
    await expect(locks.clients()).rejects.toThrow(LockUnavailableError);
    redis.resume();
    await place.close();
    await redis.stop();
  });
});
