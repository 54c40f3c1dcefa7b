import type { HeldType } from '../../backends/lock-backend.js';
import type { HolderClient } from '../describe-holder.js';

/** The part that all events of one lock share. @publicApi */
export interface LockEvent {
  readonly name: string;
  /** The type `semaphore` stands for a permit with a lease. */
  readonly type: HeldType | 'semaphore';
  /**
   * The purpose of the acquisition: the decorator's template, `Class.method` if its key is a function, or the option
   * `group`; `''`: none was given. Unlike the name, it is the same for all calls, so it is suitable as a metric label.
   */
  readonly group: string;
  /** `Class.method` of a decorated method; `''` for other callers. */
  readonly method: string;
}

/** An event of one owner of a lock. @publicApi */
export interface OwnerEvent extends LockEvent {
  readonly owner: string;
}

/** How an acquisition ended. @publicApi */
export type AcquireOutcome =
  | 'acquired'
  /** A single flight: the caller got the result of another caller's run. */
  | 'shared'
  /** The lock was still held by others when `waitTime` ended. */
  | 'busy'
  /** As `busy`, but the decorator's `onBusy` answered instead of throwing an error. */
  | 'skipped'
  /** A later call has taken the place of this one: see `LockOptions.newest`. */
  | 'superseded'
  /** The wait was ended by the caller's signal or by shutdown. */
  | 'aborted'
  | 'unavailable'
  | 'deadlock'
  /** The lock that the caller wanted to re-enter was lost. */
  | 'lost'
  /**
   * An invalid name, or a reader that asks for the write lock. A bad option emits no event, because nothing was tried.
   */
  | 'refused';

/** The events of `LockService.on`, with the arguments of their listeners. Times are in milliseconds. @publicApi */
export interface LockEvents {
  /**
   * `waited` is 0 if there was no listener when the acquisition started. `ticketOwner` is set if this process has
   * adopted a detached lock. It was the lock's owner in the backend until then.
   */
  acquired: OwnerEvent & { readonly fencingToken: number; readonly waited: number; readonly ticketOwner?: string };
  /**
   * A caller of a single flight got the result of another caller's run. `owner` is the owner of that run, and `waited`
   * is as for `acquired`.
   */
  shared: OwnerEvent & { readonly shared: true; readonly waited: number };
  /**
   * `held` is undefined if there was no listener when the lock was acquired. `confirmed` is false when Redis has not
   * answered the release: with `release: 'background'`, which does not wait for the answer, or when there was none.
   */
  released: OwnerEvent & { readonly held: number | undefined; readonly confirmed: boolean };
  /**
   * The lock was detached. It stays locked for `leaseTime`, with the owner `ticketOwner`, until a process adopts it.
   * `held` is undefined if there was no listener when the lock was acquired.
   */
  detached: OwnerEvent & {
    readonly held: number | undefined;
    readonly ticketOwner: string;
    readonly leaseTime: number;
  };
  renewed: OwnerEvent;
  /**
   * The event loop of this process was blocked for longer than a third of `watchdogTimeout`, and with the option
   * `keepWhileBlocked`, a thread has kept so many locks and permits meanwhile. The first of them to end had
   * `remainingTime` left.
   */
  blocked: { readonly blockedFor: number; readonly kept: number; readonly remainingTime: number };
  /** A renewal failed or got no answer. It is retried until the lease ends in `remainingTime`. */
  renewalFailed: OwnerEvent & { readonly remainingTime: number; readonly error: Error };
  /** `held` is undefined for a permit. */
  lost: OwnerEvent & { readonly held: number | undefined; readonly error: Error };
  /** `holderClient` is the holder, if it could be determined while the caller waited. */
  busy: LockEvent & {
    readonly remainingTime: number;
    readonly holder: string | undefined;
    readonly holderClient: HolderClient | undefined;
    /** Whether a later call has taken the place of this one: see `LockOptions.newest`. */
    readonly superseded: boolean;
  };
  /** An acquisition of one or several locks failed, for any reason. `name` contains all names, joined by `, `. */
  failed: LockEvent & {
    readonly names: readonly string[];
    readonly outcome: Exclude<AcquireOutcome, 'acquired' | 'shared'>;
    readonly waited: number;
    readonly error: Error;
  };
  handoff: OwnerEvent & { readonly fencingToken: number };
  error: Error;
}

/** @publicApi */
export type LockEventName = keyof LockEvents;

export const EVENT_NAMES: readonly string[] = [
  'acquired',
  'shared',
  'released',
  'detached',
  'renewed',
  'renewalFailed',
  'blocked',
  'lost',
  'busy',
  'failed',
  'handoff',
  'error',
] satisfies LockEventName[];
