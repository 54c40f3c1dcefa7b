// Run by Vitest in a throw-away app, with a Redis server at REDIS_URL.
import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { currentLease, DistributedLock, RedisLockModule } from 'nestjs-redis-lock';
import { expect, it } from 'vitest';

@Injectable()
class Reports {
  @DistributedLock('report')
  async render(): Promise<boolean> {
    for (const end = performance.now() + 5_000; performance.now() < end; );
    return currentLease()!.held;
  }
}

it('keeps the lock of a blocked event loop', async () => {
  const logger = { warn: () => {}, error: () => {} };
  const options = {
    connection: process.env.REDIS_URL!,
    watchdogTimeout: '2s',
    keepWhileBlocked: '1m',
    logger,
  } as const;
  const imports = [RedisLockModule.forRoot(options)];
  const app = await Test.createTestingModule({ imports, providers: [Reports] }).compile();
  await app.init();
  expect(await app.get(Reports).render()).toBe(true);
  await app.close();
}, 60_000);
