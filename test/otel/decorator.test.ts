import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SpanStatusCode } from '@opentelemetry/api';
import { DistributedLock, RedisLockModule } from '../../lib/index.js';
import { instrumentLocks, type LockInstrumentation } from '../../lib/otel.js';
import { type RedisServer, startRedis } from '../support/servers/redis-server.js';
import { about, Telemetry } from './telemetry.js';

@Injectable()
class Orders {
  @DistributedLock('order:#<args[0]>')
  async pay(id: string, work: () => Promise<unknown>): Promise<string> {
    await work();
    return id;
  }

  @DistributedLock({ key: 'order:#<args[0]>', onBusy: 'skip' })
  async tidy(_id: string): Promise<boolean | undefined> {
    return true;
  }
}

describe('OpenTelemetry of decorated methods', () => {
  let redis: RedisServer;
  let telemetry: Telemetry;
  let instrumentation: LockInstrumentation;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  beforeEach(() => {
    telemetry = new Telemetry().start();
    instrumentation = instrumentLocks(telemetry.providers);
  });
  afterEach(async () => {
    instrumentation.disable();
    await telemetry.stop();
  });

  it('is grouped by the template, names the method, and distinguishes a skipped call from a failed one', async () => {
    @Module({ imports: [RedisLockModule.forRoot({ connection: redis.url })], providers: [Orders] })
    class Shop {}
    const app = await NestFactory.createApplicationContext(Shop, { logger: false });
    const orders = app.get(Orders);
    await orders.pay('42', async () => telemetry.tracer.startSpan('charge').end());
    let release = () => {};
    let paying: Promise<unknown> | undefined;
    await new Promise<void>((inside) => {
      const untilReleased = new Promise<void>((resolve) => {
        release = resolve;
      });
      paying = orders.pay('42', async () => {
        inside();
        await untilReleased;
      });
    });
    const answer = await orders.tidy('42');
    release();
    await paying;
    await app.close();
    expect(answer).toBeUndefined();

    const template = 'order:#<args[0]>';
    const [acquire, charge, hold, , skipped] = telemetry.spans();
    expect([acquire, hold, skipped].map(({ name }) => name)).toEqual([
      `lock acquire ${template}`,
      `lock hold ${template}`,
      `lock acquire ${template}`,
    ]);
    expect(about(acquire)).toMatchObject({ name: 'order:42', group: template, method: 'Orders.pay' });
    expect(charge.parentSpanContext?.spanId).toBe(hold.spanContext().spanId);
    expect(about(skipped)).toMatchObject({ outcome: 'skipped', method: 'Orders.tidy' });
    expect(skipped.status.code).toBe(SpanStatusCode.UNSET);
    expect(skipped.events).toEqual([]);
    const labels = { group: template, type: 'reentrant' };
    expect(await telemetry.values('distributed_lock.skipped')).toEqual([[labels, 1]]);
    expect(await telemetry.counts('distributed_lock.acquire.duration')).toEqual([
      [{ ...labels, outcome: 'acquired' }, 2],
      [{ ...labels, outcome: 'skipped' }, 1],
    ]);
  });
});
