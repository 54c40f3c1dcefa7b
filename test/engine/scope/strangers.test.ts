import { setTimeout as sleep } from 'node:timers/promises';
import {
  LockBusyError,
  LockConfigurationError,
  LockDeadlockError,
  LockUpgradeError,
} from '../../../lib/engine/errors.js';
import { currentLease, outsideLocks } from '../../../lib/engine/scope/lock-scope.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { leftovers, NOTHING, openVirtualWorld, openWorld, STORES } from '../../support/lock-world.js';
import { errorOf, latch, Section } from '../../support/section.js';
import { until } from '../../support/until.js';

const STRANGER: LockOptions = { reentry: false };

/** Ways to start work inside a lock that does not belong to the holder. */
const STRANGERS: readonly (readonly [
  string,
  <T>(locks: LockService, name: string, body: () => Promise<T>) => Promise<T>,
])[] = [
  ['withLock with reentry: false', (locks, name, body) => locks.withLock(name, STRANGER, body)],
  ['withLock in outsideLocks()', (locks, name, body) => outsideLocks(() => locks.withLock(name, body))],
  [
    'acquire with reentry: false, and lease.run()',
    async (locks, name, body) => {
      await using lease = await locks.acquire(name, STRANGER);
      return await lease.run(body);
    },
  ],
  [
    'withLock of several names with reentry: false',
    (locks, name, body) => locks.withLock([name, 'another'], STRANGER, body),
  ],
  [
    'a handle in outsideLocks()',
    (locks, name, body) =>
      outsideLocks(async () => {
        await using lease = await locks.getLock(name).lock();
        return await lease.run(body);
      }),
  ],
];

