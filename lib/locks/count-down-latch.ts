import { type Duration, FOREVER } from '../engine/duration.js';
import { LockBusyError } from '../engine/errors.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { LatchSource } from '../engine/permits/latch-source.js';
import { countDown, deleteLatch, trySetCount } from '../engine/permits/mutations.js';
import { PermitWaiter, type Synchronizer } from '../engine/permits/permit-request.js';
import { toCount, toWaitTerms, type WaitOptions } from './wait-options.js';

/**
 * Lets any number of callers, in any process, wait until something was done a number of times. It is Redisson's RCountDownLatch,
 * method by method, on the same Redis layout.
 *
 * ```ts
 * const imported = locks.getCountDownLatch('import:2024-06');
 * await imported.trySetCount(parts.length);
 * // each worker, after its part:
 * await imported.countDown();
 * // whoever needs them all:
 * await imported.await('10m');
 * ```
 *
 * A latch without a count is open. At zero it is gone, and can be given a new count: who waited on the old one is not held up by it
 * unless that comes before they were told. Errors are those of {@link Semaphore}.
 *
 * @publicApi
 */
export class CountDownLatch {
  private readonly object: Synchronizer;

  /** @internal */
  constructor(
    private readonly engine: LockEngine,
    /** The latch's name, without the key prefix. */
    readonly name: string,
  ) {
    this.object = engine.synchronizers.named(name, 'latch', 'getCountDownLatch()');
  }

  /** Gives the latch its count, at least 1. @returns false when it has one */
  async trySetCount(count: number): Promise<boolean> {
    const checked = toCount(count, `trySetCount() of ${this.object.what}: count`, 1);
    return this.engine.synchronizers.mutate(this.object, trySetCount, checked);
  }

  /** Lowers the count by one. At zero everybody goes on who waits. Nothing happens to a latch without a count. */
  async countDown(): Promise<void> {
    await this.engine.synchronizers.mutate(this.object, countDown, 1);
  }

  /** The count; 0 for an open latch. */
  async getCount(): Promise<number> {
    const { synchronizers } = this.engine;
    return synchronizers.answer(this.object, synchronizers.backend.getCount(this.object.key));
  }

  /**
   * Waits until the latch is open.
   *
   * @param timeout absent: for ever
   * @returns false when the time was over first
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   */
  async await(timeout?: Duration, options?: WaitOptions): Promise<boolean> {
    const { engine, object } = this;
    const { synchronizers, context } = engine;
    const terms = toWaitTerms(timeout, FOREVER, options, `await() of ${object.what}`);
    try {
      await new Promise<void>((resolve, reject) => {
        const caller = new PermitWaiter<void>(object, 0, terms, context.runtime, resolve, reject);
        synchronizers.enter('latch', object, caller, () => new LatchSource(synchronizers.backend, object));
      });
      return true;
    } catch (error) {
      if (error instanceof LockBusyError) return false;
      throw error;
    }
  }

  /** Takes the count away: everybody goes on who waits. @returns whether there was one */
  async delete(): Promise<boolean> {
    return this.engine.synchronizers.mutate(this.object, deleteLatch, undefined);
  }
}
