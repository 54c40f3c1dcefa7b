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
 * 1: all got the same; 1/n: one got everything.
 *
 * @see R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination (DEC-TR-301, 1984)
 */
export function jainIndex(shares: readonly number[]): number {
  const squares = sum(shares.map((share) => share * share));
  return squares === 0 ? 0 : sum(shares) ** 2 / (shares.length * squares);
}
