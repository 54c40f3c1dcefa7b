import { channel } from 'node:diagnostics_channel';
import { setImmediate } from 'node:timers/promises';
import { SpanStatusCode, trace } from '@opentelemetry/api';
import { instrumentLocks, type LockInstrumentation } from '../../lib/otel.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { Place } from '../support/places.js';
import { until } from '../support/until.js';
import { about, Telemetry } from './telemetry.js';

describe('the spans of locks in Redis', () => {
  let place: Place;
  let locks: LockService;
  let telemetry: Telemetry;
  let instrumentation: LockInstrumentation;
  beforeAll(async () => {
    place = await Place.open('Redis');
  });
  afterAll(() => place.close());
  const instrument = (lockNames = true) => {
    const { tracerProvider, meterProvider } = telemetry;
    instrumentation = instrumentLocks({ tracerProvider, meterProvider, lockNames });
  };
  beforeEach(() => {
    telemetry = new Telemetry().start();
    locks = place.service({ applicationName: 'shop' }).locks;
    instrument();
  });
  afterEach(async () => {
    instrumentation.disable();
    await place.closeServices();
    await telemetry.stop();
  });

  it('tell which calls were superseded, which is no failure, and how many the one that ran stands for', async () => {
    const first = await locks.acquire('index', { newest: true });
    const second = locks.acquire('index', { newest: true }).catch(({ name }: Error) => name);
    const third = locks.acquire('index', { newest: true });
    expect(await second).toBe('LockSupersededError');
    await first.release();
    await (await third).release();
    const spans = telemetry.spans().filter(({ name }) => name === 'lock acquire');
    expect(spans.map((span) => about(span)).map(({ outcome, superseded }) => [outcome, superseded])).toEqual([
      ['acquired', undefined],
      ['superseded', undefined],
      ['acquired', 1],
    ]);
    expect(spans.map(({ status }) => status.code)).toEqual(Array(3).fill(SpanStatusCode.UNSET));
  });

  it('are in the trace of the caller, and the hold is linked to its acquisition', async () => {
    await telemetry.tracer.startActiveSpan('pay', async (pay) => {
      await locks.withLock('order:1', { group: 'payments' }, async () => {
        telemetry.tracer.startSpan('charge').end();
      });
      telemetry.tracer.startSpan('mail').end();
      pay.end();
    });
    const [acquire, charge, hold, mail, pay] = telemetry.spans();
    expect([acquire, charge, hold, mail, pay].map(({ name }) => name)).toEqual([
      'lock acquire payments',
      'charge',
      'lock hold payments',
      'mail',
      'pay',
    ]);
    const id = pay.spanContext().spanId;
    expect([acquire, hold, mail].map(({ parentSpanContext }) => parentSpanContext?.spanId)).toEqual([id, id, id]);
    expect(charge.parentSpanContext?.spanId).toBe(hold.spanContext().spanId);
    expect(hold.links.map((link) => link.context.spanId)).toEqual([acquire.spanContext().spanId]);
    expect(about(acquire)).toEqual({
      name: 'order:1',
      type: 'reentrant',
      group: 'payments',
      outcome: 'acquired',
      reentry: false,
      handed_off: false,
      owner: expect.any(String),
      fencing_token: expect.any(Number),
    });
    expect(about(hold)).toMatchObject({ name: 'order:1', outcome: 'released', owner: about(acquire).owner });
    for (const span of [acquire, hold]) expect(span.status.code).toBe(SpanStatusCode.UNSET);
  });

  it('of a single flight say whether the caller got the result of another one, which is no failure', async () => {
    const run = () => locks.singleFlight('price', { keepFor: '1m', group: 'prices' }, async () => 7);
    await run();
    await run();
    const [ran, hold, shared] = telemetry.spans();
    expect([ran, hold, shared].map(({ name }) => name)).toEqual([
      'lock acquire prices',
      'lock hold prices',
      'lock acquire prices',
    ]);
    expect(about(ran)).toMatchObject({ type: 'flight', outcome: 'acquired' });
    expect(about(ran)).not.toHaveProperty('shared');
    expect(about(shared)).toMatchObject({ type: 'flight', outcome: 'shared', shared: true, owner: about(ran).owner });
    expect(shared.status.code).toBe(SpanStatusCode.UNSET);
    expect(shared.events).toEqual([]);
  });

  it('of several locks have the owner of each, and their failed renewals', async () => {
    const lease = await locks.acquire(['order:1', 'order:2']);
    const owners = [...lease.owners.values()];
    const failed = { name: 'order:2', type: 'reentrant', group: '', method: '', owner: owners[1] };
    await setImmediate(); // the hold of a lease without a body starts in the next turn
    const renewalFailed = channel('nestjs-redis-lock:renewal-failed');
    renewalFailed.publish({ ...failed, remainingTime: 1_000, error: new Error('no answer') });
    await lease.release();
    const [acquire, hold] = telemetry.spans();
    for (const span of [acquire, hold]) expect(about(span)).toMatchObject({ owner: owners[0], owners });
    expect(hold.events.map(({ name }) => name)).toEqual(['lock renewal failed']);
  });

  it('make one trace if the caller has none', async () => {
    await locks.withLock('order:1', async () => {});
    const [acquire, hold] = telemetry.spans();
    expect(acquire.parentSpanContext).toBeUndefined();
    expect(hold.spanContext().traceId).toBe(acquire.spanContext().traceId);
  });

  it('are those of the caller also for a lease without a body', async () => {
    const lease = await telemetry.tracer.startActiveSpan('pay', async (pay) => {
      const acquired = await locks.acquire('order:1');
      pay.end();
      return acquired;
    });
    await lease.release();
    const [acquire, pay, hold] = telemetry.spans();
    expect(pay.name).toBe('pay');
    expect(hold.parentSpanContext?.spanId).toBe(pay.spanContext().spanId);
    expect(hold.links[0].context).toEqual(acquire.spanContext());
  });

  it('show how long a caller waited for a lock that another process held', async () => {
    const other = place.service().locks;
    const lease = await other.acquire('order:1');
    const waiting = locks.withLock('order:1', async () => {});
    await new Promise((resolve) => setTimeout(resolve, 300));
    await lease.release();
    await waiting;
    const [, acquire] = telemetry.spans('lock acquire');
    const [seconds, nanoseconds] = acquire.duration;
    expect(seconds * 1_000 + nanoseconds / 1e6).toBeGreaterThan(250);
    expect(about(acquire)).toMatchObject({ outcome: 'acquired', handed_off: false });
  });

  it('show a hand-off within the process', async () => {
    const acquisitions = () => telemetry.spans('lock acquire').map((span) => about(span).handed_off);
    let rounds = 0;
    // On a busy machine, the time for hand-offs may be over before the first body has ended.
    await until(async () => {
      const before = acquisitions().length;
      await Promise.all(Array.from({ length: 5 }, () => locks.withLock('order:1', async () => {})));
      rounds++;
      const [first, second] = acquisitions().slice(before);
      expect(first).toBe(false);
      return second === true;
    });
    expect(telemetry.spans('lock hold')).toHaveLength(5 * rounds);
  });

  it('name the holder of a lock that stayed busy', async () => {
    const other = place.service({ applicationName: 'stuck' }).locks;
    const lease = await other.acquire('order:1', { group: 'OrdersService.pay' });
    await until(async () => (await other.clients()).length > 0);
    await expect(locks.acquire('order:1', { waitTime: 1_000 })).rejects.toThrow('order:1');
    const busy = telemetry.spans('lock acquire').find((span) => about(span).outcome === 'busy');
    expect(busy?.status).toEqual({ code: SpanStatusCode.ERROR, message: expect.stringContaining('order:1') });
    expect(busy?.events.map(({ name, attributes }) => [name, attributes?.['exception.type']])).toEqual([
      ['exception', 'LockBusyError'],
    ]);
    expect(busy?.attributes['error.type']).toBe('LockBusyError');
    expect(about(busy!)).toMatchObject({
      'holder.application': 'stuck',
      'holder.pid': process.pid,
      'holder.method': 'OrdersService.pay',
    });
    await lease.release();
  });

  it('show how acquisitions fail', async () => {
    await expect(locks.acquire('order:1', { signal: AbortSignal.abort() })).rejects.toThrow();
    await expect(locks.acquire('')).rejects.toThrow();
    const failed = telemetry.spans('lock acquire');
    expect(failed.map((span) => [about(span).outcome, span.attributes['error.type'], span.status.code])).toEqual([
      ['aborted', 'LockAbortedError', SpanStatusCode.ERROR],
      ['refused', 'LockKeyError', SpanStatusCode.ERROR],
    ]);
    expect(telemetry.spans('lock hold')).toEqual([]);
  });

  it('show a lock that was lost', async () => {
    const lease = await locks.acquire('order:1');
    await locks.forceRelease('order:1');
    expect(lease.held).toBe(false);
    const [hold] = telemetry.spans('lock hold');
    expect(about(hold).outcome).toBe('lost');
    expect(hold.status.code).toBe(SpanStatusCode.ERROR);
    expect(hold.events[0].attributes?.['exception.type']).toBe('LockLostError');
  });

  it('show several locks as one', async () => {
    await locks.withLock(['b', 'a'], async () => {});
    const spans = telemetry.spans();
    expect(spans.map(({ name }) => name)).toEqual(['lock acquire', 'lock hold']);
    for (const span of spans) expect(about(span)).toMatchObject({ name: 'a, b', count: 2 });
  });

  it('show a re-entry, inside the hold around it', async () => {
    await locks.withLock('order:1', () => locks.withLock('order:1', async () => {}));
    const [outer, again, inner, hold] = telemetry.spans();
    expect([outer, again].map((span) => about(span).reentry)).toEqual([false, true]);
    expect([again, inner].map((span) => span.parentSpanContext?.spanId)).toEqual(
      [hold, hold].map((span) => span.spanContext().spanId),
    );
  });

  it('leave the names of locks out if that is wanted', async () => {
    instrumentation.disable();
    instrument(false);
    const lease = await locks.acquire('account:4711');
    await expect(locks.acquire('account:4711', { waitTime: 50 })).rejects.toThrow('account:4711');
    await locks.forceRelease('account:4711');
    expect(lease.held).toBe(false);
    const told = telemetry
      .spans()
      .map(({ name, attributes, events, status }) => ({ name, attributes, events, status }));
    expect(told.map(({ status }) => status.code)).toContain(SpanStatusCode.ERROR);
    expect(told.flatMap(({ events }) => events)).toHaveLength(2);
    expect(JSON.stringify(told)).not.toContain('4711');
  });

  it('are the active ones in the body only', async () => {
    expect(trace.getActiveSpan()).toBeUndefined();
    await locks.withLock('order:1', async () => {
      const inside = trace.getActiveSpan();
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(trace.getActiveSpan()).toBe(inside);
      expect((inside as unknown as { name: string }).name).toBe('lock hold');
    });
    expect(trace.getActiveSpan()).toBeUndefined();
  });
});
