// A process that both imports and requires the entry for OpenTelemetry, before it loads the library.
import { createRequire } from 'node:module';
import { trace } from '@opentelemetry/api';
import { instrumentLocks } from 'nestjs-redis-lock/otel';

const require = createRequire(import.meta.url);
const spans = [];
const tracer = {
  startSpan(name) {
    spans.push(name);
    return trace.wrapSpanContext({ traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 });
  },
};
const options = { tracerProvider: { getTracer: () => tracer } };
const first = instrumentLocks(options);
const second = require('nestjs-redis-lock/otel').instrumentLocks(options);
const loadedBefore = Object.keys(require.cache).filter((file) => /ioredis|@nestjs|chunks.(core|nest)/.test(file));

const imported = await import('nestjs-redis-lock');
const required = require('nestjs-redis-lock/core');
for (const [group, library] of Object.entries({ a: imported, b: required })) {
  const locks = library.createLockService({ backend: 'memory' });
  await locks.withLock('stock', { group }, async () => {});
  await locks.close();
}

process.stdout.write(JSON.stringify({ loadedBefore, oneInstrumentation: first === second, spans }));
