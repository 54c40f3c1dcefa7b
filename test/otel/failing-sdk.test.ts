import { context, diag, ROOT_CONTEXT } from '@opentelemetry/api';
import { BasicTracerProvider, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { instrumentLocks, type LockInstrumentationOptions } from '../../lib/otel.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { Place } from '../support/places.js';
import { until } from '../support/until.js';
import { Telemetry } from './telemetry.js';

const fails = (): never => {
  throw new Error('the SDK failed');
};
const processing = (processor: Partial<SpanProcessor>): LockInstrumentationOptions => ({
  tracerProvider: new BasicTracerProvider({
    spanProcessors: [
      {
        onStart: () => {},
        onEnd: () => {},
        forceFlush: async () => {},
        shutdown: async () => {},
        ...processor,
      },
    ],
  }),
});
/** A meter whose instruments throw at every measurement. */
const FAILING_METER = {
  createHistogram: () => ({ record: fails }),
  createCounter: () => ({ add: fails }),
  createUpDownCounter: () => ({ add: fails }),
};

const FAILING: Readonly<Record<string, () => LockInstrumentationOptions>> = {
  'a processor at the start of a span': () => processing({ onStart: fails }),
  'a processor at the end of a span, as an exporter does': () => processing({ onEnd: fails }),
  'a provider of tracers': () => ({ tracerProvider: { getTracer: fails } }),
  'a tracer': () => ({ tracerProvider: { getTracer: () => ({ startSpan: fails }) } as never }),
  'a provider of meters': () => ({ meterProvider: { getMeter: fails } }),
  'a meter': () => ({ meterProvider: { getMeter: () => ({ createHistogram: fails }) } as never }),
  'an instrument': () => ({ meterProvider: { getMeter: () => FAILING_METER } as never }),
  'a manager of contexts': () => {
    context.disable();
    const manager = {
      active: () => ROOT_CONTEXT,
      with: fails,
      bind: fails,
      enable: () => manager,
      disable: () => manager,
    };
    context.setGlobalContextManager(manager as never);
    return {};
  },
};

describe('an SDK of OpenTelemetry that throws', () => {
  let place: Place;
  let locks: LockService;
  let telemetry: Telemetry;
  let uncaught: unknown[];
  const note = (error: unknown) => void uncaught.push(error);
  beforeAll(async () => {
    place = await Place.open('memory');
  });
  afterAll(() => place.close());
  beforeEach(() => {
    uncaught = [];
    process.on('uncaughtException', note);
    telemetry = new Telemetry().start();
    locks = place.service().locks;
  });
  afterEach(async () => {
    await place.closeServices();
    await telemetry.stop();
    process.off('uncaughtException', note);
  });

  it.each(Object.entries(FAILING))('%s: neither ends the process nor fails the body', async (_what, options) => {
    const instrumentation = instrumentLocks({ ...telemetry.providers, ...options() });
    const errors: unknown[] = [];
    diag.setLogger({ error: note, warn: () => {}, info: () => {}, debug: () => {}, verbose: () => {} });
    diag.setLogger({
      error: (...args: unknown[]) => void errors.push(args),
      warn: () => {},
      info: () => {},
      debug: () => {},
      verbose: () => {},
    });
    try {
      const lease = await locks.acquire('order:2');
      await expect(locks.acquire('order:2', { waitTime: 1 })).rejects.toThrow(/is busy/);
      expect(await locks.withLock('order:1', () => 'done')).toBe('done');
      await expect(locks.withLock('order:1', () => Promise.reject(new Error('body')))).rejects.toThrow('body');
      await locks.forceRelease('order:2');
      await until(() => !lease.held);
      await lease.release().catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(uncaught).toEqual([]);
    } finally {
      instrumentation.disable();
      diag.disable();
    }
    expect(uncaught).toEqual([]);
    expect(errors.length).toBeGreaterThan(0);
  });

  it('counts what a failing tracer cannot trace', async () => {
    const { meterProvider } = telemetry;
    const instrumentation = instrumentLocks({ meterProvider, ...processing({ onStart: fails, onEnd: fails }) });
    await locks.withLock('order:1', () => {});
    expect(await telemetry.counts('distributed_lock.hold.duration')).toHaveLength(1);
    expect((await telemetry.points('distributed_lock.waiting')).map(({ value }) => value)).toEqual([0]);
    instrumentation.disable();
    expect(uncaught).toEqual([]);
  });
});
