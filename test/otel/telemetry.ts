import { context, type MeterProvider as Meters, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  type DataPoint,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';

/** The OpenTelemetry SDK, with exporters that keep what they receive. */
export class Telemetry {
  private readonly exporter = new InMemorySpanExporter();
  private readonly measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.exporter)] });
  readonly meterProvider = new MeterProvider({
    readers: [new PeriodicExportingMetricReader({ exporter: this.measured, exportIntervalMillis: 2 ** 30 })],
  });
  readonly tracer = this.tracerProvider.getTracer('test');

  get providers() {
    return { tracerProvider: this.tracerProvider, meterProvider: this.meterProvider };
  }

  /** Sets the global context manager, as an SDK for Node.js does when it starts. */
  start(): this {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    return this;
  }

  registerProviders(): void {
    trace.setGlobalTracerProvider(this.tracerProvider);
    metrics.setGlobalMeterProvider(this.meterProvider as Meters);
  }

  async stop(): Promise<void> {
    context.disable();
    trace.disable();
    metrics.disable();
    await Promise.all([this.tracerProvider.shutdown(), this.meterProvider.shutdown()]);
  }

  /** The spans that have ended and whose names start with `title`, in the order of their ends. */
  spans(title = ''): readonly ReadableSpan[] {
    return this.exporter.getFinishedSpans().filter(({ name }) => name.startsWith(title));
  }

  /** Everything that was measured so far under one name. */
  async points(name: string): Promise<readonly DataPoint<unknown>[]> {
    this.measured.reset();
    await this.meterProvider.forceFlush();
    const all = this.measured.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    const found = all.flatMap((scope) => scope.metrics).filter(({ descriptor }) => descriptor.name === name);
    return found.flatMap(({ dataPoints }) => dataPoints as DataPoint<unknown>[]);
  }

  /** The points of a counter, as `[attributes, value]`. */
  async values(name: string): Promise<unknown[]> {
    return (await this.points(name)).map(({ attributes, value }) => [attributes, value]);
  }

  /** The points of a histogram, as `[attributes, how often]`. */
  async counts(name: string): Promise<unknown[]> {
    return (await this.points(name)).map(({ attributes, value }) => [attributes, (value as { count: number }).count]);
  }
}

/** The attributes of a span without the prefix that all of them have. */
export function about({ attributes }: ReadableSpan): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(attributes).map(([key, value]) => [key.replace('distributed_lock.', ''), value]),
  );
}
