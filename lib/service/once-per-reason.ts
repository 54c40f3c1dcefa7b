import type { Runtime } from '../backends/runtime.js';

/** How long a reason that was reported stays quiet, in milliseconds. */
const QUIET_TIME = 10_000;
const MAX_REASONS = 100;

/**
 * Reports an error unless one with the same message was reported in the last ten seconds: a client that cannot connect fails many
 * times a second.
 */
export function oncePerReason(runtime: Runtime, report: (error: Error) => void): (error: unknown) => void {
  const reportedAt = new Map<string, number>();
  return (thrown) => {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    // A message of Sentinel's client names the milliseconds until it tries again, which differ each time.
    const reason = error.message.replace(/\d+ ?ms/g, 'ms');
    const now = runtime.monotonic();
    if (now - (reportedAt.get(reason) ?? Number.NEGATIVE_INFINITY) < QUIET_TIME) return;
    if (reportedAt.size >= MAX_REASONS) reportedAt.clear();
    reportedAt.set(reason, now);
    report(error);
  };
}
