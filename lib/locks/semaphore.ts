import type { Duration } from '../engine/duration.js';
import { LockBusyError } from '../engine/errors.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { addPermits, addPermitsIfExists, drainPermits, trySetPermits } from '../engine/permits/mutations.js';
import { PermitWaiter, type Synchronizer } from '../engine/permits/permit-request.js';
import { CountedPermits } from '../engine/permits/permit-source.js';
import { toCount, toWaitTerms, type WaitOptions } from './wait-options.js';

/**
 * A number of permits that all processes share: whoever acquires takes some away, whoever releases gives some, and who finds too few
 * waits. It is Redisson's RSemaphore, method by method, on the same Redis layout.
 *
 * ```ts
 * const mails = locks.getSemaphore('mail-connections');
 * await mails.trySetPermits(10);
 * await mails.acquire();
 * try {
 *   await send(mail);
 * } finally {
 *   await mails.release();
 * }
 * ```
 *
 * Permits have no owner: any process may release, also more than was acquired, and the permits of a process that died are gone until
 * somebody adds them. Where that matters, take {@link PermitExpirableSemaphore}. Callers of one process are served in the order of
 * their calls; between processes there is no order. A semaphore without permits set is one of 0.
 *
 * All methods reject with LockUnavailableError when the backend gives no answer, LockKeyError when something else stands under the
 * name, LockConfigurationError for a bad number. What changes the permits waits out an outage for up to a minute; each change is made
 * once, also when its answer got lost and it was sent again (acquire() waits out any outage; one of over five minutes can cost the
 * permits of an answer that it swallowed). Handles are cheap, hold nothing and may be shared.
 *
 * @publicApi
 */
export class Semaphore {
  private readonly object: Synchronizer;

  /** @internal */
  constructor(
    private readonly engine: LockEngine,
    /** The semaphore's name, without the key prefix. */
    readonly name: string,
  ) {
    this.object = engine.synchronizers.named(name, 'semaphore', 'getSemaphore()');
  }

  /**
   * Waits for permits, by default for one.
   *
   * @throws LockBusyError when the module's `waitTime` is over (there is none by default), LockAbortedError when `signal` aborts or
   *   the service shuts down
   */
  async acquire(permits = 1, options?: WaitOptions): Promise<void> {
    await this.take('acquire()', permits, undefined, options);
  }

  /**
   * Tries for at most `waitTime` (default 0: once, past those who wait in line).
   *
   * @returns whether all these permits were acquired; else none was
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   */
  async tryAcquire(permits = 1, waitTime: Duration = 0, options?: WaitOptions): Promise<boolean> {
    try {
      await this.take('tryAcquire()', permits, waitTime, options);
      return true;
    } catch (error) {
      if (error instanceof LockBusyError) return false;
      throw error;
    }
  }

  /** Gives permits, by default one, whether or not they were acquired before, and wakes who waits. */
  async release(permits = 1): Promise<void> {
    const amount = this.count('release()', permits);
    if (amount > 0) await this.engine.synchronizers.mutate(this.object, addPermits, amount);
  }

  /** As {@link release}, but only for a semaphore whose permits were set. @returns whether they were */
  async releaseIfExists(permits = 1): Promise<boolean> {
    const amount = this.count('releaseIfExists()', permits);
    return amount > 0 && this.engine.synchronizers.mutate(this.object, addPermitsIfExists, amount);
  }

  /** How many can be acquired now. Negative after permits were taken away that are in use. */
  async availablePermits(): Promise<number> {
    const { synchronizers } = this.engine;
    return synchronizers.answer(this.object, synchronizers.backend.availablePermits(this.object.key));
  }

  /** Takes all that are available. @returns how many that were */
  async drainPermits(): Promise<number> {
    return this.engine.synchronizers.mutate(this.object, drainPermits, undefined);
  }

  /** Changes how many permits there are by a positive or negative number: below zero, callers wait until it is positive again. */
  async addPermits(permits: number): Promise<void> {
    const amount = toCount(permits, `addPermits() of ${this.object.what}: permits`, -(2 ** 31));
    if (amount !== 0) await this.engine.synchronizers.mutate(this.object, addPermits, amount);
  }

  /** Sets how many permits there are, once and for all processes. @returns false when they were set before */
  async trySetPermits(permits: number): Promise<boolean> {
    return this.engine.synchronizers.mutate(this.object, trySetPermits, this.count('trySetPermits()', permits));
  }

  private async take(
    method: string,
    permits: number,
    waitTime: Duration | undefined,
    options: WaitOptions | undefined,
  ): Promise<void> {
    const { engine, object } = this;
    const { synchronizers, context, settings } = engine;
    const wanted = this.count(method, permits);
    const terms = toWaitTerms(waitTime, settings.waitTime, options, `${method} of ${object.what}`);
    if (wanted === 0) return;
    const giveBack = (unused: number) => synchronizers.settle(synchronizers.mutate(object, addPermits, unused));
    await new Promise<void>((resolve, reject) => {
      const caller = new PermitWaiter<void>(object, wanted, terms, context.runtime, resolve, reject);
      synchronizers.enter('permits', object, caller, () => new CountedPermits(synchronizers.backend, object, giveBack));
    });
  }

  private count(method: string, permits: number): number {
    return toCount(permits, `${method} of ${this.object.what}: permits`);
  }
}
