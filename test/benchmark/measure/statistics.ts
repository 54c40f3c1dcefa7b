/** `share` of 0.99: the value that 99 % do not exceed. */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

export function median(values: readonly number[]): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  if (sorted.length === 0) return Number.NaN;
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/**
 * The two values between which the median of the underlying distribution lies with at least this confidence. Undefined
 * if there are too few values.
 *
 * @see W. J. Conover, Practical Nonparametric Statistics, 3rd edition (1999), 3.2: order statistics and the sign test
 */
export function medianInterval(
  values: readonly number[],
  confidence: number,
): readonly [least: number, most: number] | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const { length } = sorted;
  let outside = 0;
  // The chance that exactly `side` of them are below the median.
  let chance = 2 ** -length;
  for (let side = 0; side <= length / 2; side++) {
    outside += 2 * chance;
    if (outside > 1 - confidence) return side === 0 ? undefined : [sorted[side - 1], sorted[length - side]];
    chance *= (length - side) / (side + 1);
  }
  return undefined;
}

/**
 * 1 if all got the same; 1/n if one got everything.
 *
 * @see R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination (DEC-TR-301, 1984)
 */
export function jainIndex(shares: readonly number[]): number {
  const squares = sum(shares.map((share) => share * share));
  return squares === 0 ? 0 : sum(shares) ** 2 / (shares.length * squares);
}
