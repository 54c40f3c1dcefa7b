export interface Receipt {
  readonly sku: string;
  readonly quantity: number;
  readonly payment: string;
  /** The process that took the order. */
  readonly replica: string;
  /** Absent without a lock. */
  readonly fencingToken?: number;
  /** When work on the order began and ended, in milliseconds since 1970. */
  readonly startedAt: number;
  readonly endedAt: number;
}
