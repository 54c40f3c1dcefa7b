// Code that users may write, and code that must not compile. It is compiled with every compiler and setting of
// consumers.test.ts.
import { applyDecorators, Injectable, Module } from '@nestjs/common';
import type { Duration, Lease, LockOptions, MultiLease, RedisLockOptions } from 'nestjs-redis-lock';
import {
  createLockService,
  currentLease,
  DistributedLock,
  InjectLockService,
  LockBusyError,
  LockService,
  RedisLockModule,
} from 'nestjs-redis-lock';
import { BackendError, type LockBackend } from 'nestjs-redis-lock/backend';
import { LockService as CoreLockService } from 'nestjs-redis-lock/core';
// No driver of a database is installed.
import type { RowLocksOptions } from 'nestjs-redis-lock/sql';

type IsAny<T> = 0 extends 1 & T ? true : false;
const durationIsKnown: IsAny<Duration> = false;
const same: LockService = null! as CoreLockService;
const good: Duration[] = [5, '30s', '1 m', '2h', '250ms'];
// @ts-expect-error not a duration
const bad: Duration = 'soon';

const Locked = () => applyDecorators(DistributedLock('x'));
const Both = () => applyDecorators(DistributedLock({ key: 'x', onBusy: 'skip' }), Injectable() as MethodDecorator);
export const WithKey = () => applyDecorators(DistributedLock((id: number) => `x:${id}`));

@Injectable()
class Orders {
  constructor(@InjectLockService() private readonly locks: LockService) {}

  @Locked()
  async a(): Promise<number> {
    return currentLease()?.fencingToken ?? 0;
  }

  @Both()
  async b(): Promise<void> {}

  @DistributedLock((id: number) => `order:${id}`)
  async c(id: number): Promise<number> {
    return id;
  }

  // @ts-expect-error not asynchronous
  @DistributedLock('x')
  d(): number {
    return 1;
  }

  // @ts-expect-error other parameters
  @DistributedLock((id: number) => `order:${id}`)
  async e(id: string): Promise<string> {
    return id;
  }

  async f(options: LockOptions): Promise<MultiLease | null> {
    return this.locks.tryAcquire(['a', 'b'], options);
  }

  async g(options: LockOptions): Promise<Lease | null> {
    return this.locks.tryAcquire('a', options);
  }

  async h(names: readonly string[]): Promise<number> {
    // @ts-expect-error each of several locks has a token of its own
    await this.locks.withLock(names, async (lease) => lease.fencingToken);
    await using lease = await this.locks.acquire(names);
    // @ts-expect-error the same
    return lease.fencingToken;
  }
}

export const rows: RowLocksOptions = { pool: { connect: async () => ({}), end: async () => {} } };
/** A backend of the user's own. */
export const own = (backend: LockBackend) => createLockService({ backend });
export const failure = new BackendError('away', 'unavailable', 'refused');
const options: RedisLockOptions = { connection: 'redis://127.0.0.1:6379', watchdogTimeout: '30s' };
@Module({
  imports: [RedisLockModule.forRoot(options), RedisLockModule.forRootAsync({ useFactory: () => options })],
  providers: [Orders],
})
export class App {}

export async function use(): Promise<unknown> {
  const service = createLockService({ backend: 'memory' });
  try {
    return await service.withLock('x', { waitTime: '1s' }, async (lease) => lease.remainingTime());
  } catch (error) {
    if (error instanceof LockBusyError) return [error.name, durationIsKnown, same, good, bad];
    throw error;
  }
}

type LeaseKeys =
  | 'name'
  | 'names'
  | 'owner'
  | 'owners'
  | 'fencingToken'
  | 'superseded'
  | 'tokens'
  | 'signal'
  | 'held'
  | 'remainingTime'
  | 'assertHeld'
  | 'extend'
  | 'run'
  | 'release'
  | 'detach'
  | typeof Symbol.asyncDispose;
export const onlyPublic: Exclude<keyof Lease, LeaseKeys> extends never ? true : false = true;
