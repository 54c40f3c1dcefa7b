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

  it.each(['reentrant', 'fenced', 'fair'] as const)(
    'has the processes that wait for a %s lock, in their order, with their callers',
    async (type) => {
      const names = ['first', 'second', 'third'];
      const [{ locks: holder }, ...others] = Array.from({ length: 4 }, (_, n) =>
        place.service({ applicationName: names[n - 1] ?? 'holder' }),
      );
      const lease = await holder.acquire('order', { type });
      const waiting: Promise<void>[] = [];
      for (const [n, { locks }] of others.entries()) {
        for (let callers = 0; callers <= n; callers++)
          waiting.push(locks.withLock('order', { type, group: `of ${names[n]}` }, async () => {}));
        await until(async () => (await holder.inspect('order')).line.filter(({ position }) => position).length > n);
      }
      const expected = names.map((application, n) => ({
        clientId: expect.any(String),
        mine: false,
        position: n + 1,
        callers: n + 1,
        waitedFor: expect.any(Number),
        client: expect.objectContaining({ application, pid: process.pid, group: `of ${application}` }),
      }));
      await until(async () => (await holder.inspect('order')).line.every(({ waitedFor }) => waitedFor), 15_000);
      expect((await holder.inspect('order')).line).toEqual(expected);
      expect((await listAll(holder)).find((lock) => lock.name === 'order')?.line).toEqual(expected);
      const [mine, ...rest] = (await others[0].locks.inspect('order')).line;
      expect(mine).toEqual({ ...expected[0], mine: true });
      expect(rest).toEqual(expected.slice(1));
      await lease.release();
      await Promise.all(waiting);
      // The records of those who have left still mention their waits.
      expect((await holder.inspect('order')).line).toEqual([]);
    },
  );

  it('has the process that holds the lock last, if its own callers wait for it', async () => {
    const [{ locks: holder }, { locks: other }, { locks: viewer }] = [
      place.service({ applicationName: 'holder' }),
      place.service({ applicationName: 'other' }),
      place.service(),
    ];
    const lease = await holder.acquire('order');
    const waiting = [holder, holder, other].map((locks) => locks.withLock('order', async () => {}));
    const shown = async (locks: LockService) =>
      (await locks.inspect('order')).line.map(({ client, callers, position }) => [
        client?.application,
        callers,
        position,
      ]);
    const expected = [
      ['other', 1, 1],
      ['holder', 2, undefined],
    ];
    await until(async () => (await shown(viewer)).every(([, callers]) => callers) && (await shown(viewer))[1], 15_000);
    expect(await shown(viewer)).toEqual(expected);
    expect(await shown(holder)).toEqual(expected);
    await lease.release();
    await Promise.all(waiting);
  });

  it('has readers and writers in their order, and says how many once their records mention the wait', async () => {
    const [{ locks: holder }, { locks: reader }, { locks: writer }] = [
      place.service(),
      place.service({ applicationName: 'reader' }),
      place.service({ applicationName: 'writer' }),
    ];
    const lease = await holder.acquire('page', { type: 'write' });
    const waiting = [
      reader.withLock('page', { type: 'read' }, async () => {}),
      reader.withLock('page', { type: 'read' }, async () => {}),
    ];
    const own = (await reader.inspect('page')).line;
    expect(own).toEqual([
      { clientId: expect.any(String), mine: true, callers: 2, client: expect.objectContaining({ group: '' }) },
    ]);
    const line = async () => (await holder.inspect('page')).line;
    await until(async () => (await line()).length === 1, 15_000);
    waiting.push(writer.withLock('page', { type: 'write' }, async () => {}));
    const isKnown = ({ callers }: { readonly callers?: number }) => callers !== undefined;
    await until(async () => (await line()).length === 2 && (await line()).every(isKnown), 15_000);
    expect((await line()).map(({ client, callers, position }) => [client?.application, callers, position])).toEqual([
      ['reader', 2, 1],
      ['writer', 1, 2],
    ]);
    await lease.release();
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

  it.each([
    [PLACES[1], ''],
    [PLACES[1], 'n'],
    [PLACES[1], 'a{b}*:'],
    [PLACES[2], ''],
    [PLACES[2], 'n'],
  ])('in %s shows no line as a lock or as anything else, with the keyPrefix %j', async (where, keyPrefix) => {
    const place = await Place.open(where);
    const [{ locks }, { locks: other }] = [place.service({ keyPrefix }), place.service({ keyPrefix })];
    const types = ['reentrant', 'fenced', 'fair', 'write'] as const;
    const leases = await Promise.all(types.map((type) => locks.acquire(type, { type })));
    const waiting = types.map((type) => other.withLock(type, { type }, async () => {}));
    await until(async () =>
      (await locks.list()).locks.every(({ line, type }) => type === 'write' || line.length === 1),
    );
    const all = await locks.list({ count: 10_000 });
    expect(namesOf(all.locks)).toEqual([...types].sort());
    expect(all).toMatchObject({ synchronizers: [], results: [] });
    for (const lease of leases) await lease.release();
    await Promise.all(waiting);
    await place.close();
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
