// Statements from a test of the reader.
import { expect, jest } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  attachLockService,
  DistributedLock,
  getLockServiceToken,
  LockService,
  RedisLockModule,
} from 'nestjs-redis-lock';
import { getLockTestingToken, LockTestingController, LockTestingModule } from 'nestjs-redis-lock/testing';

const repository = { save: async () => {} };

@Injectable()
class OrdersService {
  constructor(protected readonly orders = repository) {}

  @DistributedLock('order:#<args[0]>')
  async ship(_id: string): Promise<void> {}
}

@Module({ providers: [OrdersService], exports: [OrdersService] })
class OrdersModule {}

@Module({ imports: [RedisLockModule.forRoot({ connection: 'redis://localhost:6379' }), OrdersModule] })
class AppModule {}

export const example = async (): Promise<void> => {
  /* the block */
};

export const context = {
  AppModule,
  attachLockService,
  expect,
  getLockServiceToken,
  getLockTestingToken,
  jest,
  LockService,
  LockTestingController,
  LockTestingModule,
  OrdersModule,
  OrdersService,
  repository,
  Test,
};
