import type { Milliseconds } from './duration.js';

/** The terms that limit a wait. */
export interface WaitTerms {
  /** 0: try once. */
  readonly waitTime: Milliseconds;
  /** How long an outage of the backend may last. */
  readonly outageTimeout: Milliseconds;
  readonly signal: AbortSignal | undefined;
  /** The caller waits for as long as others lead, so a long wait is no reason to warn. */
  readonly standsBy?: true;
  /** Whether the call was given a waitTime, even `Infinity`. */
  readonly choseWaitTime?: boolean;
}
