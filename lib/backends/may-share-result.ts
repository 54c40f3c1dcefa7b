import type { FlightRequest, StoredResult } from './flight-backend.js';

/**
 * Whether a caller of a single flight may get this result of another run. It may if it waited for the result, or if the
 * result is still kept, and is recent enough for this caller. acquire-flight-5.lua contains the same rule.
 *
 * @param size of the value, in bytes
 * @param age how long ago the run ended, in microseconds; negative: unknown
 * @param begin the reading in the first busy reply to the caller; undefined: it has not been answered before
 */
export function mayShareResult(
  { before, ended, kept }: StoredResult,
  size: number,
  age: number,
  begin: number | undefined,
  { keepFor, maxSize }: Pick<FlightRequest, 'keepFor' | 'maxSize'>,
): boolean {
  if (size > maxSize) return false;
  const isAwaited = begin !== undefined && begin < before;
  const isKept = keepFor > 0 && age >= 0 && age <= Math.min(kept - ended, keepFor * 1_000);
  return isAwaited || isKept;
}
