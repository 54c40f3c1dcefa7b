import { createLockService, type LockService } from '../../lib/core.js';

/**
 * What looks to Redis like two processes of a shop: one is stuck while it holds the lock of an order, and callers of
 * both wait for it.
 */
export class StuckShop {
  private readonly stop = new AbortController();
  private readonly stopped = new Promise<void>((resolve) => {
    this.stop.signal.addEventListener('abort', () => resolve());
  });
  private readonly work: Promise<unknown>[] = [];

  private constructor(private readonly services: readonly LockService[]) {}

  static async open(connection: string): Promise<StuckShop> {
    const services = ['shop-1', 'shop-2'].map((applicationName) =>
      createLockService({ connection, applicationName, shutdownTimeout: 100, logger: { warn() {}, error() {} } }),
    );
    const shop = new StuckShop(services);
    const [one, two] = services;
    const read = (locks: LockService) => locks.getReadWriteLock('prices').readLock().lock();
    await Promise.all([
      shop.hold(one, 'order:42', 'OrdersService.pay'),
      shop.hold(two, 'report:nightly', 'NightlyReportService.run'),
      ...Array.from({ length: 9 }, (_, sku) =>
        shop.hold(services[sku % 2], `sku:${1040 + sku * 7}`, 'StockService.reserve'),
      ),
      ...services.map(read),
    ]);
    for (let n = 0; n < 4; n++) shop.wait(two, 'order:42', 'OrdersService.pay');
    shop.wait(one, 'order:42', 'RefundsService.refund');
    shop.wait(two, 'sku:1040', 'StockService.reserve');
    return shop;
  }

  async close(): Promise<void> {
    this.stop.abort();
    await Promise.all(this.services.map((service) => service.close().catch(() => {})));
    await Promise.allSettled(this.work);
  }

  /** Settles when it is held. */
  private hold(locks: LockService, name: string, group: string): Promise<void> {
    return new Promise((held) => {
      const work = locks.withLock(name, { group }, () => {
        held();
        return this.stopped;
      });
      this.work.push(work.catch(() => {}));
    });
  }

  private wait(locks: LockService, name: string, group: string): void {
    const { signal } = this.stop;
    this.work.push(locks.withLock(name, { group, signal }, async () => {}).catch(() => {}));
  }
}
