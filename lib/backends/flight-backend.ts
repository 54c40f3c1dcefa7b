import type { Acquired, Busy } from './lock-requests.js';

/**
 * A request for the result of a single flight, or for its lock. Its lock has the type `flight`.
 *
 * @publicApi
 */
export interface FlightRequest {
  /** The key of the lock, prefix included. */
  readonly key: string;
  /** `<clientId>:<n>`. An owner that has stored a result never gets the lock again. */
  readonly owner: string;
  /** Milliseconds until the backend frees the lock if nobody renews it. */
  readonly leaseTime: number;
  /** The reading in the first busy reply to this caller. Undefined on its first request. */
  readonly begin: number | undefined;
  /** How old a result may be, in milliseconds. With 0, the run that stored it must have ended after {@link begin}. */
  readonly keepFor: number;
  /** The size of the largest result that the caller accepts, in bytes. */
  readonly maxSize: number;
}

/** A stored result. Times are readings: see {@link FlightBackend}. @publicApi */
export interface StoredResult {
  readonly value: string;
  /** The owner that has stored it. */
  readonly run: string;
  /** When its run ended: see {@link FlightRelease.runnerWaitsUntil}. */
  readonly ended: number;
  /**
   * Callers that first asked before this reading may get the result. For a forgotten result, it is earlier than
   * `ended`.
   */
  readonly before: number;
  /** Callers that accept an older result may get it until this reading. */
  readonly kept: number;
}

/** The lock is busy, or there is a result. @publicApi */
export interface FlightBusy extends Busy {
  /** When the backend answered. */
  readonly reading: number;
  /** A result that the caller may get. If it is set, ignore `remaining` and `holder`. */
  readonly result?: StoredResult;
  /**
   * How long ago the run of the result ended, in microseconds: by the readings or by the backend's time, whichever is
   * longer. Negative if the backend's time was set back since. Then only callers that waited for the result get it.
   */
  readonly age?: number;
}

/** @publicApi */
export type FlightReply = Acquired | FlightBusy;

/** A run of a flight. @publicApi */
export interface FlightRun {
  readonly key: string;
  readonly owner: string;
  /** Its fencing token. */
  readonly token: number;
}

/** The release of a flight's lock, with its result. @publicApi */
export interface FlightRelease extends FlightRun {
  /** How long to keep the result, in milliseconds; 0: only for callers that wait for it now. */
  readonly keepFor: number;
  readonly value: string;
  /**
   * A moment on the monotonic clock of this process. The runner gets its result after the answer to this release, or
   * after this moment. If the release is executed later, the run counts as ended at this moment, so that callers that
   * asked after the runner had its result do not get it.
   */
  readonly runnerWaitsUntil: number;
}

/** @publicApi */
export interface FlightReleaseReply {
  /**
   * `gone`: the owner no longer held the lock, and nothing was stored. `before`: an earlier copy of the request has
   * stored it.
   */
  readonly released: 'now' | 'before' | 'gone';
  /** Why the result could not be stored. */
  readonly refusal?: string;
  /** The connection broke while the release was under way, so it may have been executed twice. */
  readonly resent: boolean;
}

/** A stored result, without its value. @publicApi */
export interface ResultState {
  /** In bytes. */
  readonly size: number;
  /** Milliseconds until it is deleted. */
  readonly remaining: number;
}

/**
 * The locks of single flights, and their results. A flight's lock excludes the locks of all other types under its key.
 * It is renewed, inspected and released by force like any other, by the methods of `LockBackend` with the type
 * `flight`. `LockBackend.release` releases it without a result.
 *
 * Moments are *readings*: microseconds from the clock of the fencing tokens. They only grow, even if
 * the server's time is set back, and can be compared with fencing tokens.
 *
 * All methods may be called at any time, concurrently. Promises reject with `BackendError` only.
 *
 * @publicApi
 */
export interface FlightBackend {
  /** Returns a result that the caller may get. If there is none, acquires the lock if it is free. */
  acquire(request: FlightRequest): Promise<FlightReply>;

  /**
   * Stores the result if the owner holds the lock, then releases the lock and wakes waiters, all in one step. The
   * result is not stored if nobody waits for it and `keepFor` is 0. If results were forgotten after the run's token,
   * only callers that first asked before that may have it. If the result cannot be stored, the lock is released anyway.
   */
  release(release: FlightRelease): Promise<FlightReleaseReply>;

  /**
   * Whether callers that ask now may have the result of this run: its owner still holds the lock, and results were not
   * forgotten since its token.
   */
  mayJoin(run: FlightRun): Promise<boolean>;

  /**
   * Deletes the result, and prevents a current run from keeping its result.
   *
   * @returns whether there was a result
   */
  forget(key: string): Promise<boolean>;

  /** The stored result, or undefined. */
  inspect(key: string): Promise<ResultState | undefined>;
}
