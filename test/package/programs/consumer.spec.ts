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
}

it('tests an application with locks', async () => {
  const imports = [LockTestingModule.forRoot({ shutdownTimeout: 0 })];
  const app = await Test.createTestingModule({ imports, providers: [Orders] }).compile();
  await app.init();
  const held = await app.get(LockTestingController).holdByAnother('order');
  await expect(app.get(Orders).ship()).rejects.toBeInstanceOf(LockBusyError);
  await held.release();
  expect(await app.get(Orders).ship()).toBe('shipped');
  await app.close();
});

it('has one LockService', () => {
  expect(LockService).toBe(CoreLockService);
});
