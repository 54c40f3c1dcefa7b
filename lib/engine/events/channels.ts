import { type Channel, channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import type { HeldType } from '../../backends/lock-backend.js';
import type { HolderClient } from '../describe-holder.js';
import type { AcquireOutcome, LockEvents } from './lock-events.js';

/** The fields that acquisitions and holds have in common. @publicApi */
interface TracedLocks {
  /** All names, joined by `, `. */
  readonly name: string;
  readonly names: readonly string[];
  readonly type: HeldType;
  /** Suitable as a metric label: see `LockEvent.group`. */
  readonly group: string;
  /** `Class.method` of a decorated method; `''` for other callers. */
  readonly method: string;
  /**
   * A subscriber of `start` may set this function to run the traced work itself: the acquisition, or the body of the
   * hold. The function must call `work` immediately and exactly once, and return its result. Use it for contexts that
   * are not kept in an AsyncLocalStorage. For others, use `bindStore`.
   */
  run: (<T>(work: () => T) => T) | undefined;
}

/**
 * One acquisition, in the channel `nestjs-redis-lock:acquire`. All of its events share one object; fields that are not
 * known yet are undefined. Times are in milliseconds.
 *
 * @publicApi
 */
export interface AcquireMessage extends TracedLocks {
  outcome: AcquireOutcome | undefined;
  /** From the call until the lock was acquired or the caller was refused. */
  waited: number | undefined;
  /** Whether the acquisition shares a lock that the caller's scope already held. */
  reentry: boolean | undefined;
  /**
   * Whether the caller of a single flight got the result of another caller's run. `owner` is then the owner of that
   * run.
   */
  shared: boolean | undefined;
  /** Whether another caller of this process handed the lock off to this one, without freeing it in between. */
  handedOff: boolean | undefined;
  /** How many calls this one has superseded: see `LockOptions.newest`. */
  superseded: number | undefined;
  /** Whether the caller stands by to lead. Its wait may last for ever, and is no sign of a busy lock. */
  readonly standsBy: boolean;
  /** For several locks, the owner of the first. */
  owner: string | undefined;
  /** By the locks' names. */
  owners: ReadonlyMap<string, string> | undefined;
  /** Also undefined for several locks with different tokens. */
  fencingToken: number | undefined;
  /** The holder of the lock when the caller was refused, if it is known. */
  holderClient: HolderClient | undefined;
  /** Why the acquisition failed. */
  error?: unknown;
}

/** The time from an acquisition to the release, in the channel `nestjs-redis-lock:hold`. @publicApi */
export interface HoldMessage extends TracedLocks {
  readonly owner: string;
  readonly owners: ReadonlyMap<string, string>;
  readonly fencingToken: number | undefined;
  /** Whether the hold shares a lock that an outer scope holds. If you count holds, count only the outer one. */
  readonly reentry: boolean;
  /**
   * The names that no outer scope holds. If you count locks, count these: of several names, an outer scope may hold some.
   */
  readonly taken: readonly string[];
  /** The acquisition that this hold follows. */
  readonly acquisition: AcquireMessage;
  /** `detached`: the lock stays locked for the process that adopts it. */
  outcome: 'released' | 'detached' | 'lost' | undefined;
  /** The duration of the hold. */
  held: number | undefined;
  /** Why the lock was lost. */
  error?: unknown;
}

/**
 * `start` is published in the caller's context; `asyncEnd` when the acquisition has ended; `error` before that if it
 * failed.
 */
export const acquireChannel: TracingChannel<unknown, AcquireMessage> = tracingChannel('nestjs-redis-lock:acquire');
/**
 * `start` is published when the lock is held, around the body if there is one; `asyncEnd` when the lock is not held any
 * more.
 */
export const holdChannel: TracingChannel<unknown, HoldMessage> = tracingChannel('nestjs-redis-lock:hold');

/** Channels with one message per event, the same as those of `LockService.on`. */
export const pointChannels = {
  lost: channel('nestjs-redis-lock:lost'),
  renewed: channel('nestjs-redis-lock:renewed'),
  renewalFailed: channel('nestjs-redis-lock:renewal-failed'),
  handoff: channel('nestjs-redis-lock:handoff'),
  blocked: channel('nestjs-redis-lock:blocked'),
} satisfies Partial<Record<keyof LockEvents, Channel>>;

/** The message of each point channel. @publicApi */
export interface PointMessages {
  'nestjs-redis-lock:lost': LockEvents['lost'];
  'nestjs-redis-lock:renewed': LockEvents['renewed'];
  'nestjs-redis-lock:renewal-failed': LockEvents['renewalFailed'];
  'nestjs-redis-lock:handoff': LockEvents['handoff'];
  'nestjs-redis-lock:blocked': LockEvents['blocked'];
}
