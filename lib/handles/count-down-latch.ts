import { printsAs } from '../backends/prints-as.js';
import type { LockEngine } from '../engine/lock-engine.js';
import type { Synchronizer } from '../engine/synchronizers/synchronizer.js';
import { countDown, deleteLatch, trySetCount } from '../engine/synchronizers/synchronizer-changes.js';
import { type Duration, FOREVER } from '../engine/terms/duration.js';
import { falseWhenBusy } from '../engine/wait/null-when-busy.js';
import { toCount } from './to-count.js';
import { toWaitTerms, type WaitOptions } from './wait-options.js';

/**
 * Lets any number of callers, in any process, wait until something has been done a given number of times. It is
 * Redisson's RCountDownLatch, method by method, on the same Redis layout.
 *
 * ```ts
 * const imported = locks.getCountDownLatch('import:2024-06');
 * await imported.trySetCount(parts.length);
 * // each worker, after its part:
 * await imported.countDown();
 * // a caller that needs all parts:
 * await imported.await('10m');
 * ```
 *
 * A latch without a count is open. At zero the count is deleted, and the latch can be given a new one. Callers that
 * waited for the old count continue, unless a new count is set before they are notified. Errors are the same as for
 * {@link Semaphore}.
 *
 * @throws LockUnavailableError from every method when the backend gives no answer
 * @throws LockKeyError from every method when something else is stored under the name
 * @throws LockConfigurationError from every method for an invalid argument
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
    this.object = engine.synchronizers.named(name, 'latch', 'getCountDownLatch');
  }

  /** Sets the count, at least 1. @returns false when the latch already has a count */
  async trySetCount(count: number): Promise<boolean> {
    const checked = toCount(count, `trySetCount() of ${this.object.what}: count`, 1);
    return this.engine.synchronizers.change(this.object, trySetCount, checked);
  }

  /**
   * Lowers the count by one. At zero the latch opens, and all waiting callers continue. An open latch does not change.
   */
  async countDown(): Promise<void> {
    await this.engine.synchronizers.change(this.object, countDown, 1);
  }

  /** The count; 0 for an open latch. */
  async getCount(): Promise<number> {
    return this.engine.synchronizers.ask(this.object, (backend, key) => backend.getCount(key));
  }

  /**
   * Waits until the latch is open.
   *
   * @param timeout how long to wait. Default: forever
   * @returns false when the latch was not open within `timeout`
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   */
  async await(timeout?: Duration, options?: WaitOptions): Promise<boolean> {
    const { synchronizers, waitDefaults } = this.engine;
    const terms = toWaitTerms(
      timeout,
      { ...waitDefaults, waitTime: FOREVER },
      options,
      `await() of ${this.object.what}`,
    );
    return falseWhenBusy(synchronizers.awaitLatch(this.object, terms));
  }

  /** Deletes the count, which opens the latch: all waiting callers continue. @returns whether there was a count */
  async delete(): Promise<boolean> {
    return this.engine.synchronizers.change(this.object, deleteLatch, undefined);
  }
}

printsAs(CountDownLatch, ({ name }) => ({ name }));
