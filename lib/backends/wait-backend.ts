/** How the waits of one owner change. @publicApi */
export interface WaitChange {
  /** An owner that holds locks. */
  readonly holder: string;
  /** Its current waits by their ids, each with a text that describes it. */
  readonly waiting: ReadonlyMap<string, string>;
  /** The ids of those that have ended. */
  readonly ended: readonly string[];
}

/**
 * Where callers that hold locks and wait for others write down their waits, so that deadlocks are found: see
 * docs/deadlocks.md. Waits are kept by the owners that wait. A backend without this part finds no deadlocks.
 *
 * All methods may be called at any time, concurrently. Promises reject with {@link BackendError} only.
 *
 * @publicApi
 */
export interface WaitBackend {
  /**
   * By how many milliseconds the backend's time is ahead of the monotonic clock of this process, or a little more: the
   * time of the answer less that of the request. `holder` is any owner of the caller.
   */
  clockOffset(holder: string): Promise<number>;

  /** The owners that hold the lock with this key, of any type; none when it is free. */
  holders(key: string): Promise<readonly string[]>;

  /**
   * Writes the waits of these owners, each for `lifetime` ms. What is written later than its caller waits for an answer
   * is not written.
   */
  write(changes: readonly WaitChange[], lifetime: number): Promise<void>;

  /** The waits of each of these owners, as {@link write} has written them. */
  read(holders: readonly string[]): Promise<readonly ReadonlyMap<string, string>[]>;
}
