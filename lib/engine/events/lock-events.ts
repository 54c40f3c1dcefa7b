import type { LockType } from '../../backends/lock-backend.js';
import type { HolderClient } from '../clients/describe-holder.js';

/** What every event of one lock says. @publicApi */
export interface LockEvent {
  readonly name: string;
  /** `semaphore`: a permit with a lease. */
  readonly type: LockType | 'semaphore';
  /**
   * What the lock was acquired for: the template of the decorator, `Class.method` where its key is a function, or the
   * option `group`; `''`: none was given. It does not differ from call to call as the name does, and is fit for a
   * metric's label.
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
  /** It stayed busy until `waitTime` was over. */
  | 'busy'
  /** As `busy`, and the decorator's `onBusy` answers instead of an error. */
  | 'skipped'
  /** By the caller's signal, or by shutdown. */
  | 'aborted'
  | 'unavailable'
  | 'deadlock'
  /** The lock was lost in which it was to be re-entry. */
  | 'lost'
  /** A bad name, or a reader that wants to write. A bad option has no event: nothing was tried. */
  | 'refused';

/** The events of `LockService.on`, with what their listeners are given. Times are in milliseconds. @publicApi */
export interface LockEvents {
  /** `waited` is 0 when there was no listener yet when the acquisition started. */
  acquired: OwnerEvent & { readonly fencingToken: number; readonly waited: number };
  /** `held` is undefined when there was no listener yet when the lock was acquired. */
  released: OwnerEvent & { readonly held: number | undefined };
  renewed: OwnerEvent;
  /** A renewal got no answer, or an error; it is tried again until the lease ends in `remainingTime`. */
  renewalFailed: OwnerEvent & { readonly remainingTime: number; readonly error: Error };
  /** `held` is undefined for a permit. */
  lost: OwnerEvent & { readonly held: number | undefined; readonly error: Error };
  /** `holderClient` says who the holder is, where that was found out while the caller waited. */
  busy: LockEvent & {
    readonly remainingTime: number;
    readonly holder: string | undefined;
    readonly holderClient: HolderClient | undefined;
  };
  /**
   * An acquisition of one or several locks failed, whatever the reason. `name` is that of all of them, joined by `, `.
   */
  failed: LockEvent & {
    readonly names: readonly string[];
    readonly outcome: Exclude<AcquireOutcome, 'acquired'>;
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
  'released',
  'renewed',
  'renewalFailed',
  'lost',
  'busy',
  'failed',
  'handoff',
  'error',
] satisfies LockEventName[];
