import type { Digest } from './tenure.js';
import type { Violation } from './violation.js';

/**
 * Whoever held something when the server lost it has let go of it, or was told, within the longest lease. Nobody is told of permits
 * that are not renewed.
 */
export function lossesNoticed({ upsets, tenures, calls, crashed, end }: Digest): Violation[] {
  return upsets.flatMap(({ at, toldBy, reason }) => {
    if (toldBy === undefined || end.at <= toldBy) return [];
    return tenures.flatMap(({ granted, lost, lock, type, kept, call, process }) => {
      if (granted.at >= at || type === 'latch' || (type === 'permits' && !kept)) return [];
      const over = [lost, calls.get(call)?.releaseAsked, crashed.get(process)];
      if (over.some((instant) => instant !== undefined && instant.at <= toldBy)) return [];
      const message = `${lock}: ${call} was held when ${reason}, and nobody was told by ${toldBy.toFixed(1)}`;
      return [{ rule: 'losses noticed', message, at: granted, lock, calls: [call] } satisfies Violation];
    });
  });
}
