import type { Digest } from './tenure.js';
import type { Violation } from './violation.js';

/** Whoever held something when the server lost it has let go of it, or was told, within the longest lease. */
export function lossesNoticed({ upsets, tenures, calls, crashed, end }: Digest): Violation[] {
  return upsets.flatMap(({ at, toldBy, reason }) => {
    if (toldBy === undefined || end.at <= toldBy) return [];
    return tenures.flatMap(({ granted, lost, lock, type, call, process, isForGood }) => {
      if (granted.at >= at || isForGood || type === 'latch') return [];
      const over = [lost, calls.get(call)?.releaseAsked, crashed.get(process)];
      if (over.some((instant) => instant !== undefined && instant.at <= toldBy)) return [];
      const message = `${lock}: ${call} was held when ${reason}, and nobody was told by ${toldBy.toFixed(1)}`;
      return [{ rule: 'losses noticed', message, at: granted, lock, calls: [call] } satisfies Violation];
    });
  });
}
