import type { RequestId, SynchronizerBackend, SynchronizerKind } from '../../lib/backends/synchronizer-backend.js';
import { NEVER } from '../support/time-limits.js';
import { until } from '../support/until.js';
import type { Client, Fixture } from './support/fixture.js';

const LONG = NEVER;
const SHORT = 200;

/**
 * What every backend that keeps semaphores and latches owes to the engine: above all that a request which arrives twice
 * is executed once.
 */
export function describeSynchronizerBackend(name: string, openFixture: () => Promise<Fixture>): void {
  describe(`the contract of a synchronizer backend: ${name}`, () => {
    let fixture: Fixture;
    let clients: Client[];
    let ann: SynchronizerBackend;
    let bob: SynchronizerBackend;
    let key: string;
    let count = 0;

    beforeAll(async () => {
      fixture = await openFixture();
      clients = [await fixture.connect(), await fixture.connect()];
      [ann, bob] = clients.map(({ backend }) => backend.synchronizers as SynchronizerBackend);
    });
    beforeEach(() => {
      key = `lock:mail:${++count}`;
    });
    afterAll(async () => {
      await Promise.all(clients.map(({ backend }) => backend.close()));
      await fixture.stop();
    });

    const request = (session = 'ann:change'): RequestId => ({ session, sequence: ++count });
    const newId = () => (++count).toString(16).padStart(32, 'f');
    const held = async () => (await bob.countPermits(key)).acquired;
    const set = (permits: number) => ann.trySetPermits(key, permits, request('setup'));

    const listen = async (kind: SynchronizerKind = 'semaphore') => {
      const heard: string[] = [];
      const subscription = bob.subscribe(key, kind, (wake) => heard.push(wake.kind));
      await subscription.ready;
      return { heard, close: () => subscription.close() };
    };

    describe('a request that is sent twice', () => {
      it('takes permits once', async () => {
        await set(5);
        const once = request();
        expect([await ann.takePermits(key, [1, 2, 9], once), await ann.takePermits(key, [1, 2, 9], once)]).toEqual([
          2, 2,
        ]);
        expect(await ann.availablePermits(key)).toBe(2);
      });

      it('takes permits the second time when there were too few the first time', async () => {
        const once = request();
        expect(await ann.takePermits(key, [1], once)).toBeLessThan(1);
        await set(1);
        expect(await ann.takePermits(key, [1], once)).toBe(1);
        expect(await ann.availablePermits(key)).toBe(0);
      });

      it('takes permits with ids the second time when there were too few the first time', async () => {
        await set(1);
        const [first, once] = [request(), request()];
        await ann.takeLeasedPermits(key, [[newId()]], SHORT, first);
        const groups = [[newId()]];
        expect(await ann.takeLeasedPermits(key, groups, LONG, once)).toMatchObject({ served: 0 });
        await until(async () => (await held()) === 0);
        expect(await ann.takeLeasedPermits(key, groups, LONG, once)).toMatchObject({ served: 1 });
        expect(await bob.countPermits(key)).toEqual({ available: 0, acquired: 1 });
      });

      it('drains once, and gives the same answer twice', async () => {
        await set(5);
        const once = request();
        expect(await ann.drainPermits(key, once)).toBe(5);
        await ann.addPermits(key, 1, request('other'));
        expect(await ann.drainPermits(key, once)).toBe(5);
        expect(await ann.availablePermits(key)).toBe(1);
      });

      it('adds permits once', async () => {
        const once = request();
        await ann.addPermits(key, 2, once);
        await ann.addPermits(key, 2, once);
        const again = request();
        expect(await ann.addPermitsIfExists(key, 3, again)).toBe(true);
        expect(await ann.addPermitsIfExists(key, 3, again)).toBe(true);
        expect(await ann.availablePermits(key)).toBe(5);
      });

      it('sets permits once, and gives the same answer twice', async () => {
        const once = request();
        expect(await ann.trySetPermits(key, 2, once)).toBe(true);
        await ann.takePermits(key, [1], request('other'));
        expect(await ann.trySetPermits(key, 2, once)).toBe(true);
        expect(await ann.availablePermits(key)).toBe(1);
        const all = request();
        await ann.setPermits(key, 7, all);
        await ann.addPermits(key, 1, request('other'));
        await ann.setPermits(key, 7, all);
        expect(await ann.availablePermits(key)).toBe(8);
      });

      it('takes permits with ids once, and renews their leases', async () => {
        await set(3);
        const once = request();
        const groups = [[newId()], [newId(), newId()], [newId()]];
        expect(await ann.takeLeasedPermits(key, groups, SHORT, once)).toMatchObject({ served: 2 });
        const again = await ann.takeLeasedPermits(key, groups, LONG, once);
        expect(again.served).toBe(2);
        expect(again.remaining).toBeGreaterThan(LONG / 2);
        expect(await bob.countPermits(key)).toEqual({ available: 0, acquired: 3 });
      });

      it('does not take permits with ids again after they became available', async () => {
        await set(1);
        const [lapsed, released] = [request(), request()];
        const ids = [[newId()], [newId()]];
        await ann.takeLeasedPermits(key, [ids[0]], SHORT, lapsed);
        await until(async () => (await held()) === 0);
        expect(await ann.takeLeasedPermits(key, [ids[0]], LONG, lapsed)).toEqual({ served: 0, remaining: 0 });
        await ann.takeLeasedPermits(key, [ids[1]], LONG, released);
        await ann.giveLeasedPermits(key, ids[1], request('other'));
        expect(await ann.takeLeasedPermits(key, [ids[1]], LONG, released)).toEqual({ served: 0, remaining: 0 });
        expect(await bob.countPermits(key)).toEqual({ available: 1, acquired: 0 });
      });

      it('releases permits with ids once, and gives the same answer twice', async () => {
        await set(2);
        const [one, two, foreign] = [newId(), newId(), newId()];
        await ann.takeLeasedPermits(key, [[one, two]], LONG, request());
        const once = request();
        const answers = [true, false, true, false];
        expect(await ann.giveLeasedPermits(key, [one, foreign, two, one], once)).toEqual(answers);
        expect(await ann.giveLeasedPermits(key, [one, foreign, two, one], once)).toEqual(answers);
        expect(await bob.countPermits(key)).toEqual({ available: 2, acquired: 0 });
      });

      it('sets, counts down and deletes a latch once', async () => {
        const [setting, down, deletion] = [request(), request(), request()];
        expect([await ann.trySetCount(key, 4, setting), await ann.trySetCount(key, 4, setting)]).toEqual([true, true]);
        await ann.countDown(key, 3, down);
        await ann.countDown(key, 3, down);
        expect(await bob.getCount(key)).toBe(1);
        expect([await ann.deleteLatch(key, deletion), await ann.deleteLatch(key, deletion)]).toEqual([true, true]);
        expect(await bob.deleteLatch(key, request('bob:change'))).toBe(false);
        await bob.trySetCount(key, 2, request('bob:change'));
        await ann.deleteLatch(key, deletion);
        expect(await bob.getCount(key)).toBe(2);
      });

      it('changes nothing when it arrives after a later request', async () => {
        await set(9);
        const [early, late] = [request(), request()];
        const ids = [newId()];
        await ann.addPermits(key, 1, late);
        await ann.addPermits(key, 1, early);
        await ann.takePermits(key, [1], early);
        expect(await ann.drainPermits(key, early)).toBe(0);
        await ann.takeLeasedPermits(key, [ids], LONG, early);
        await ann.setPermits(key, 1, early);
        expect(await bob.countPermits(key)).toEqual({ available: 10, acquired: 0 });
      });

      it('is a different request in another session, or for another key', async () => {
        const { sequence } = request();
        await ann.addPermits(key, 1, { session: 'ann:change', sequence });
        await ann.addPermits(key, 1, { session: 'bob:change', sequence });
        await ann.addPermits(`${key}:other`, 1, { session: 'ann:change', sequence });
        expect([await ann.availablePermits(key), await ann.availablePermits(`${key}:other`)]).toEqual([2, 1]);
      });
    });

    it('serves groups in order, up to the first that there are too few permits for', async () => {
      await set(5);
      expect(await ann.takePermits(key, [2, 4, 1], request())).toBe(1);
      const groups = [[newId(), newId()], [newId(), newId()], [newId()]];
      expect(await ann.takeLeasedPermits(key, groups, LONG, request())).toMatchObject({ served: 1 });
      expect(await bob.countPermits(key)).toEqual({ available: 1, acquired: 2 });
    });

    it('says when the earliest lease ends', async () => {
      await set(2);
      expect(await ann.takeLeasedPermits(key, [[newId(), newId(), newId()]], LONG, request())).toEqual({
        served: 0,
        remaining: -1,
      });
      await ann.takeLeasedPermits(key, [[newId()]], LONG, request());
      await ann.takeLeasedPermits(key, [[newId()]], LONG / 2, request());
      const { served, remaining } = await bob.takeLeasedPermits(key, [[newId()]], LONG, request());
      expect(served).toBe(0);
      expect(remaining).toBeGreaterThan(LONG / 4);
      expect(remaining).toBeLessThanOrEqual(LONG / 2);
    });

    it('renews the permits that are held, and no others', async () => {
      await set(2);
      const [kept, lapsed, foreign] = [newId(), newId(), newId()];
      await ann.takeLeasedPermits(key, [[kept, lapsed]], 2 * SHORT, request());
      expect(await ann.renewPermits(key, [foreign, kept], LONG)).toEqual([false, true]);
      await until(async () => (await held()) === 1);
      expect(await ann.renewPermits(key, [lapsed, kept], LONG)).toEqual([false, true]);
    });

    it('notifies subscribers of a semaphore when there are more permits, and only then', async () => {
      await set(3);
      const listener = await listen();
      const ids = [newId(), newId()];
      await ann.takePermits(key, [1], request());
      await ann.takeLeasedPermits(key, [ids], LONG, request());
      await ann.renewPermits(key, ids, LONG);
      await ann.addPermits(key, -1, request());
      await ann.giveLeasedPermits(key, [newId()], request());
      await ann.giveLeasedPermits(key, [ids[0]], request()); // brings it from −1 to 0
      await ann.addPermits(key, 1, request());
      await until(() => listener.heard.length > 0);
      expect(listener.heard).toEqual(['message']);
      await ann.giveLeasedPermits(key, [ids[1]], request());
      await ann.setPermits(key, 9, request());
      await until(() => listener.heard.length === 3);
      listener.close();
    });

    it.each<[string, () => Promise<unknown>]>([
      ['counted', () => ann.countPermits(key)],
      ['given back', () => ann.giveLeasedPermits(key, [newId()], request())],
      ['set', () => ann.setPermits(key, 1, request())],
      ['taken in vain', () => ann.takeLeasedPermits(key, [[newId(), newId()]], LONG, request())],
    ])('notifies subscribers of a semaphore when an ended lease is noticed as permits are %s', async (_, notice) => {
      await set(1);
      await ann.takeLeasedPermits(key, [[newId()]], SHORT, request());
      const listener = await listen();
      await until(async () => {
        await notice();
        return listener.heard.length > 0;
      });
      expect(listener.heard).toEqual(['message']);
      listener.close();
    });

    it('notifies subscribers of a latch when it opens or gets a count', async () => {
      const listener = await listen('latch');
      await ann.trySetCount(key, 3, request());
      await until(() => listener.heard.length === 1);
      await ann.countDown(key, 1, request());
      await ann.countDown(key, 5, request());
      await ann.countDown(key, 1, request());
      await until(() => listener.heard.length === 2);
      await ann.trySetCount(key, 1, request());
      await ann.deleteLatch(key, request());
      await until(() => listener.heard.length === 4);
      listener.close();
    });

    describe('what it shows', () => {
      const inspect = () => (bob.inspect as NonNullable<SynchronizerBackend['inspect']>)(key);
      const plain = { acquired: 0, permits: [] };

      it('is nothing where there is none', async () => {
        expect(await inspect()).toBeUndefined();
        await ann.takePermits(key, [1], request());
        await ann.countDown(key, 1, request());
        expect(await inspect()).toBeUndefined();
      });

      it('is a semaphore, with what is available of how many', async () => {
        await set(10);
        await ann.takePermits(key, [3, 4], request());
        expect(await inspect()).toEqual({ type: 'semaphore', count: 3, total: 10, ...plain });
        await ann.addPermits(key, 2, request());
        await ann.addPermits(key, -4, request(), 'semaphore');
        expect(await inspect()).toEqual({ type: 'semaphore', count: 1, total: 6, ...plain });
        await ann.addPermits(key, 6, request());
        expect(await inspect()).toEqual({ type: 'semaphore', count: 7, total: undefined, ...plain });
      });

      it('is a semaphore with leases, with the permits that are held', async () => {
        expect(await ann.trySetPermits(key, 5, request(), 'permit-expirable-semaphore')).toBe(true);
        const type = 'permit-expirable-semaphore';
        expect(await inspect()).toEqual({ type, count: 5, total: 5, ...plain });
        const ids = [newId(), newId(), newId()];
        await ann.takeLeasedPermits(key, [[ids[0]]], LONG, request());
        await ann.takeLeasedPermits(key, [[ids[1]]], LONG / 2, request());
        await ann.takeLeasedPermits(key, [[ids[2]]], SHORT, request());
        const held = [ids[1], ids[0]].map((id) => ({ id: id.slice(0, 16), remaining: expect.any(Number) }));
        await until(async () => (await inspect())?.acquired === 2);
        expect(await inspect()).toEqual({ type, count: 3, total: 5, acquired: 2, permits: held });
        const [first] = (await inspect())?.permits ?? [];
        expect(first.remaining).toBeGreaterThan(0);
        expect(first.remaining).toBeLessThanOrEqual(LONG / 2);
        // The permit whose lease has ended was not given to anybody, and reading the state did not make it available.
        expect(await ann.giveLeasedPermits(key, [ids[2]], request())).toEqual([false]);
        await ann.setPermits(key, 2, request());
        expect(await inspect()).toMatchObject({ type, count: 0, total: 2, acquired: 2 });
      });

      it('is a hundred permits at most', async () => {
        await set(120);
        const ids = Array.from({ length: 120 }, newId);
        await ann.takeLeasedPermits(key, [ids], LONG, request());
        const { permits = [], ...state } = (await inspect()) ?? {};
        expect(state).toMatchObject({ count: 0, total: 120, acquired: 120 });
        expect(permits).toHaveLength(100);
      });

      it('is a latch, with how many steps of how many are left, and nothing when it is open', async () => {
        await ann.trySetCount(key, 5, request());
        await ann.countDown(key, 2, request());
        expect(await inspect()).toEqual({ type: 'count-down-latch', count: 3, total: 5, ...plain });
        await ann.countDown(key, 3, request());
        expect(await inspect()).toBeUndefined();
        await ann.trySetCount(key, 2, request());
        await ann.deleteLatch(key, request());
        expect(await inspect()).toBeUndefined();
        await set(4);
        expect(await inspect()).toEqual({ type: 'semaphore', count: 4, total: 4, ...plain });
      });

      it('is not a lock', async () => {
        const owner = `${clients[0].id}:1`;
        const terms = { leaseTime: LONG, reserve: 0, waiterTimeout: 0, pastLine: true };
        await clients[0].backend.acquire({ key, type: 'reentrant', owner, ...terms });
        expect(await inspect()).toBeUndefined();
      });

      it('is not found as a lock either', async () => {
        await set(1);
        const { backend, id } = clients[0];
        const terms = { leaseTime: LONG, reserve: 0, waiterTimeout: 0, pastLine: true };
        const request = { key, type: 'reentrant', owner: `${id}:1`, ...terms } as const;
        for (const call of [backend.inspect(key), backend.acquire(request), backend.forceRelease(key)])
          await expect(call).rejects.toMatchObject({ name: 'BackendError', kind: 'key' });
        expect(await inspect()).toMatchObject({ count: 1 });
      });

      it('is in the directory, beside the locks', async () => {
        const prefix = `lock:${count}[`;
        const keys = [`${prefix}mail`, `${prefix}{mail}`, `${prefix}mail{x}`, `${prefix}done`];
        await ann.trySetPermits(keys[0], 1, request());
        await ann.trySetPermits(keys[1], 1, request(), 'permit-expirable-semaphore');
        await ann.addPermits(keys[2], 1, request(), 'semaphore');
        await ann.trySetCount(keys[3], 1, request());
        await ann.trySetPermits(`lock:${count}other`, 1, request());
        expect(await listed(prefix, '*')).toEqual([...keys].sort());
        expect(await listed(prefix, '*mail*', 1)).toEqual(keys.slice(0, 3).sort());
        await ann.deleteLatch(keys[3], request());
        expect(await listed(prefix, '*')).toEqual(keys.slice(0, 3).sort());
      });

      const listed = async (prefix: string, match: string, size = 100) => {
        const { directory } = clients[1].backend;
        const found = new Set<string>();
        let cursor: string | undefined;
        do {
          const page = await directory?.list(prefix, match, cursor, size);
          for (const each of page?.synchronizers ?? []) found.add(each);
          expect(page?.keys).toEqual([]);
          cursor = page?.cursor;
        } while (cursor !== undefined);
        return [...found].sort();
      };
    });

    describe('a semaphore that does not exist', () => {
      it('is distinguished from one whose permits are all taken', async () => {
        expect(await ann.takePermits(key, [1], request())).toBe(-1);
        expect(await ann.takeLeasedPermits(key, [[newId()]], LONG, request())).toEqual({
          served: 0,
          remaining: -1,
          missing: true,
        });
        await set(0);
        expect(await ann.takePermits(key, [1], request())).toBe(0);
        expect(await ann.takeLeasedPermits(key, [[newId()]], LONG, request())).toEqual({ served: 0, remaining: -1 });
      });

      it('is created by a request that says with how many permits, once', async () => {
        const listener = await listen();
        const once = request();
        expect(await ann.takePermits(key, [1, 1], once, 3)).toBe(2);
        expect(await ann.takePermits(key, [1, 1], once, 3)).toBe(2);
        await until(() => listener.heard.length > 0);
        expect(await bob.takePermits(key, [1, 1], request('bob:permits'), 3)).toBe(1);
        expect(await bob.takePermits(key, [1], request('bob:permits'), 3)).toBe(0);
        expect(await bob.availablePermits(key)).toBe(0);
        key += ':leased';
        await ann.takeLeasedPermits(key, [[newId()], [newId(), newId()]], LONG, request(), 2);
        expect(await bob.countPermits(key)).toEqual({ available: 1, acquired: 1 });
        expect(await bob.inspect?.(key)).toMatchObject({ type: 'permit-expirable-semaphore', total: 2 });
        listener.close();
      });

      it('is created once by two requests at the same time', async () => {
        const requests = [ann, bob].flatMap((who, n) => [1, 2].map((m) => [who, `${n}:${m}`] as const));
        const served = await Promise.all(
          requests.map(([who, session]) => who.takePermits(key, [1], request(session), 3)),
        );
        expect(served.sort()).toEqual([0, 1, 1, 1]);
      });
    });

    it('refuses a key that belongs to something else, and leaves that as it is', async () => {
      const owner = `${clients[0].id}:1`;
      const terms = { leaseTime: LONG, reserve: 0, waiterTimeout: 0, pastLine: true };
      await clients[0].backend.acquire({ key, type: 'reentrant', owner, ...terms });
      const calls = [
        ann.takePermits(key, [1], request()),
        ann.addPermits(key, 1, request()),
        ann.trySetPermits(key, 1, request()),
        ann.takeLeasedPermits(key, [[newId()]], LONG, request()),
        ann.countPermits(key),
        ann.getCount(key),
        ann.countDown(key, 1, request()),
      ];
      for (const call of calls) await expect(call).rejects.toMatchObject({ name: 'BackendError', kind: 'key' });
      expect(await clients[0].backend.release({ key, type: 'reentrant', owner })).toMatchObject({ released: true });
    });

    it('accepts names with braces', async () => {
      key = `lock:{mail}:${count}`;
      const listener = await listen();
      await ann.trySetPermits(key, 1, request());
      await until(() => listener.heard.length === 1);
      listener.close();
      key = `lock:a{mail}:${count}`;
      const latch = await listen('latch');
      await ann.trySetCount(key, 1, request());
      await until(() => latch.heard.length === 1);
      latch.close();
    });

    it('rejects after it was closed', async () => {
      const { backend } = await fixture.connect();
      await backend.synchronizers?.getCount(key);
      await backend.close();
      const call = backend.synchronizers?.addPermits(key, 1, request());
      await expect(call).rejects.toMatchObject({ name: 'BackendError', kind: 'unavailable' });
    });
  });
}
