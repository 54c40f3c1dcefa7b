/** @sandbox for timers that are not those of the process */
import { jest } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  attachLockService,
  DistributedLock,
  LockBusyError,
  LockService,
  LockUnavailableError,
  RedisLockModule,
} from '../../lib/index.js';
import { LockTestingController, LockTestingModule } from '../../lib/testing.js';

@Injectable()
class Orders {
  @DistributedLock({ key: 'order', waitTime: 0 })
  async ship() {
    return 'shipped';
  }

  @DistributedLock('order')
  async wait() {
    return 'waited';
  }
}

@Module({ imports: [LockTestingModule.forRoot({ commandTimeout: 100, shutdownTimeout: 0 })], providers: [Orders] })
class TestedModule {}

/** An address at which nothing listens. */
@Module({ imports: [RedisLockModule.forRoot({ connection: 'redis://127.0.0.1:1' })], providers: [Orders] })
class AppModule {}

const start = async (module: new () => object) => {
  const app = await Test.createTestingModule({ imports: [module] }).compile();
  await app.init();
  return { app, orders: app.get(Orders), testing: app.get(LockTestingController), locks: app.get(LockService) };
};

describe('LockTestingModule', () => {
  it('gives each application of one module its own store', async () => {
    const [one, two] = [await start(TestedModule), await start(TestedModule)];
    await one.testing.holdByAnother('order');
    await expect(one.orders.ship()).rejects.toThrow(LockBusyError);
    expect(await two.orders.ship()).toBe('shipped');
    await Promise.all([one.app.close(), two.app.close()]);
  });

  it('gives a waiter a lock that another one released', async () => {
    const { app, orders, testing } = await start(TestedModule);
    const held = await testing.holdByAnother('order');
    const waiting = orders.wait();
    await held.release();
    expect(await waiting).toBe('waited');
    await app.close();
  });

  it('advances its clock past a fixed lease, and renews one without', async () => {
    const { app, locks, testing } = await start(TestedModule);
    const [fixed, renewed] = [await locks.acquire('fixed', { leaseTime: '30s' }), await locks.acquire('renewed')];
    await testing.clock.advance('31s');
    await testing.expectFree('fixed');
    await testing.expectHeld('renewed');
    expect(fixed.signal.aborted).toBe(true);
    expect(renewed.signal.aborted).toBe(false);
    await renewed.release();
    await expect(testing.expectHeld('renewed')).rejects.toThrow("expectHeld('renewed'): nobody holds the lock");
    await app.close();
  });

  it('loses a lease', async () => {
    const { app, locks, testing } = await start(TestedModule);
    const lease = await locks.acquire('order');
    await testing.loseLease('order');
    expect(lease.signal.aborted).toBe(true);
    await testing.expectFree('order');
    await app.close();
  });

  it('ends waits after outageTimeout while the backend fails, and says that it is unavailable', async () => {
    const testing = new LockTestingController();
    testing.failBackend();
    const waiting = testing.locks.acquire('order', { outageTimeout: '5s' }).catch((error) => error);
    await testing.clock.advance('8s');
    expect(await waiting).toBeInstanceOf(LockUnavailableError);
    testing.restoreBackend();
    await (await testing.locks.acquire('order')).release();
    await testing.close();
  });

  it('fails and restores its backend', async () => {
    const { app, orders, testing } = await start(TestedModule);
    testing.failBackend();
    await expect(orders.ship()).rejects.toThrow(LockUnavailableError);
    testing.restoreBackend();
    expect(await orders.ship()).toBe('shipped');
    await app.close();
  });

  it('lists neither locks nor clients while the backend fails', async () => {
    const testing = new LockTestingController();
    await testing.holdByAnother('order');
    expect((await testing.locks.list()).locks).toHaveLength(1);
    testing.failBackend();
    await expect(testing.locks.list()).rejects.toThrow(LockUnavailableError);
    await expect(testing.locks.clients()).rejects.toThrow(LockUnavailableError);
    testing.restoreBackend();
    expect((await testing.locks.list()).locks).toHaveLength(1);
    await testing.close();
  });

  it('follows fake timers', async () => {
    const { app, locks, testing } = await start(TestedModule);
    jest.useFakeTimers();
    try {
      const lease = await locks.acquire('order', { leaseTime: '30s' });
      await jest.advanceTimersByTimeAsync(31_000);
      await testing.expectFree('order');
      expect(lease.signal.aborted).toBe(true);
    } finally {
      jest.useRealTimers();
    }
    await app.close();
  });

  it('locks nothing as a pass-through', async () => {
    const imports = [LockTestingModule.passThrough({ shutdownTimeout: 0 })];
    const app = await Test.createTestingModule({ imports, providers: [Orders] }).compile();
    await app.init();
    const locks = app.get(LockService);
    expect(await locks.withLock('order', () => locks.withLock('order', () => app.get(Orders).ship()))).toBe('shipped');
    await locks.acquire('order');
    expect(await locks.tryAcquire('order')).not.toBeNull();
    await app.close();
  });

  it('serves a unit test without a module', async () => {
    const testing = new LockTestingController();
    const orders = attachLockService(new Orders(), testing.locks);
    await testing.holdByAnother('order');
    await expect(orders.ship()).rejects.toThrow(LockBusyError);
    await testing.close();
  });
});

describe('overrideProvider(LockService)', () => {
  const override = async (mock: object) => {
    const builder = Test.createTestingModule({ imports: [AppModule] });
    const app = await builder.overrideProvider(LockService).useValue(mock).compile();
    await app.init();
    return app;
  };

  it.each([
    ['withLock', { withLock: (...args: unknown[]) => (args.at(-1) as () => unknown)() }],
    ['acquire', { acquire: async () => ({ release: async () => {} }) }],
    ['tryAcquire', { tryAcquire: async () => ({ release: async () => {} }) }],
  ])('reaches decorated methods, with a mock that has %s', async (_, mock) => {
    const app = await override(mock);
    expect(await app.get(Orders).wait()).toBe('waited');
    expect(await app.get(Orders).ship()).toBe('shipped');
    await app.close();
  });

  it('passes on what a mock throws, and says what an incomplete mock lacks', async () => {
    const busy = new LockBusyError('busy', 'order', -1, undefined);
    const app = await override({ withLock: () => Promise.reject(busy) });
    await expect(app.get(Orders).ship()).rejects.toBe(busy);
    await app.close();
    const unfit = await override({});
    await expect(unfit.get(Orders).ship()).rejects.toThrow(/none of withLock, acquire and tryAcquire/);
    await unfit.close();
  });
});
