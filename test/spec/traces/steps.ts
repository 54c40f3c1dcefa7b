/** `<<process, number, commandTimeout>>` of the specification of leases. */
export type OwnerId = readonly [process: number, number: number, timeout: number];

export type Field = string | number | boolean | OwnerId;

/**
 * One step of a trace: what happened, the server's time and each process's in µs, and what the specification compares.
 */
export interface Step {
  readonly e: string;
  readonly t: number;
  readonly cl: readonly number[];
  readonly [field: string]: Field | readonly number[] | readonly OwnerId[];
}

/** The beginning of all clocks, in ms: TLC's integers have 32 bits. */
export const EPOCH = Date.parse('2025-01-01T00:00:00Z');

export function micros(milliseconds: number): number {
  return Math.floor((milliseconds + EPOCH) * 1000) - EPOCH * 1000;
}

/** A time of the server's clock. */
export function serverTime(milliseconds: number): number {
  return micros(milliseconds - EPOCH);
}

/** A moment of virtual time on the clock of a process that runs at this rate. */
export function localTime(at: number, rate: number): number {
  return Math.round((1_000 + at * rate) * 1000);
}
