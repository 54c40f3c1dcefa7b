/** A change of one owner's waits. @publicApi */
export interface WaitChange {
  /** An owner that holds locks. */
  readonly holder: string;
  /** The waits that continue, by id, each with a text that describes it. */
  readonly waiting: ReadonlyMap<string, string>;
  /** The ids of waits that have ended. */
  readonly ended: readonly string[];
}

/**
 * Stores the waits of callers that hold locks and wait for others, so that deadlocks can be detected: see
 * docs/deadlocks.md. Waits are stored under the waiting owners. Without this part of a backend, no deadlocks are
 * detected.
 *
 * All methods may be called at any time, concurrently. Promises reject with {@link BackendError} only.
 *
 * @publicApi
 */
export interface WaitBackend {
  /**
   * How many milliseconds the backend's time is ahead of this process's monotonic clock. It is computed as the time in
   * the answer minus the time of the request, so it may be a little too large. `holder` is any owner of the caller.
   */
  clockOffset(holder: string): Promise<number>;

  /** The owners that hold the lock with this key, of any type; none when it is free. */
  holders(key: string): Promise<readonly string[]>;

  /**
   * Stores the waits of these owners for `lifetime` ms. A change that arrives after its caller stopped waiting for the
   * answer is dropped.
   */
  write(changes: readonly WaitChange[], lifetime: number): Promise<void>;

  /** The waits of each of these owners, as stored by {@link write}. */
  read(holders: readonly string[]): Promise<readonly ReadonlyMap<string, string>[]>;
}
