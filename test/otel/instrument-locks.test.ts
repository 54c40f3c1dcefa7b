import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type DiagLogger, diag } from '@opentelemetry/api';
import { instrumentLocks, type LockInstrumentation, type LockInstrumentationOptions } from '../../lib/otel.js';
import type { LockService } from '../../lib/service/lock-service.js';
import { Place } from '../support/places.js';
import { Telemetry } from './telemetry.js';

describe('instrumentLocks()', () => {
  let place: Place;
  let locks: LockService;
  let telemetry: Telemetry;
  const running: LockInstrumentation[] = [];
  const instrument = (options?: LockInstrumentationOptions) => {
    const instrumentation = instrumentLocks(options);
    running.push(instrumentation);
    return instrumentation;
  };
  beforeAll(async () => {
    place = await Place.open('memory');
  });
  afterAll(() => place.close());
  beforeEach(() => {
    telemetry = new Telemetry().start();
    locks = place.service().locks;
  });
  afterEach(async () => {
    for (const instrumentation of running.splice(0)) instrumentation.disable();
    diag.disable();
    await place.closeServices();
    await telemetry.stop();
  });

  const acquired = [{ group: '', type: 'reentrant', outcome: 'acquired' }, 1];

  it('counts nothing twice when it is called twice, and says so', async () => {
    const warnings: string[] = [];
    const nothing = () => {};
    const logger = { error: nothing, info: nothing, debug: nothing, verbose: nothing };
    diag.setLogger({ ...logger, warn: (message) => void warnings.push(message) } as DiagLogger);
    const { tracerProvider, meterProvider } = telemetry;
    const first = instrument({ tracerProvider, meterProvider });
    expect(instrument({ spans: false })).toBe(first);
    expect(warnings).toEqual([expect.stringContaining('the options of the first call')]);
    await locks.withLock('order:1', async () => {});
    expect(telemetry.spans()).toHaveLength(2);
    expect(await telemetry.counts('distributed_lock.acquire.duration')).toEqual([acquired]);
  });

  it('finds providers that are registered after it', async () => {
    instrument();
    await locks.withLock('order:1', async () => {});
    telemetry.registerProviders();
    await locks.withLock('order:1', async () => {});
    expect(telemetry.spans().map(({ name }) => name)).toEqual(['lock acquire', 'lock hold']);
    expect(await telemetry.counts('distributed_lock.acquire.duration')).toEqual([acquired]);
  });

  it('ends with disable(), and so does what was open', async () => {
    const { tracerProvider, meterProvider } = telemetry;
    const instrumentation = instrument({ tracerProvider, meterProvider });
    let waiting: Promise<void> | undefined;
    await locks.withLock('order:1', async () => {
      const other = place.service().locks;
      waiting = other.withLock('order:1', async () => {});
      instrumentation.disable();
      instrumentation.disable();
    });
    await waiting;
    expect(telemetry.spans().map(({ name }) => name)).toEqual(['lock acquire', 'lock acquire', 'lock hold']);
    const none = [[{ group: '', type: 'reentrant' }, 0]];
    expect(await telemetry.values('distributed_lock.held')).toEqual(none);
    expect(await telemetry.values('distributed_lock.waiting')).toEqual(none);
    const next = instrument({ tracerProvider, meterProvider });
    expect(next).not.toBe(instrumentation);
    instrumentation.disable();
    await locks.withLock('order:1', async () => {});
    expect(telemetry.spans()).toHaveLength(5);
  });

  it('makes no spans, or no metrics, where they are switched off', async () => {
    const { tracerProvider, meterProvider } = telemetry;
    instrument({ tracerProvider, meterProvider, spans: false }).disable();
    instrument({ tracerProvider, meterProvider, spans: false });
    await locks.withLock('order:1', async () => {});
    expect(telemetry.spans()).toEqual([]);
    expect(await telemetry.counts('distributed_lock.acquire.duration')).toEqual([acquired]);
    running[1].disable();
    instrument({ tracerProvider, meterProvider, metrics: false });
    await locks.withLock('order:1', async () => {});
    expect(telemetry.spans()).toHaveLength(2);
    expect(await telemetry.counts('distributed_lock.acquire.duration')).toEqual([acquired]);
  });

  it.each([
    [{ name: 'x' }, "there is no option 'name'; there are tracerProvider"],
    [{ spans: 'no' }, 'spans must be true or false'],
    [{ tracerProvider: {} }, 'tracerProvider must be a provider that has getTracer()'],
    [{ meterProvider: null }, 'meterProvider must be a provider that has getMeter()'],
    [null, 'the options must be an object'],
  ])('refuses %j, and changes nothing', async (options, message) => {
    expect(() => instrumentLocks(options as never)).toThrow(TypeError);
    expect(() => instrumentLocks(options as never)).toThrow(message);
    const { tracerProvider } = telemetry;
    instrument({ tracerProvider });
    await locks.withLock('order:1', async () => {});
    expect(telemetry.spans()).toHaveLength(2);
  });

  it('loads neither the locks nor ioredis, which may have to be instrumented first', async () => {
    const loader = fileURLToPath(new URL('../support/jest/typescript-loader.mjs', import.meta.url));
    const entry = new URL('../../lib/otel.ts', import.meta.url).href;
    const program = `await import(${JSON.stringify(entry)});
      const { default: modules } = await import('node:module');
      const of = (name) => Object.keys(modules._cache).some((file) => file.includes(name));
      console.log(of('/@opentelemetry/api/'), of('/ioredis/'));`;
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--import',
      loader,
      '--input-type=module',
      '--eval',
      program,
    ]);
    expect(stdout.trim()).toBe('true false');
  });
});
