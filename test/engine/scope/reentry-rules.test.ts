import type { HeldType } from '../../../lib/backends/lock-backend.js';
import { LockBusyError, LockConfigurationError, LockUpgradeError } from '../../../lib/engine/errors.js';
import type { HeldLock } from '../../../lib/engine/hold/held-lock.js';
import { findReentry, isStillShared, type Reentry, shareMode } from '../../../lib/engine/reentry/reentry.js';
import { latestCall } from '../../../lib/engine/scope/lock-scope.js';
import { DEFAULT_TERMS, type LockOptions } from '../../../lib/engine/terms/lock-options.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { errorOf } from '../../support/section.js';

describe('a share in a lock', () => {
  const TYPES: readonly HeldType[] = ['reentrant', 'fair', 'fenced', 'read', 'write', 'permits'];

  /** How a lock of this type may be shared by callers that want each of the types. */
  const modes = (type: HeldType) =>
    TYPES.map((wanted) => {
      try {
        return shareMode({ type, name: 'page' } as HeldLock, wanted);
      } catch (error) {
        return (error as Error).name;
      }
    });

  it('excludes its siblings unless both read, and is refused where the types exclude each other', () => {
    const [alone, other] = ['exclusive', 'LockConfigurationError'];
    expect(Object.fromEntries(TYPES.map((type) => [type, modes(type)]))).toEqual({
      reentrant: [alone, alone, alone, other, other, other],
      fair: [alone, alone, alone, other, other, other],
      fenced: [alone, alone, alone, other, other, other],
      read: [other, other, other, 'shared', 'LockUpgradeError', other],
      write: [other, other, other, 'shared', alone, other],
      permits: [other, other, other, other, other, alone],
    });
  });

  it('is refused with the lock and both types', () => {
    const share = (type: HeldType, wanted: HeldType) => () => shareMode({ type, name: 'page' } as HeldLock, wanted);
    expect(share('read', 'write')).toThrow(LockUpgradeError);
    expect(share('read', 'write')).toThrow("The write lock 'page' was requested by code that holds its read lock");
    expect(share('fair', 'permits')).toThrow(LockConfigurationError);
    expect(share('fair', 'permits')).toThrow(
      "The lock 'page' is held by this code as type 'fair' and requested as 'permits'",
    );
  });
});

