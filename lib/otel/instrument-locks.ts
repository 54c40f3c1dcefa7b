import * as api from '@opentelemetry/api';
import { diag, type MeterProvider, type TracerProvider } from '@opentelemetry/api';
import { MetricsSource } from './lock-metrics.js';
import { LockSpans } from './lock-spans.js';
import { LockTelemetry } from './lock-telemetry.js';

/** @publicApi */
export interface LockInstrumentationOptions {
  /** Receives the spans. Default: the global provider, even if it is registered later. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Receives the measurements. Default: the global provider, even if it is registered later. */
  readonly meterProvider?: MeterProvider | undefined;
  /** Default true. */
  readonly spans?: boolean | undefined;
  /** Default true. */
  readonly metrics?: boolean | undefined;
  /**
   * Whether spans contain the names of locks, in an attribute and in error messages. Metrics never contain them.
   * Use `false` if names contain data that must not leave the application, such as account numbers. Default true.
   */
  readonly lockNames?: boolean | undefined;
}

/** The handle that {@link instrumentLocks} returns. @publicApi */
export interface LockInstrumentation {
  /**
   * Stops the instrumentation. Open spans end, and nothing is counted as held or waiting any more. Further calls have
   * no effect.
   */
  disable(): void;
}

/** There is one instrumentation in the process, even if the library is loaded by both `import` and `require`. */
const ACTIVE = Symbol.for('nestjs-redis-lock:otel');
const active = globalThis as { [ACTIVE]?: LockInstrumentation | undefined };

const KINDS: Readonly<Record<keyof LockInstrumentationOptions, 'boolean' | 'getTracer' | 'getMeter'>> = {
  tracerProvider: 'getTracer',
  meterProvider: 'getMeter',
  spans: 'boolean',
  metrics: 'boolean',
  lockNames: 'boolean',
};

/**
 * Creates OpenTelemetry spans and metrics for the locks of all services in this process. Call it once when the process
 * starts, before or after the SDK starts. It loads neither the rest of this library nor ioredis.
 *
 * ```ts
 * import { instrumentLocks } from 'nestjs-redis-lock/otel';
 *
 * instrumentLocks();
 * ```
 *
 * A second call has no effect. It returns the same object, and `diag` logs a warning. To change options, call
 * `disable()` first.
 *
 * @throws TypeError naming the option that is wrong, or that `@opentelemetry/api` is older than 1.3
 * @publicApi
 */
export function instrumentLocks(options: LockInstrumentationOptions = {}): LockInstrumentation {
  check(options);
  if (api.metrics === undefined)
    throw new TypeError(
      'instrumentLocks(): the installed @opentelemetry/api has no metrics. Version 1.3 or later is needed: npm install @opentelemetry/api@latest',
    );
  const running = active[ACTIVE];
  if (running !== undefined) {
    diag.warn(
      'instrumentLocks(): locks are instrumented already, with the options of the first call; disable() it first',
    );
    return running;
  }
  const { tracerProvider, meterProvider, spans = true, metrics = true, lockNames = true } = options;
  const telemetry = new LockTelemetry(
    spans ? new LockSpans(tracerProvider, lockNames) : undefined,
    metrics ? new MetricsSource(meterProvider) : undefined,
  );
  const instrumentation: LockInstrumentation = {
    disable: () => {
      if (active[ACTIVE] !== instrumentation) return;
      active[ACTIVE] = undefined;
      telemetry.stop();
    },
  };
  active[ACTIVE] = instrumentation;
  return instrumentation;
}

function check(options: LockInstrumentationOptions): void {
  if (typeof options !== 'object' || options === null)
    throw new TypeError(`instrumentLocks(): the options must be an object, but they are ${String(options)}`);
  for (const [option, value] of Object.entries(options)) {
    const kind = KINDS[option as keyof LockInstrumentationOptions];
    if (kind === undefined)
      throw new TypeError(
        `instrumentLocks(): there is no option '${option}'; there are ${Object.keys(KINDS).join(', ')}`,
      );
    if (value === undefined) continue;
    if (kind === 'boolean' ? typeof value !== 'boolean' : typeof value?.[kind] !== 'function')
      throw new TypeError(
        `instrumentLocks(): ${option} must be ${kind === 'boolean' ? 'true or false' : `a provider that has ${kind}()`}`,
      );
  }
}
