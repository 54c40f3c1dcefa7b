import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, InjectLockService, LockBusyError, LockService, RedisLockModule } from '../../../lib/index.js';

@Injectable()
class Orders {
  constructor(
    readonly locks: LockService,
    @InjectLockService('billing') readonly billing: LockService,
  ) {}

  @DistributedLock({ key: 'order', waitTime: 0 })
  async ship() {
    return 'shipped';
  }
}

const MEMORY = { backend: 'memory', shutdownTimeout: 0, logger: { warn() {}, error() {} } } as const;

@Module({
  imports: [RedisLockModule.forRoot(MEMORY), RedisLockModule.forRoot({ ...MEMORY, name: 'billing' })],
  providers: [Orders],
})
class AppModule {}

const start = async () => (await Test.createTestingModule({ imports: [AppModule] }).compile()).init();

describe("backend: 'memory'", () => {
  it('has a store for each application, and for each service of it', async () => {
    const [one, two] = await Promise.all([start(), start()]);
    const [orders, others] = [one.get(Orders), two.get(Orders)];
    await using _lease = await orders.locks.acquire('order');
    await expect(orders.locks.acquire('order', { waitTime: 0 })).rejects.toThrow(LockBusyError);
    await expect(orders.ship()).rejects.toThrow(LockBusyError);
    expect(await others.ship()).toBe('shipped');
    expect(await others.locks.isLocked('order')).toBe(false);
    expect(await orders.billing.isLocked('order')).toBe(false);
    await Promise.all([one.close(), two.close()]);
  });
});
