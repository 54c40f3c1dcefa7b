import type { Digest, Instant } from './tenure.js';

/** The rule that a history violates, when, and the calls concerned. */
export interface Violation {
  readonly rule: string;
  readonly message: string;
  readonly at: Instant;
  readonly lock?: string;
  readonly calls: readonly string[];
}

/** A rule for every history. Returns its violations. */
export type Rule = (digest: Digest) => Violation[];
