import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { LockBusyError, LockConfigurationError, LockLostError } from '../../lib/engine/errors.js';
import { currentLease } from '../../lib/engine/scope/lock-scope.js';
import { DistributedLock } from '../../lib/nest/decorator/distributed-lock.decorator.js';
import { startApp } from '../nest/support/start-app.js';
import { until } from '../support/until.js';
import { ALL_SQL_LOCKS } from './sql-locks.js';
import { openSqlWorld } from './sql-world.js';

let inside = 0;

@Injectable()
class Orders {
  @DistributedLock('order:#<args[0]>')
  async ship(_id: string, duration = 5) {
    if (++inside > 1) throw new Error('two callers are inside');
    await sleep(duration);
    inside--;
    return currentLease()?.fencingToken as number;
  }

  @DistributedLock('order:#<args[0]>')
  async shipAndBill(id: string) {
    return [currentLease()?.owner, await this.bill(id), await this.billBoth(id, `${id}:copy`)];
  }

  @DistributedLock('order:#<args[0]>')
  async bill(_id: string) {
    return currentLease()?.owner;
  }

  @DistributedLock(['order:#<args[0]>', 'order:#<args[1]>'])
  async billBoth(id: string, _other: string) {
    return currentLease(`order:${id}`)?.owner;
  }

  @DistributedLock(['from:#<args[0]>', 'to:#<args[1]>'])
  async transfer(_from: string, _to: string) {
    const lease = currentLease();
    return { names: lease?.names, tokens: lease?.tokens.size };
  }

  @DistributedLock({ key: 'order:#<args[0]>', waitTime: 0 })
  async tryShip(_id: string) {
    return true;
  }

  @DistributedLock({ key: 'order:#<args[0]>', onBusy: 'skip' })
  async shipOnce(_id: string): Promise<string | undefined> {
    return 'shipped';
  }

  @DistributedLock('order:#<args[0]>')
  async watch(_id: string, began: () => void) {
    const { signal } = currentLease() as { signal: AbortSignal };
    began();
    await until(() => signal.aborted);
  }

  @DistributedLock({ key: 'order:#<args[0]>', type: 'fair' })
  async shipFairly(_id: string) {}
}

describe.each(ALL_SQL_LOCKS)('RedisLockModule on locks in SQL, %s on %s', (which, kind) => {
  const world = openSqlWorld(kind, which);
  const apps: { close(): Promise<void> }[] = [];
  const open = async () => {
    const backend = world.backend();
    const app = await startApp({ providers: [Orders] }, { backend, logger: world.logger, shutdownTimeout: 5_000 });
    apps.push(app);
    return { orders: app.get(Orders), locks: app.locks };
  };
  afterEach(async () => {
    inside = 0;
    await Promise.all(apps.splice(0).map((app) => app.close()));
  });

  it('excludes the callers of one application and of others', async () => {
    const all = [await open(), await open()];
    const id = randomUUID();
    const tokens = await Promise.all(Array.from({ length: 40 }, (_, n) => all[n % 2].orders.ship(id)));
    expect(new Set(tokens).size).toBe(40);
  });

  it('hands a lock on within one application, with growing tokens and an event', async () => {
    const { orders, locks } = await open();
    const id = randomUUID();
    const handed: number[] = [];
    locks.on('handoff', ({ fencingToken }) => handed.push(fencingToken));
    const tokens = await Promise.all(Array.from({ length: 10 }, () => orders.ship(id)));
    expect([...tokens].sort((a, b) => a - b)).toEqual(tokens);
    expect(handed.length).toBeGreaterThan(0);
    expect(tokens).toEqual(expect.arrayContaining(handed));
  });

  it('enters again what the caller holds, also among several names', async () => {
    const { orders } = await open();
    const [owner, again, amongSeveral] = await orders.shipAndBill(randomUUID());
    expect(owner).toEqual(expect.any(String));
    expect([again, amongSeveral]).toEqual([owner, owner]);
  });

  it('takes several names, in whatever order callers name them', async () => {
    const [{ orders }, { orders: others }] = [await open(), await open()];
    const [a, b] = [randomUUID(), randomUUID()];
    const done = await Promise.all(
      Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? orders.transfer(a, b) : others.transfer(a, b))),
    );
    for (const { names, tokens } of done) {
      expect(names).toEqual([`from:${a}`, `to:${b}`]);
      expect(tokens).toBe(2);
    }
  });

  it('refuses or skips a call that must not wait, and tells listeners', async () => {
    const [{ orders, locks }, { orders: others }] = [await open(), await open()];
    const id = randomUUID();
    const events: string[] = [];
    for (const event of ['acquired', 'busy', 'released'] as const) locks.on(event, () => events.push(event));
    const held = others.watch(id, () => {}).catch(() => {});
    await until(() => locks.isLocked(`order:${id}`));
    await expect(orders.tryShip(id)).rejects.toThrow(LockBusyError);
    expect(await orders.shipOnce(id)).toBeUndefined();
    expect(events).toEqual(['busy', 'busy']);
    await locks.forceRelease(`order:${id}`);
    await held;
    await until(() => orders.tryShip(id).catch(() => false));
    expect(events.slice(-2)).toEqual(['acquired', 'released']);
  });

  it('aborts the signal of a method whose lock was lost, and rejects with LockLostError', async () => {
    const [{ orders, locks }, { locks: others }] = [await open(), await open()];
    const id = randomUUID();
    const lost: string[] = [];
    locks.on('lost', ({ name }) => lost.push(name));
    let forced: Promise<boolean> | undefined;
    const running = orders.watch(id, () => {
      forced = others.forceRelease(`order:${id}`);
    });
    await expect(running).rejects.toThrow(LockLostError);
    expect(await forced).toBe(true);
    expect(lost).toEqual([`order:${id}`]);
    expect(await locks.health()).toMatchObject({ healthy: true, recentLosses: 1 });
    expect(await orders.tryShip(id)).toBe(true);
  });

  it('refuses a type of lock that a row cannot be', async () => {
    const { orders } = await open();
    await expect(orders.shipFairly(randomUUID())).rejects.toThrow(LockConfigurationError);
  });

  it('lets a method end, and frees its lock, when the application closes', async () => {
    const [{ orders }, { orders: others }] = [await open(), await open()];
    const id = randomUUID();
    const running = orders.ship(id, 500);
    await until(() => inside === 1);
    await apps[0].close();
    await running;
    expect(await others.tryShip(id)).toBe(true);
  });
});
