import { once } from 'node:events';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { instrumentLocks, type LockInstrumentation } from '../../lib/otel.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { Place } from '../support/places.js';
import { freePort } from '../support/servers/free-port.js';
import { startRedis } from '../support/servers/redis-server.js';
import { until } from '../support/until.js';
import { about, Telemetry } from './telemetry.js';

describe('the metrics of locks in Redis', () => {
  let place: Place;
  let locks: LockService;
  let telemetry: Telemetry;
  let instrumentation: LockInstrumentation;
  beforeAll(async () => {
    place = await Place.open('Redis');
  });
  afterAll(() => place.close());
  beforeEach(() => {
    telemetry = new Telemetry().start();
    locks = place.service().locks;
    const { tracerProvider, meterProvider } = telemetry;
    instrumentation = instrumentLocks({ tracerProvider, meterProvider });
  });
  afterEach(async () => {
    instrumentation.disable();
    await place.closeServices();
    await telemetry.stop();
  });

  const payments = { group: 'payments', type: 'reentrant' };

  it('count every acquisition by its outcome, across all services', async () => {
    const other = place.service().locks;
    await locks.withLock('order:1', { group: 'payments' }, async () => {
      await other.tryAcquire('order:1', { group: 'payments' });
      await other.acquire('order:1', { group: 'payments', signal: AbortSignal.abort() }).catch(() => {});
    });
    await other.withLock('order:2', { group: 'payments', type: 'fair' }, async () => {});
    expect(await telemetry.counts('distributed_lock.acquire.duration')).toEqual(
      [
        [{ ...payments, outcome: 'acquired' }, 1],
        [{ ...payments, outcome: 'busy' }, 1],
        [{ ...payments, outcome: 'aborted' }, 1],
        [{ group: 'payments', type: 'fair', outcome: 'acquired' }, 1],
      ].map(([attributes, count]) => [attributes, count]),
    );
  });

  it('measure in seconds, in buckets that fit', async () => {
    const other = place.service().locks;
    const lease = await other.acquire('order:1');
    const waiting = locks.withLock('order:1', { group: 'payments' }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 120));
    });
    await new Promise((resolve) => setTimeout(resolve, 120));
    await lease.release();
    await waiting;
    for (const name of ['acquire.duration', 'hold.duration']) {
      const points = await telemetry.points(`distributed_lock.${name}`);
      const { value } = points.find(({ attributes }) => attributes.group === 'payments')!;
      const { sum, buckets } = value as unknown as { sum: number; buckets: { boundaries: number[] } };
      expect(sum).toBeGreaterThan(0.1);
      expect(sum).toBeLessThan(30);
      expect(buckets.boundaries[0]).toBe(0.0005);
      expect(buckets.boundaries).toContain(30);
    }
  });

  it('show what is held and who waits, and neither when all has ended', async () => {
    const lease = await locks.acquire(['order:1', 'order:2'], { group: 'payments' });
    await until(async () => (await telemetry.values('distributed_lock.held')).length > 0);
    const waiting = locks.withLock('order:1', { group: 'payments' }, () => locks.withLock('order:1', async () => {}));
    expect(await telemetry.values('distributed_lock.held')).toEqual([[payments, 2]]);
    expect(await telemetry.values('distributed_lock.waiting')).toEqual([[payments, 1]]);
    await lease.release();
    await waiting;
    for (const name of ['held', 'waiting'])
      for (const [, value] of (await telemetry.values(`distributed_lock.${name}`)) as [object, number][])
        expect(value).toBe(0);
  });

  it('do not count a process that stands by to lead as one that waits', async () => {
    const other = place.service().locks;
    const leads = (service: LockService) =>
      service.lead('outbox', { onElected: ({ signal }) => once(signal, 'abort') });
    const first = leads(locks);
    await until(() => first.isLeader);
    const second = leads(other);
    await until(() => other.engine.waiting('outbox') === 1);
    await first.stop();
    await until(() => second.isLeader);
    await second.stop();
    expect(await telemetry.values('distributed_lock.waiting')).toEqual([]);
    expect(await telemetry.counts('distributed_lock.acquire.duration')).toEqual([]);
    expect((await telemetry.counts('distributed_lock.hold.duration')).length).toBeGreaterThan(0);
  });

  it('count a lock once if one of several names is a re-entry', async () => {
    await locks.withLock('order:1', { group: 'payments' }, async () => {
      await locks.withLock(['order:1', 'order:2'], { group: 'payments' }, async () => {
        expect(await telemetry.values('distributed_lock.held')).toEqual([[payments, 2]]);
      });
      expect(await telemetry.values('distributed_lock.held')).toEqual([[payments, 1]]);
    });
    expect(await telemetry.values('distributed_lock.held')).toEqual([[payments, 0]]);
  });

  it('count re-entry neither as a hold nor as an acquisition', async () => {
    await locks.withLock('order:1', { group: 'payments' }, () =>
      locks.withLock('order:1', { group: 'payments' }, async () => {
        expect(await telemetry.values('distributed_lock.held')).toEqual([[payments, 1]]);
      }),
    );
    const acquired = [{ ...payments, outcome: 'acquired' }, 1];
    expect(await telemetry.counts('distributed_lock.acquire.duration')).toEqual([acquired]);
    const released = [{ ...payments, outcome: 'released' }, 1];
    expect(await telemetry.counts('distributed_lock.hold.duration')).toEqual([released]);
  });

  it('count hand-offs', async () => {
    const handedOff = () => telemetry.spans('lock acquire').filter((span) => about(span).handed_off).length;
    // On a busy machine, the time for hand-offs may be over before the first body has ended.
    await until(async () => {
      const options = { group: 'payments' };
      await Promise.all(Array.from({ length: 5 }, () => locks.withLock('order:1', options, async () => {})));
      return handedOff() > 0;
    });
    expect(await telemetry.values('distributed_lock.handoffs')).toEqual([[payments, handedOff()]]);
  });

  it('count losses', async () => {
    await locks.acquire('order:1', { group: 'payments' });
    await locks.forceRelease('order:1');
    expect(await telemetry.values('distributed_lock.lost')).toEqual([[payments, 1]]);
    expect(await telemetry.counts('distributed_lock.hold.duration')).toEqual([[{ ...payments, outcome: 'lost' }, 1]]);
    expect(await telemetry.values('distributed_lock.held')).toEqual([[payments, 0]]);
  });

  it('count renewals, and those that failed, which the span shows, too', async () => {
    const redis = await startRedis();
    const short = place.service({ connection: redis.url, watchdogTimeout: '3s', commandTimeout: 500 });
    try {
      const lease = await short.locks.acquire('order:1', { group: 'payments' });
      const outcomes = async () =>
        (await telemetry.points('distributed_lock.renewals')).map(({ attributes }) => attributes.outcome);
      await until(async () => (await outcomes()).includes('renewed'), 20_000);
      await redis.stop();
      await until(async () => (await outcomes()).includes('failed'), 20_000);
      await until(() => telemetry.spans('lock hold').length > 0, 20_000);
      expect(lease.held).toBe(false);
      const [hold] = telemetry.spans('lock hold');
      expect(hold.events.map(({ name }) => name)).toContain('lock renewal failed');
      expect(await telemetry.values('distributed_lock.lost')).toEqual([[payments, 1]]);
    } finally {
      await redis.stop();
    }
  });

  it('never have the name of a lock', async () => {
    await locks.withLock('account:4711', async () => {});
    await locks.acquire('account:4711');
    await locks.forceRelease('account:4711');
    const names = ['acquire.duration', 'hold.duration', 'held', 'waiting', 'lost'];
    const points = await Promise.all(names.map((name) => telemetry.points(`distributed_lock.${name}`)));
    for (const found of points) expect(found.length).toBeGreaterThan(0);
    expect(JSON.stringify(points)).not.toContain('4711');
  });

  it('are what Prometheus scrapes', async () => {
    instrumentation.disable();
    const port = await freePort();
    const exporter = new PrometheusExporter({ host: '127.0.0.1', port });
    const meterProvider = new MeterProvider({ readers: [exporter] });
    instrumentation = instrumentLocks({ meterProvider, spans: false });
    try {
      await locks.acquire('order:1', { group: 'payments' });
      await locks.tryAcquire('order:1', { group: 'payments' });
      await locks.withLock('order:2', { group: 'payments' }, async () => {});
      let page = '';
      await until(async () => {
        page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
        return page.includes('distributed_lock_held{');
      });
      const line = (name: string, labels = '') =>
        page
          .split('\n')
          .find((text) => text.startsWith(`distributed_lock_${name}{group="payments"`) && text.includes(labels));
      const acquired = line('acquire_duration_count', 'outcome="acquired"');
      expect(acquired).toMatch(
        /^distributed_lock_acquire_duration_count\{group="payments",type="reentrant",outcome="acquired".*\} 2$/,
      );
      expect(line('acquire_duration_count', 'outcome="busy"')).toMatch(/ 1$/);
      expect(line('acquire_duration_bucket', 'le="0.0005"')).toBeDefined();
      expect(line('held')).toMatch(/ 1$/);
      expect(line('waiting')).toMatch(/ 0$/);
      expect(line('hold_duration_count', 'outcome="released"')).toMatch(/ 1$/);
      expect(page).toContain('# TYPE distributed_lock_held gauge');
      await locks.forceRelease('order:1');
      page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      expect(line('lost_total')).toMatch(/ 1$/);
      expect(page).not.toContain('order:');
    } finally {
      instrumentation.disable();
      await meterProvider.shutdown();
    }
  });
});
