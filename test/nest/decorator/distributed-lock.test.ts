import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Scope } from '@nestjs/common';
import { ContextIdFactory } from '@nestjs/core';
import { LockBusyError } from '../../../lib/engine/errors.js';
import { currentLease } from '../../../lib/engine/scope/lock-scope.js';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import type { RedisLockOptions } from '../../../lib/service/redis-lock-options.js';
import { type RedisServer, startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';
import { Section } from '../support/section.js';
import { sharedMemory, startApp } from '../support/start-app.js';

const section = new Section();
beforeEach(() => Object.assign(section, new Section()));

@Injectable()
class Orders {
  @DistributedLock('order:#<args[0]>')
  async ship(_id: string, result?: string) {
    return section.visit(result);
  }

  @DistributedLock('order:#<args[0]>')
  async shipAndBill(id: string) {
    return [currentLease()?.owner, await this.bill(id)];
  }

  @DistributedLock('order:#<args[0]>')
  async bill(_id: string) {
    return currentLease()?.owner;
  }

  @DistributedLock('order:#<args[0]>')
  async shipTwice(id: string) {
    await Promise.all([this.ship(id), this.ship(id)]);
  }

  @DistributedLock('order:#<args[0]>')
  async outlast(_id: string, duration: number) {
    const lease = currentLease();
    await sleep(duration);
    return lease?.held;
  }

  @DistributedLock((order: { items: string[] }) => order.items.map((sku) => `sku:${sku}`))
  async reserve(_order: { items: string[] }) {
    await section.visit();
    return currentLease()?.names;
  }

  @DistributedLock(['from:#<args[0]>', 'to:#<args[1]>'])
  async transfer(_from: string, _to: string) {
    return currentLease()?.names;
  }

  @DistributedLock('quick')
  notAsync(value: number): Promise<number> {
    return Promise.resolve(value);
  }

  @DistributedLock({ key: 'order:#<args[0]>', waitTime: 0 })
  async fail(_id: string) {
    throw new RangeError('mine');
  }
}

@Injectable()
class SpecialOrders extends Orders {
  override async bill(id: string) {
    return `special, ${await super.bill(id)}`;
  }

  override async ship() {
    return section.visit('unlocked');
  }
}

@Injectable({ scope: Scope.REQUEST })
class RequestOrders extends Orders {}

@Injectable({ scope: Scope.TRANSIENT })
class TransientOrders extends Orders {}

@Injectable()
class Clerk {
  constructor(readonly orders: TransientOrders) {}
}

@Injectable()
class Colleague {
  constructor(readonly orders: TransientOrders) {}
}

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

describe.each<[string, () => RedisLockOptions]>([
  ['memory', sharedMemory({})],
  ['Redis', () => ({ connection: redis.url })],
])('a decorated method, on %s', (_backend, options) => {
  let app: Awaited<ReturnType<typeof startApp>>;
  beforeAll(async () => {
    app = await startApp(
      { providers: [Orders, SpecialOrders, RequestOrders, TransientOrders, Clerk, Colleague] },
      options(),
    );
  });
  afterAll(() => app.close());

  it('runs one call at a time, and gives each its result', async () => {
    const orders = app.get(Orders);
    const results = await Promise.all(['a', 'b', 'c', 'd'].map((result) => orders.ship('1', result)));
    expect(results).toEqual(['a', 'b', 'c', 'd']);
    expect(section).toMatchObject({ most: 1, entered: 4 });
  });

  it('runs calls with other keys beside it', async () => {
    const orders = app.get(Orders);
    const open = section.shut();
    const calls = Promise.all([orders.ship('1'), orders.ship('2')]);
    await until(() => section.most === 2);
    open();
    await calls;
  });

  it('holds the lock while it runs, and not afterwards', async () => {
    const orders = app.get(Orders);
    const open = section.shut();
    const call = orders.ship('7');
    await until(() => section.occupied);
    expect(await app.locks.isLocked('order:7')).toBe(true);
    open();
    await call;
    expect(await app.locks.isLocked('order:7')).toBe(false);
  });

  it('passes the error of its body on unchanged, and frees the lock', async () => {
    await expect(app.get(Orders).fail('1')).rejects.toThrow(new RangeError('mine'));
    expect(await app.locks.isLocked('order:1')).toBe(false);
  });

  it('fails with LockBusyError when somebody else holds the lock', async () => {
    await using _lease = await app.locks.acquire('order:1');
    const error = await app
      .get(Orders)
      .fail('1')
      .catch((reason) => reason);
    expect(error).toBeInstanceOf(LockBusyError);
    expect(error).toMatchObject({ lockName: 'order:1' });
  });

  it('takes all names that a key gives, in any order', async () => {
    const orders = app.get(Orders);
    expect(await orders.reserve({ items: ['b', 'a', 'b'] })).toEqual(['sku:a', 'sku:b']);
    expect(await orders.transfer('x', 'y')).toEqual(['from:x', 'to:y']);
    await Promise.all([orders.reserve({ items: ['a', 'b'] }), orders.reserve({ items: ['b', 'a'] })]);
    expect(section.most).toBe(1);
  });

  it('re-enters what its caller holds', async () => {
    const [outer, inner] = await app.get(Orders).shipAndBill('1');
    expect(inner).toBe(outer);
  });

  it('lets in one of two parallel calls that its caller makes', async () => {
    await app.get(Orders).shipTwice('1');
    expect(section).toMatchObject({ most: 1, entered: 2 });
  });

  it('keeps the lock for several leases when it takes so long', async () => {
    const slow = await startApp({ providers: [Orders] }, { ...options(), watchdogTimeout: 2_400 });
    const held = slow.get(Orders).outlast('1', 6_000);
    await until(async () => slow.locks.isLocked('order:1'));
    await expect(app.get(Orders).fail('1')).rejects.toThrow(LockBusyError);
    expect(await held).toBe(true);
    await slow.close();
  });

  it('locks inherited methods, super calls, but no override without the decorator', async () => {
    const orders = app.get(SpecialOrders);
    const [owner, billed] = await orders.shipAndBill('1');
    expect(billed).toBe(`special, ${owner}`);
    await Promise.all([orders.ship(), orders.ship()]);
    expect(section.most).toBe(2);
  });

  it('locks methods that return promises without being async', async () => {
    expect(await app.get(Orders).notAsync(5)).toBe(5);
  });

  it('excludes across all instances of request-scoped providers', async () => {
    const make = () => app.resolve(RequestOrders, ContextIdFactory.create());
    const [one, other] = await Promise.all([make(), make()]);
    expect(one).not.toBe(other);
    await Promise.all([one.ship('1'), other.ship('1')]);
    expect(section).toMatchObject({ most: 1, entered: 2 });
  });

  it('excludes across all instances of transient providers', async () => {
    const [first, second] = [app.get(Clerk).orders, app.get(Colleague).orders];
    expect(first).not.toBe(second);
    const third = await app.resolve(TransientOrders);
    await Promise.all([first.ship('1'), second.ship('1'), third.ship('1')]);
    expect(section).toMatchObject({ most: 1, entered: 3 });
  });
});
