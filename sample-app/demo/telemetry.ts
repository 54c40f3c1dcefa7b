// Loaded first by the processes of `npm run demo -- --stuck`: their spans go to the console, their metrics to a page
// for Prometheus.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, ConsoleSpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { instrumentLocks } from 'nestjs-redis-lock/otel';

const exporter = new PrometheusExporter({ preventServerStart: true });
instrumentLocks({
  tracerProvider: new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new ConsoleSpanExporter())] }),
  meterProvider: new MeterProvider({ readers: [exporter] }),
});

const server = createServer((request, response) => exporter.getMetricsRequestHandler(request, response)).unref();
server.listen(0, '127.0.0.1', () => {
  console.log(`metrics: http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
});
