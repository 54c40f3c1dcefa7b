import type { Lease } from '../terms/lease.js';

/** What a process does while it leads. See `LockService.lead`. @publicApi */
export interface LeadOptions {
  /**
   * Called when this process was elected, in a scope of the lease. The leadership lasts as long as the returned
   * promise: when it settles, this process resigns. `lease.signal` aborts when the leadership has to end: with
   * LockLostError when the lock was lost, with LockAbortedError on `stop()` and on shutdown. Return soon after that.
   */
  onElected(lease: Lease): Promise<unknown>;

  /**
   * Called once after each election, when the promise of `onElected` has settled and the lock was given back or lost.
   * On `stop()` and on shutdown it is called after `shutdownTimeout` at the latest, although `onElected` may still run.
   */
  onRevoked?(): void | Promise<void>;

  /** The name of the acquisition in events, metrics and client records: see `LockOptions.group`. Default: none. */
  readonly group?: string;
}

/** This process's part in an election that is repeated forever. See `LockService.lead`. @publicApi */
export interface Leadership extends AsyncDisposable {
  /** The name of the lock. */
  readonly name: string;

  /**
   * Whether this process is certain to be the leader at this moment. False after `stop()` was called, and after the
   * lock was lost.
   */
  readonly isLeader: boolean;

  /**
   * Leaves the election. If this process leads, aborts `lease.signal`, waits up to `shutdownTimeout` for `onElected`,
   * gives the lock to the next process, and calls `onRevoked`. If `onElected` ignores its signal, the lock is neither
   * released nor renewed: it becomes free when `onElected` has settled after all, or when its lease ends. If `stop()`
   * is called inside `onElected` or `onRevoked`, it does not wait. It never rejects, and further calls return the same
   * promise.
   */
  stop(): Promise<void>;
}
