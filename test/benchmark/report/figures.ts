/** `—` for what was not measured. */
const NONE = '—';

/** A whole number: `12,345`. */
export function count(value: number): string {
  return Number.isFinite(value) ? Math.round(value).toLocaleString('en-US') : NONE;
}

/** About three significant digits: `1,234`, `12.3`, `0.12`. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return NONE;
  if (Math.abs(value) >= 100) return count(value);
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}

/** How many times as much: `2.41 ×`. */
export function factor(value: number): string {
  return Number.isFinite(value) ? `${figure(value)} ×` : NONE;
}

/** A share: `1.25 %`. */
export function percent(share: number): string {
  return `${figure(share * 100)} %`;
}
