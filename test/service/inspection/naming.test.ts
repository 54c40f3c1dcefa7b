import { hostname } from 'node:os';
import { Controller, Get, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock } from '../../../lib/nest/decorator/distributed-lock.decorator.js';
import { RedisLockModule } from '../../../lib/nest/redis-lock.module.js';
import { LockService } from '../../../lib/service/lock-service.js';
import { Place } from '../../support/places.js';
import { impatientRuntime } from '../../support/runtime/impatient-runtime.js';
import { startRedis } from '../../support/servers/redis-server.js';
import { until } from '../../support/until.js';

@Injectable()
class OrdersService {
  end: () => void = () => {};

  @DistributedLock('order:#<args[0]>')
  async pay(_id: string): Promise<void> {
    await new Promise<void>((resolve) => {
      this.end = resolve;
    });
  }

  @DistributedLock({ key: (id: string) => `order:${id}`, onBusy: 'skip' })
  async skip(_id: string): Promise<void> {}

  @DistributedLock({ key: 'order:#<args[0]>', waitTime: '500ms' })
  async refund(_id: string): Promise<void> {}
}

@Controller()
class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Get('refund')
  refund() {
    return this.orders.refund('1');
  }
}

describe('a holder is named', () => {
  it('by application and method in logs and events, and not at all to clients', async () => {
    const redis = await startRedis();
    const place = await Place.open('memory');
    @Module({
      imports: [RedisLockModule.forRoot({ connection: redis.url, applicationName: 'shop-2', shutdownTimeout: 100 })],
      providers: [OrdersService],
      controllers: [OrdersController],
    })
    class AppModule {}
    const app = await NestFactory.create(AppModule, { logger: false });
    await app.listen(0, '127.0.0.1');
    const orders = app.get(OrdersService);
    const paying = orders.pay('1');
    const { locks, log } = place.service(
      { backend: undefined, connection: redis.url, keyPrefix: 'lock:' },
      impatientRuntime,
    );
    await until(async () => (await locks.clients())[0]?.holds[0]?.method === 'OrdersService.pay', 15_000);
    expect((await locks.clients())[0].holds[0]).toMatchObject({ name: 'order:1', group: 'order:#<args[0]>' });

    const failed: unknown[] = [];
    app.get(LockService).on('failed', ({ outcome, group, method }) => failed.push([outcome, group, method]));
    await orders.skip('1');
    const answer = await fetch(`${await app.getUrl()}/refund`);
    expect(answer.status).toBe(500);
    const text = await answer.text();
    for (const secret of ['shop-2', hostname(), 'OrdersService', String(process.pid), 'order:1'])
      expect(text).not.toContain(secret);
    expect(failed).toEqual([
      ['skipped', 'OrdersService.skip', 'OrdersService.skip'],
      ['busy', 'order:#<args[0]>', 'OrdersService.refund'],
    ]);

    const waiting = locks.withLock('order:1', { waitTime: Infinity }, async () => {});
    await until(() => log.warnings.length > 0, 60_000);
    expect(log.warnings).toEqual([
      expect.stringMatching(
        /^A caller has waited for the lock 'order:1' for over 30 s; held by shop-2 on \S+, pid \d+, in OrdersService\.pay, for \d+ s \(.*:1\)$/,
      ),
    ]);
    orders.end();
    await Promise.all([paying, waiting]);
    await place.close();
    await app.close();
    await redis.stop();
  });
});
