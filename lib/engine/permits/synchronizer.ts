/** A semaphore or latch of one service. */
export interface Synchronizer {
  readonly name: string;
  /** The whole key, prefix included. */
  readonly key: string;
  /** What errors call it: `the semaphore 'mail'`. */
  readonly what: string;
  /** The method that made its handle: `getSemaphore`. */
  readonly method: string;
  /** With how many permits it is created where it does not exist. Undefined: it is not created. */
  readonly initial: number | undefined;
}
