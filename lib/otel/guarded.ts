import { diag } from '@opentelemetry/api';

/** Calls the application's OpenTelemetry SDK. A processor, an exporter or a meter of it that throws affects neither locks nor the process. */
export function guarded<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    report(error);
    return undefined;
  }
}

function report(error: unknown): void {
  try {
    diag.error('nestjs-redis-lock: the OpenTelemetry SDK threw; something is missing in traces or metrics', error);
  } catch {
    // There is nobody to tell.
  }
}
