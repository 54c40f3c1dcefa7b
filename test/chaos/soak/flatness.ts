/** What was measured of one thing at rest: of a process since its start, for example. Times are in milliseconds. */
export interface Series {
  readonly what: string;
  readonly unit: string;
  /** In chronological order. */
  readonly points: readonly (readonly [at: number, value: number])[];
}

export interface Flatness extends Series {
  /** Medians of the first and of the last points after the warm-up. */
  readonly first: number;
  readonly last: number;
  readonly isFlat: boolean;
}

export interface Bounds {
  /** How long a series warms up, from its first point. Its first points are left out in any case. */
  readonly warm: number;
  /** By what share it may have grown. */
  readonly growth: number;
  /** By how much it may have grown in any case, because one handle more is no leak. */
  readonly atLeast: number;
}

/** So many first points are part of the warm-up. */
export const WARM_POINTS = 3;
/** The fewest points after the warm-up that show whether a series is flat: three at each end. */
export const FEWEST_POINTS = 6;

/** @returns undefined if the series is too short */
export function flatness(series: Series, { warm, growth, atLeast }: Bounds): Flatness | undefined {
  const { points } = series;
  const since = (points[0]?.[0] ?? 0) + warm;
  const values = points
    .slice(WARM_POINTS)
    .filter(([at]) => at >= since)
    .map(([, value]) => value);
  if (values.length < FEWEST_POINTS) return undefined;
  const end = Math.max(3, Math.floor(values.length / 5));
  const [first, last] = [median(values.slice(0, end)), median(values.slice(-end))];
  return { ...series, first, last, isFlat: last - first <= Math.max(first * growth, atLeast) };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}