describe('the search for a lock that the running code holds', () => {
  const world = openVirtualWorld();

  const open = async () => {
    const process = await world.process();
    const { services } = process.locks.engine;
    const find = (name: string, terms: object = {}) =>
      findReentry(services, services.keyOf(name), { ...DEFAULT_TERMS, ...terms } as never);
    return { ...process, services, find };
  };

  it('finds the innermost scope that holds it, and its lease', async () => {
    const { locks, find } = await open();
    expect(find('page')).toBeUndefined();
    await locks.withLock('page', (outer) =>
      locks.withLock('cover', (middle) =>
        locks.withLock('page', (inner) => {
          expect([find('page')?.scope.lease, find('page')?.holder]).toEqual([inner, inner]);
          expect([find('cover')?.scope.lease, find('cover')?.holder]).toEqual([middle, middle]);
          expect(find('page')?.held.owner).toBe(outer.owner);
          expect([find('index'), find('page', { reentry: false })]).toEqual([undefined, undefined]);
        }),
      ),
    );
  });

  it('does not find a lock of another service, a lost one, or one that was given back', async () => {
    const { locks, runtime, find } = await open();
    const other = await world.process();
    await other.locks.withLock('elsewhere', () => expect(find('elsewhere')).toBeUndefined());
    const ended = errorOf(
      locks.withLock('page', async (lease) => {
        const reentry = find('page')!;
        expect(isStillShared(locks.engine.services, reentry)).toBe(true);
        await locks.forceRelease('page');
        expect([find('page'), isStillShared(locks.engine.services, reentry), lease.held]).toEqual([
          undefined,
          false,
          false,
        ]);
      }),
    );
    expect((await ended).name).toBe('LockLostError');
    await locks.withLock('page', async (lease) => {
      await lease.release();
      expect(find('page')).toBeUndefined();
    });
    const overdue = (check: (reentry: Reentry) => unknown) =>
      errorOf(
        locks.withLock('page', { leaseTime: 1_000 }, async () => {
          const reentry = find('page')!;
          runtime.block(1_000);
          expect(check(reentry)).toBeFalsy();
        }),
      );
    expect((await overdue(() => find('page'))).name).toBe('LockLostError');
    expect((await overdue((reentry) => isStillShared(locks.engine.services, reentry))).name).toBe('LockLostError');
  });

  it('finds the write lock around a read lock for a writer, and the read lock for a reader', async () => {
    const { locks, find } = await open();
    await locks.withLock('page', { type: 'write' }, (writer) =>
      locks.withLock('page', { type: 'read' }, (reader) => {
        const [write, read] = [find('page', { type: 'write' }), find('page', { type: 'read' })];
        expect([write?.holder, write?.held.type, write?.scope.lease]).toEqual([writer, 'write', reader]);
        expect([read?.holder, read?.held.type, read?.scope.lease]).toEqual([reader, 'read', reader]);
      }),
    );
  });

  it('finds a write lock that can be shared until its writer gives it back, although a reader is still inside', async () => {
    const { locks, services, find } = await open();
    const writer = await locks.acquire('page', { type: 'write' });
    const reader = await writer.run(() => locks.acquire('page', { type: 'read' }));
    await writer.run(() =>
      reader.run(async () => {
        const reentry = find('page', { type: 'write' })!;
        expect([reentry.holder, reentry.scope.lease]).toEqual([writer, reader]);
        expect(isStillShared(services, reentry)).toBe(true);
        await writer.release();
        expect([reentry.scope.live, isStillShared(services, reentry)]).toEqual([true, false]);
      }),
    );
    await reader.release();
  });

  it('finds the share below all others when an outer lease runs code inside an inner one', async () => {
    const { locks, find } = await open();
    await locks.withLock('page', (outer) =>
      locks.withLock('page', (inner) => outer.run(() => expect(find('page')?.scope.lease).toBe(inner))),
    );
  });
});

describe('a branch of code that finds the lock in use by another branch', () => {
  const world = openVirtualWorld();
  const identity = { application: 'shop', host: 'web-1', pid: 7, version: '' };

  const refusedBy = async (options: LockOptions) => {
    const { locks, runtime } = await world.process({ identity });
    await runtime.advance(100);
    return locks.withLock('page', { leaseTime: 5_000, group: 'editors' }, async (outer) => {
      const sibling = await locks.acquire('page');
      await runtime.advance(250.4);
      const error = (await runtime.until(errorOf(locks.acquire('page', options)))) as LockBusyError;
      await sibling.release();
      return { error, outer };
    });
  };

  it('is refused at once if it tries once, with the lease of the lock and its holder', async () => {
    const { error, outer } = await refusedBy({ waitTime: 0 });
    expect(error).toBeInstanceOf(LockBusyError);
    expect(error.message).toBe("The lock 'page' is busy: another branch of the code that holds it is using it");
    expect(error).toMatchObject({ lockName: 'page', remainingTime: 4_750, holder: outer.owner, fixedLease: false });
    expect(error.holderClient).toMatchObject({ ...identity, group: 'editors', heldFor: 250 });
  });

  it('is refused after its waitTime', async () => {
    const { error } = await refusedBy({ waitTime: 300 });
    expect(error.message).toMatch(/is using it, for over 300 ms$/);
    expect(error.remainingTime).toBe(4_450);
  });

  it('counts as one that begins to acquire a lock', async () => {
    const { locks } = await world.process();
    await locks.withLock('page', async () => {
      const before = latestCall();
      const lease = await locks.acquire('page');
      expect(latestCall()).toBeGreaterThan(before);
      await lease.release();
    });
  });
});
