/** A semaphore or latch of one service. */
export interface Synchronizer {
  readonly name: string;
  /** The whole key, prefix included. */
  readonly key: string;
  /** Its name in errors: `the semaphore 'mail'`. */
  readonly what: string;
  /** The method that created its handle: `getSemaphore`. */
  readonly method: string;
  /** The number of permits with which it is created if missing. Undefined: it is not created. */
  readonly initial: number | undefined;
}

/** How the error about an outage begins. */
export function noUsableAnswer(what: string): string {
  return `The backend gave no usable answer about ${what}`;
}
