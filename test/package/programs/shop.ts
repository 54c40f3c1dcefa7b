// Compiled strictly and run in throw-away apps of several NestJS and ioredis versions, as CommonJS and as ES modules.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  createLockService,
  currentLease,
  DistributedLock,
  LockBusyError,
  LockService,
  RedisLockModule,
} from 'nestjs-redis-lock';

@Injectable()
class Orders {
  constructor(readonly locks: LockService) {}

  @DistributedLock('order:#<args[0]>')
  async ship(order: number): Promise<string> {
    const held = await this.locks.isLocked(`order:${order}`);
    return `${currentLease()?.name} ${held ? 'locked' : 'free'}`;
  }
}

@Module({
  imports: [RedisLockModule.forRoot({ connection: process.env.REDIS_URL! })],
  providers: [Orders],
})
class Shop {}

async function decorated(): Promise<unknown> {
  const app = await NestFactory.createApplicationContext(Shop, { logger: false });
  const shipped = await app.get(Orders).ship(7);
  const after = await app.get(LockService).isLocked('order:7');
  await app.close();
  return { shipped, after };
}

async function withoutNest(backend: Parameters<typeof createLockService>[0]): Promise<unknown> {
  const [one, two] = [createLockService(backend), createLockService(backend)];
  const lease = await one.acquire('stock');
  const busy = await one.acquire('stock', { waitTime: 0 }).catch((error: unknown) => error instanceof LockBusyError);
  const newest = [1, 2, 3].map(() =>
    two.withLock('stock', { newest: true }, (held) => held.superseded).catch(({ name }: Error) => name),
  );
  const superseded = await newest[1];
  // Without a time limit, only a message can wake the waiter.
  const waiting = (backend.connection ? two : one).withLock('stock', ({ fencingToken }) => fencingToken);
  await lease.release();
  const grew = (await waiting) > lease.fencingToken;
  const stands = Number(await newest[2]) > 0;
  await newest[0];
  const permits = await Promise.all([1, 2].map(() => one.acquire('seats', { permits: 2, waitTime: 0 })));
  await Promise.all(permits.map((permit) => permit.release()));
  await Promise.all([one.close(), two.close()]);
  return { busy, grew, superseded, stands, permits: permits.length };
}

async function main(): Promise<void> {
  const redis = await withoutNest({ connection: process.env.REDIS_URL! });
  const memory = await withoutNest({ backend: 'memory', logger: { warn: () => {}, error: () => {} } });
  process.stdout.write(JSON.stringify({ redis, memory, decorated: await decorated() }));
}

void main();
