/** A semaphore or latch of one service. */
export interface Synchronizer {
  readonly name: string;
  /** The whole key, prefix included. */
  readonly key: string;
  /** What errors call it: `the semaphore 'mail'`. */
  readonly what: string;
}
