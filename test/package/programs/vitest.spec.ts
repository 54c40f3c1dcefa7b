// Run by Vitest in a throw-away app.
import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, LockBusyError, LockService, RedisLockModule } from 'nestjs-redis-lock';
import { LockTestingController, LockTestingModule } from 'nestjs-redis-lock/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';

@Injectable()
class Orders {
  @DistributedLock({ key: 'order', waitTime: '5s' })
  async ship(): Promise<string> {
    return 'shipped';
  }

  @DistributedLock({ key: 'export:#<args[0]>', permits: 2, waitTime: 0 })
  async export(_tenant: string, work: () => Promise<void>): Promise<void> {
    await work();
  }

  @DistributedLock({ key: 'index', onBusy: 'newest' })
  async index(change: number, work: () => Promise<void>): Promise<number | undefined> {
    await work();
    return change;
  }
}

/** Two exports at a time, and of several changes of an index the first and the last one. */
async function useBoth(orders: Orders): Promise<void> {
  let end = () => {};
  const open = new Promise<void>((resolve) => {
    end = resolve;
  });
  const exports = [1, 2].map(() => orders.export('7', () => open));
  const third = orders.export('7', () => open).catch((error: unknown) => error);
  const changes = [1, 2, 3].map((change) => orders.index(change, () => open));
  expect(await third).toBeInstanceOf(LockBusyError);
  expect(await changes[1]).toBe(undefined);
  end();
  await Promise.all(exports);
  expect(await Promise.all(changes)).toEqual([1, undefined, 3]);
}

async function start() {
  const imports = [LockTestingModule.forRoot({ shutdownTimeout: 0 })];
  const app = await Test.createTestingModule({ imports, providers: [Orders] }).compile();
  await app.init();
  return { app, orders: app.get(Orders), locks: app.get(LockService), testing: app.get(LockTestingController) };
}

type Started = Awaited<ReturnType<typeof start>>;

async function passTime({ orders, locks, testing }: Started): Promise<void> {
  const [fixed, renewed] = [await locks.acquire('fixed', { leaseTime: '30s' }), await locks.acquire('renewed')];
  await vi.advanceTimersByTimeAsync(29_000);
  await testing.expectHeld('fixed');
  await vi.advanceTimersByTimeAsync(2_000);
  await testing.expectFree('fixed');
  expect(fixed.signal.aborted).toBe(true);
  await vi.advanceTimersByTimeAsync(100_000);
  await testing.expectHeld('renewed');
  await renewed.release();

  const held = await testing.holdByAnother('order');
  const waiting = orders.ship().catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(6_000);
  expect(await waiting).toBeInstanceOf(LockBusyError);
  const next = orders.ship();
  await held.release();
  expect(await next).toBe('shipped');
  await useBoth(orders);
}

type FakeTimers = Parameters<typeof vi.useFakeTimers>[0];
const TIMERS: { title: string; config: FakeTimers }[] = [
  { title: 'as Vitest does by default', config: undefined },
  { title: 'as Vitest 2 did by default', config: { toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'Date'] } },
];

describe.each(TIMERS)('fake timers, $title', ({ config }) => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('installed before the application starts', async () => {
    vi.useFakeTimers(config);
    const started = await start();
    await passTime(started);
    await started.app.close();
  });

  it('installed after the application has started', async () => {
    const started = await start();
    vi.useFakeTimers(config);
    await passTime(started);
    vi.useRealTimers();
    await started.app.close();
  });
});

it('overrides the service with a mock', async () => {
  const imports = [RedisLockModule.forRoot({ connection: 'redis://127.0.0.1:1' })];
  const withLock = vi.fn(async (_name: string, _options: object, body: () => Promise<string>) => body());
  const app = await Test.createTestingModule({ imports, providers: [Orders] })
    .overrideProvider(LockService)
    .useValue({ withLock })
    .compile();
  await app.init();
  expect(await app.get(Orders).ship()).toBe('shipped');
  expect(withLock).toHaveBeenCalledWith('order', { waitTime: 5_000 }, expect.any(Function));
  await app.close();
});
