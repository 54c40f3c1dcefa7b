import type { Digest } from './tenure.js';
import type { Violation } from './violation.js';

/**
 * When the server loses its data, every holder releases its locks or notices the loss within the longest lease. Losses
 * of permits that are not renewed are not reported.
 */
export function lossesNoticed({ upsets, tenures, calls, crashed, end }: Digest): Violation[] {
  return upsets.flatMap(({ at, reportedBy, reason }) => {
    if (reportedBy === undefined || end.at <= reportedBy) return [];
    return tenures.flatMap(({ granted, lost, lock, type, kept, detached, call, process }) => {
      if (granted.at >= at || detached || type === 'latch' || (type === 'permits' && !kept)) return [];
      const over = [lost, calls.get(call)?.releaseAsked, crashed.get(process)];
      if (over.some((instant) => instant !== undefined && instant.at <= reportedBy)) return [];
      const message = `${lock}: ${call} was held when ${reason}, and nobody had noticed it by ${reportedBy.toFixed(1)}`;
      return [{ rule: 'losses noticed', message, at: granted, lock, calls: [call] } satisfies Violation];
    });
  });
}
