// Run by Jest in a throw-away app, as CommonJS or as ES modules.
import 'reflect-metadata';
import { expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, LockBusyError, LockService } from 'nestjs-redis-lock';
import { LockService as CoreLockService } from 'nestjs-redis-lock/core';
import { LockTestingController, LockTestingModule } from 'nestjs-redis-lock/testing';

@Injectable()
class Orders {
  @DistributedLock({ key: 'order', waitTime: 0 })
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

it('tests an application with locks', async () => {
  const imports = [LockTestingModule.forRoot({ shutdownTimeout: 0 })];
  const app = await Test.createTestingModule({ imports, providers: [Orders] }).compile();
  await app.init();
  const held = await app.get(LockTestingController).holdByAnother('order');
  await expect(app.get(Orders).ship()).rejects.toBeInstanceOf(LockBusyError);
  await held.release();
  expect(await app.get(Orders).ship()).toBe('shipped');
  await useBoth(app.get(Orders));
  await app.close();
});

it('has one LockService', () => {
  expect(LockService).toBe(CoreLockService);
});
