import type { Digest, Instant } from './tenure.js';

/** What a history breaks, where, and who was in it. */
export interface Violation {
  readonly rule: string;
  readonly message: string;
  readonly at: Instant;
  readonly lock?: string;
  readonly calls: readonly string[];
}

/** Something that every history must keep to. Gives what breaks it. */
export type Rule = (digest: Digest) => Violation[];