describe.each(STORES)('work that a holder starts but does not await, on %s', (store) => {
  const world = openWorld(store);

  it('enters the lock beside the holder, because Node.js cannot tell it from the work of the holder', async () => {
    const locks = await world.service();
    const section = new Section();
    let leaked: Promise<unknown> | undefined;
    await locks.withLock('stock', async () => {
      leaked = locks.withLock('stock', () => section.pass('listener', 2));
      await section.pass('holder', 20);
    });
    await leaked;
    expect(section.most).toBe(2);
  });

  describe.each(STRANGERS)('%s', (_, stranger) => {
    it('waits for the holder, with an owner of its own', async () => {
      const locks = await world.service();
      const section = new Section();
      const owners: unknown[] = [];
      const body = () => {
        owners.push(currentLease('stock')?.owner);
        return section.pass('listener', 2);
      };
      let leaked: Promise<unknown> | undefined;
      await locks.withLock('stock', async (lease) => {
        owners.push(lease.owner);
        leaked = stranger(locks, 'stock', body);
        await section.pass('holder', 20);
      });
      await leaked;
      expect(section.most).toBe(1);
      expect(section.entries).toEqual(['holder', 'listener']);
      expect(new Set(owners).size).toBe(2);
    });

    it('sees no lock of the holder, and enters its own again', async () => {
      const locks = await world.service();
      await locks.withLock('stock', async () => {
        await stranger(locks, 'order', async () => {
          expect(currentLease('stock')).toBeUndefined();
          expect(currentLease()?.names).toContain('order');
          const { fencingToken } =
            currentLease('order')?.names.length === 1 ? currentLease('order')! : { fencingToken: 0 };
          await locks.withLock('order', ({ fencingToken: inner }) => {
            if (fencingToken !== 0) expect(inner).toBe(fencingToken);
          });
          expect(await errorOf(locks.acquire('stock', { waitTime: 0 }))).toBeInstanceOf(LockBusyError);
        });
        expect(currentLease()?.name).toBe('stock');
      });
    });
  });

  it('leaves nothing behind', async () => {
    const process = await world.process();
    const { locks } = process;
    await locks.withLock('stock', () => {
      void locks.withLock('stock', STRANGER, () => sleep(1));
    });
    await locks.withLock('stock', () => {});
    expect(leftovers(process)).toEqual(NOTHING);
  });

  it('writes and reads as a stranger, and is never refused as an upgrade', async () => {
    const locks = await world.service();
    await locks.withLock('stock', { type: 'read' }, async () => {
      expect(await errorOf(locks.acquire('stock', { type: 'write', waitTime: 0 }))).toBeInstanceOf(LockUpgradeError);
      const stranger = { type: 'write', waitTime: 0, reentry: false } as const;
      expect(await errorOf(locks.acquire('stock', stranger))).toBeInstanceOf(LockBusyError);
      expect(await errorOf(locks.acquire(['stock', 'order'], stranger))).toBeInstanceOf(LockBusyError);
    });
    await locks.withLock('stock', { type: 'write' }, async () => {
      const stranger = { type: 'read', waitTime: 0, reentry: false } as const;
      expect(await errorOf(locks.acquire('stock', stranger))).toBeInstanceOf(LockBusyError);
      const lease = await locks.acquire('stock', { type: 'read', waitTime: 0 });
      await lease.release();
    });
  });

  it('joins a single flight that the holder runs, instead of being refused', async () => {
    const locks = await world.service();
    let joined: Promise<unknown> | undefined;
    const result = await locks.singleFlight('prices', async () => {
      expect(await errorOf(locks.singleFlight('prices', async () => 2))).toBeInstanceOf(LockDeadlockError);
      joined = locks.singleFlight('prices', { reentry: false }, async () => 2);
      return 1;
    });
    expect([result, await joined]).toEqual([1, 1]);
  });

  it('keeps the members of a multi-lock in one chain', async () => {
    const [{ locks }, other] = [await world.process(), await world.service()];
    await using lease = await locks.getMultiLock(other.getLock('a'), locks.getLock('b')).lock();
    await locks.withLock('c', STRANGER, () =>
      lease.run(async () => {
        expect([currentLease('a')?.name, currentLease('b')?.name]).toEqual(['a', 'b']);
        await other.withLock('a', { waitTime: 0 }, () => {});
        await locks.withLock('b', { waitTime: 0 }, () => {});
      }),
    );
  });

  it('sees a scope that was opened inside its own when lease.run() is called there', async () => {
    const locks = await world.service();
    await using lease = await locks.acquire('stock', STRANGER);
    await lease.run(() =>
      locks.withLock('order', () =>
        lease.run(() => locks.withLock('order', { waitTime: 0 }, () => expect(currentLease('stock')).toBe(lease))),
      ),
    );
  });

  it('gets locks during shutdown for as long as its holder runs', async () => {
    const { locks } = await world.process();
    const isOpen = latch();
    const holder = locks.withLock('stock', async () => {
      await isOpen.promise;
      await locks.withLock('order', STRANGER, () => {});
    });
    await until(() => locks.isLocked('stock'));
    const closing = locks.close();
    isOpen.open();
    await Promise.all([holder, closing]);
  });
});

describe('the option reentry', () => {
  const world = openVirtualWorld();

  it.each(['no', 0, null])('is refused when it is %p', async (reentry) => {
    const { locks } = await world.process();
    const options = { reentry } as unknown as LockOptions;
    const error = await errorOf(locks.acquire('stock', options));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect((error as Error).message).toBe(
      `acquire() of 'stock': reentry is ${typeof reentry === 'string' ? `'${reentry}'` : String(reentry)}; it must be true or false`,
    );
  });
});

describe('a nested call', () => {
  const world = openVirtualWorld();

  it.each([
    ['with reentry: false', (locks: LockService, work: () => Promise<unknown>) => locks.withLock('b', STRANGER, work)],
    [
      'in outsideLocks()',
      (locks: LockService, work: () => Promise<unknown>) => outsideLocks(() => locks.withLock('b', work)),
    ],
  ])('%s is not part of a deadlock', async (_, branch) => {
    const { locks, runtime } = await world.process();
    const isOpen = latch();
    const order: string[] = [];
    let branchEnded: Promise<unknown> | undefined;
    const holder = locks.withLock('a', async () => {
      branchEnded = branch(locks, async () => order.push('branch'));
      await isOpen.promise;
      order.push('holder');
    });
    const other = locks.withLock('b', async () => {
      await runtime.advance(100);
      await locks.withLock('a', () => order.push('other'));
    });
    await runtime.advance(10_000);
    isOpen.open();
    await Promise.all([holder, other]);
    await branchEnded;
    expect(order).toEqual(['holder', 'other', 'branch']);
  });
});
