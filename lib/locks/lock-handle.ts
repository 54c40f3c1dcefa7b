import type { LockType } from '../backends/lock-backend.js';
import type { Duration } from '../engine/duration.js';
import { LockBusyError, LockNotOwnedError } from '../engine/errors.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { FlowMark } from './flow-mark.js';
import type { ClaimTerms, LockHold } from './lock-hold.js';

/**
 * A lock in the style of Redisson and java.util.concurrent. Its owner is the flow of control that called `lock()`: the code after it,
 * and the code that it calls, hold the lock, as a Java thread would, through any handle of it. Another flow (another request, on the
 * same handle) waits like a stranger, and its `unlock()` is a LockNotOwnedError.
 *
 * Handles are cheap, hold nothing by themselves and may be shared. But `withLock` is harder to get wrong: `lock()` marks its caller's
 * caller too, so that a branch of a `Promise.all` which awaits something else before its own `lock()` counts as code that the
 * branches started before it have called, and enters with them.
 *
 * @publicApi
 */
export abstract class LockHandle {
  /** The lock's name, without the key prefix; several are joined by `, `. */
  abstract readonly name: string;

  /** Alike for handles of the same lock. @internal */
  abstract readonly identity: string;

  /** How many leases a hold of it has, at most. @internal */
  abstract readonly width: number;

  /** The services that keep it. @internal */
  abstract readonly engines: readonly LockEngine[];

  /** Its place among others, alike in all processes. @internal */
  abstract readonly order: string;

  /** By what it can be acquired in one command with others; undefined: by itself alone. @internal */
  abstract readonly batch: { readonly engine: LockEngine; readonly type: LockType } | undefined;

  /** What it consists of, where that is as good as itself. @internal */
  get parts(): readonly LockHandle[] {
    return [this];
  }

  /** Acquires it for whoever asks, without marking a flow. @internal */
  abstract claim(terms: ClaimTerms): Promise<LockHold>;

  /** How many times the running flow of control holds it. */
  abstract getHoldCount(): number;

  /** Whether anybody holds it, here or elsewhere. */
  abstract isLocked(): Promise<boolean>;

  /**
   * Waits until this flow holds the lock.
   *
   * @param leaseTime how long, without renewal; absent: until `unlock()`, kept by the watchdog
   * @throws LockBusyError when the module's `waitTime` is over (there is none by default), LockAbortedError when the service shuts
   *   down, LockUnavailableError when the backend gives no answer in time (an outage is waited out unless there is a `waitTime`)
   */
  lock(leaseTime?: Duration): Promise<void> {
    return this.enter({ leaseTime }).then(() => {});
  }

  /**
   * Tries for at most `waitTime` (default 0: once).
   *
   * @returns whether this flow holds the lock now
   * @throws LockAbortedError, LockUnavailableError
   */
  tryLock(waitTime: Duration = 0, leaseTime?: Duration): Promise<boolean> {
    return this.enter({ waitTime, leaseTime }).then(() => true, refusal(false));
  }

  /**
   * Takes back this flow's latest `lock()` of it; the last one frees the lock.
   *
   * @throws LockNotOwnedError when this flow has not locked it through a handle of it; nothing changes then
   * @throws LockLostError when the lock had been lost meanwhile
   */
  unlock(): Promise<void> {
    const mark = FlowMark.latest(this.identity);
    if (mark !== undefined) return mark.takeOff().release();
    return Promise.reject(
      new LockNotOwnedError(
        `unlock() of '${this.name}': this flow of control does not hold the lock; only who called lock() can unlock it`,
        this.name,
      ),
    );
  }

  /** Whether the running flow of control holds it, by a handle, a scope or a decorated method. */
  isHeldByCurrentOwner(): boolean {
    return this.getHoldCount() > 0;
  }

  /** Marks the running flow and acquires the lock for it. No `async`: the flow is the caller's. */
  protected enter(terms: ClaimTerms): Promise<LockHold> {
    const mark = new FlowMark(this.identity, this.width);
    return this.claim(terms).then(
      (hold) => {
        mark.fulfil(hold);
        return hold;
      },
      (error) => {
        mark.end();
        throw error;
      },
    );
  }
}

/** Answers a busy lock with `answer`; anything else goes on as the error that it is. */
export function refusal<T>(answer: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof LockBusyError) return answer;
    throw error;
  };
}
