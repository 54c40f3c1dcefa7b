import { type Channel, channel, type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import type { LockType } from '../../backends/lock-backend.js';
import type { HolderClient } from '../clients/describe-holder.js';
import type { AcquireOutcome, LockEvents } from '../events/lock-events.js';

/** What an acquisition and a hold are about. @publicApi */
interface TracedLocks {
  /** All names, joined by `, `. */
  readonly name: string;
  readonly names: readonly string[];
  readonly type: LockType;
  /** Fit for a metric's label: see `LockEvent.group`. */
  readonly group: string;
  /** `Class.method` of a decorated method; `''` for other callers. */
  readonly method: string;
  /**
   * A subscriber of `start` may set it: what is traced (the acquisition, or the body of the hold) is then run by it. It
   * has to call `work` once, at once, and return its result. For contexts that no AsyncLocalStorage keeps; for those
   * that one keeps, there is `bindStore`.
   */
  run: (<T>(work: () => T) => T) | undefined;
}

/**
 * One acquisition, in the channel `nestjs-redis-lock:acquire`. One object goes through all of its events; what is not
 * known yet is undefined. Times are in milliseconds.
 *
 * @publicApi
 */
export interface AcquireMessage extends TracedLocks {
  outcome: AcquireOutcome | undefined;
  /** From the call until the lock was acquired, or the caller was refused. */
  waited: number | undefined;
  /** It shares a lock that the caller's scope held already. */
  reentry: boolean | undefined;
  /** Another caller of this process passed it on, without freeing it in between. */
  handedOff: boolean | undefined;
  /** With several locks, that of the first. */
  owner: string | undefined;
  /** By the locks' names. */
  owners: ReadonlyMap<string, string> | undefined;
  /** Undefined also for several locks whose tokens differ. */
  fencingToken: number | undefined;
  /** Who held the lock when the caller was refused, if that is known. */
  holderClient: HolderClient | undefined;
  /** Why it failed. */
  error?: unknown;
}

/** The time from an acquisition to the release, in the channel `nestjs-redis-lock:hold`. @publicApi */
export interface HoldMessage extends TracedLocks {
  readonly owner: string;
  readonly owners: ReadonlyMap<string, string>;
  readonly fencingToken: number | undefined;
  /** It shares a lock that an outer scope holds: the outer hold counts. */
  readonly reentry: boolean;
  /** The acquisition that it follows. */
  readonly acquisition: AcquireMessage;
  outcome: 'released' | 'lost' | undefined;
  /** For how long. */
  held: number | undefined;
  /** How it was lost. */
  error?: unknown;
}

/** `start` in the caller's context, `asyncEnd` when it has ended, `error` before that when it failed. */
export const acquireChannel: TracingChannel<unknown, AcquireMessage> = tracingChannel('nestjs-redis-lock:acquire');
/** `start` when the lock is held, around the body where there is one; `asyncEnd` when it is not held any more. */
export const holdChannel: TracingChannel<unknown, HoldMessage> = tracingChannel('nestjs-redis-lock:hold');

/** Channels with one message for each event. The messages are those of `LockService.on`. */
export const pointChannels = {
  lost: channel('nestjs-redis-lock:lost'),
  renewed: channel('nestjs-redis-lock:renewed'),
  renewalFailed: channel('nestjs-redis-lock:renewal-failed'),
  handoff: channel('nestjs-redis-lock:handoff'),
} satisfies Partial<Record<keyof LockEvents, Channel>>;

/** What is published in each point channel. @publicApi */
export interface PointMessages {
  'nestjs-redis-lock:lost': LockEvents['lost'];
  'nestjs-redis-lock:renewed': LockEvents['renewed'];
  'nestjs-redis-lock:renewal-failed': LockEvents['renewalFailed'];
  'nestjs-redis-lock:handoff': LockEvents['handoff'];
}
