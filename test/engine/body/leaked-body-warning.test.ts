import { warnIfLeaked } from '../../../lib/engine/body/leaked-body-warning.js';
import type { LockOptions } from '../../../lib/engine/terms/lock-options.js';
import type { LockService } from '../../../lib/service/lock-service.js';
import { openVirtualWorld } from '../../support/lock-world.js';
import { latch } from '../../support/section.js';

describe('a body that still runs when the code that holds its lock has ended', () => {
  const world = openVirtualWorld();

  const leak = async (locks: LockService, options: LockOptions, work = () => {}) => {
    const isOpen = latch();
    let leaked: Promise<unknown> | undefined;
    await locks.withLock('stock', () => {
      leaked = locks.withLock('stock', options, () => isOpen.promise.then(work));
    });
    isOpen.open();
    await leaked?.catch(() => {});
  };

  it('is warned about, once for each method or group', async () => {
    const { locks, logger } = await world.process();
    await leak(locks, {});
    await leak(locks, {});
    await leak(locks, { group: 'listeners' });
    await leak(locks, { group: 'listeners' }, () => {
      throw new Error('failed');
    });
    const rest =
      " still ran inside the lock 'stock' after the code that holds it had ended. That code started it and did not await it, so both ran at the same time. Await it there, or let it wait for the lock: with reentry: false, or started in outsideLocks()";
    expect(logger.warnings).toEqual([
      `A body of withLock${rest}`,
      `A body of withLock with the group 'listeners'${rest}`,
    ]);
  });

  it('is not warned about if it waits for the lock, if the holder awaits it, or if it is a lease without a body', async () => {
    const { locks, logger } = await world.process();
    await leak(locks, { reentry: false });
    await locks.withLock('stock', () => locks.withLock('stock', () => {}));
    const lease = await locks.withLock('stock', () => locks.acquire('stock'));
    await lease.release();
    await locks.withLock(['stock', 'order'], () => locks.withLock(['order', 'stock'], () => {}));
    expect(logger.warnings).toEqual([]);
  });

  it('is no longer warned about after a hundred groups, so that no memory grows with names', async () => {
    const { locks, logger, runtime } = await world.process();
    for (let n = 0; n < 120; n++) {
      await leak(locks, { group: `order ${n}` });
      await runtime.advance(100);
    }
    expect(logger.warnings).toHaveLength(100);
  });

  it('is named by its method rather than by its group, and counts if one of its locks has been left', () => {
    const warnings: [string, string][] = [];
    const events = { warnOnce: (subject: string, message: string) => void warnings.push([subject, message]) };
    const end = (...left: boolean[]) => {
      const entered = left.map((isLeft) => ({ share: { left: isLeft } }));
      const terms = { method: 'Orders.pay', group: 'orders' };
      warnIfLeaked({ events } as never, { name: 'stock', terms, entered } as never);
    };
    end();
    end(false, false);
    expect(warnings).toEqual([]);
    end(false, true);
    expect(warnings).toEqual([
      ['Orders.pay', expect.stringMatching(/^Orders\.pay still ran inside the lock 'stock' after the code/)],
    ]);
  });
});
