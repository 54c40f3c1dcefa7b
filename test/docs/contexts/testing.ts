// Statements from a test of the reader.
import { jest } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { attachLockService, createLockService, DistributedLock, LockService, RedisLockModule } from 'nestjs-redis-lock';
import { LockTestingController, LockTestingModule } from 'nestjs-redis-lock/testing';

const repository = {};

@Injectable()
class OrdersService {
  constructor(readonly orders: object = repository) {}

  @DistributedLock('order:#<args[0]>')
  async pay(_id: string) {}
}

@Module({ providers: [{ provide: OrdersService, useFactory: () => new OrdersService() }] })
class OrdersModule {}

@Module({ imports: [OrdersModule, RedisLockModule.forRoot({ connection: 'redis://127.0.0.1:1' })] })
class AppModule {}

export async function example(): Promise<void> {
  /* the block */
}

export const context = {
  AppModule,
  attachLockService,
  createLockService,
  LockService,
  LockTestingController,
  jest,
  LockTestingModule,
  OrdersModule,
  Test,
};
