import { printsAs } from '../backends/prints-as.js';
import type { LockEngine } from '../engine/lock-engine.js';
import type { Synchronizer } from '../engine/synchronizers/synchronizer.js';
import {
  addCountedPermits,
  addPermitsIfExists,
  drainPermits,
  releasePermits,
  trySetCountedPermits,
} from '../engine/synchronizers/synchronizer-changes.js';
import type { Duration } from '../engine/terms/duration.js';
import { falseWhenBusy } from '../engine/wait/null-when-busy.js';
import { initialPermits, type SemaphoreOptions } from './semaphore-options.js';
import { toCount } from './to-count.js';
import { toWaitTerms, toWithPermit, type WaitOptions, type WithPermitOptions } from './wait-options.js';

/**
 * A number of permits shared by all processes. A caller takes permits when it acquires, and adds them when it releases.
 * A caller that finds too few permits waits. It is Redisson's RSemaphore, method by method, on the same Redis layout.
 *
 * ```ts
 * const mails = locks.getSemaphore('mail-connections', { permits: 10 });
 * await mails.withPermit(() => send(mail));
 * ```
 *
 * Permits have no owner. Any process may release them, even more than were acquired, and the permits of a dead process
 * are lost until somebody adds new ones. If that matters, use {@link PermitExpirableSemaphore}. Callers of one process
 * are served in the order of their calls; between processes there is no order. A semaphore whose permits were never set
 * has none. When a caller uses such a semaphore, a warning is logged, once per name.
 *
 * During an outage, calls that change the permits are retried for up to a minute. Each change is made once, even if its
 * answer was lost and the request was sent again. `acquire()` waits for `outageTimeout`. If an answer is lost and the
 * outage lasts for over five minutes, the permits that the request took can be lost. Handles are cheap and may be
 * shared.
 *
 * @throws LockUnavailableError from every method when the backend gives no answer
 * @throws LockKeyError from every method when something else is stored under the name
 * @throws LockConfigurationError from every method for an invalid argument
 * @publicApi
 */
export class Semaphore {
  private readonly object: Synchronizer;
  /** Whether the semaphore exists, or this handle does not have to create it. */
  private isSetUp: boolean;

  /** @internal */
  constructor(
    private readonly engine: LockEngine,
    /** The semaphore's name, without the key prefix. */
    readonly name: string,
    options?: SemaphoreOptions,
  ) {
    const initial = initialPermits(options, 'getSemaphore()');
    this.object = engine.synchronizers.named(name, 'semaphore', 'getSemaphore', initial);
    this.isSetUp = initial === undefined;
  }

  /**
   * Waits for permits. It gets all of them at one moment or none: while callers of other processes keep taking single
   * permits, a caller that wants several may wait forever. Give it a `waitTime`: see {@link tryAcquire}.
   *
   * @param permits how many, from 0. Default: 1
   * @throws LockBusyError when the module's `waitTime` ends (by default there is no limit)
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   */
  async acquire(permits = 1, options?: WaitOptions): Promise<void> {
    await this.take('acquire()', permits, undefined, options);
  }

  /**
   * Waits for permits for at most `waitTime`. By default it tries once, without queueing behind waiting callers.
   *
   * @returns true when all these permits were acquired; false when none was
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   */
  async tryAcquire(permits = 1, waitTime: Duration = 0, options?: WaitOptions): Promise<boolean> {
    return falseWhenBusy(this.take('tryAcquire()', permits, waitTime, options));
  }

  /**
   * Waits for a permit, runs `body` and gives the permit back, whatever became of `body`. If `body` fails, its error is
   * thrown. If the permit cannot be given back, the service emits `error`. Shutdown waits for `body`.
   *
   * ```ts
   * await mails.withPermit({ waitTime: '5s' }, () => send(mail));
   * ```
   *
   * @throws LockBusyError when `waitTime` ends
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   */
  withPermit<T>(body: () => T | Promise<T>): Promise<T>;
  withPermit<T>(options: WithPermitOptions, body: () => T | Promise<T>): Promise<T>;
  async withPermit<T>(
    optionsOrBody: WithPermitOptions | (() => T | Promise<T>),
    onlyBody?: () => T | Promise<T>,
  ): Promise<T> {
    const what = `withPermit() of ${this.object.what}`;
    const { options, body } = toWithPermit(optionsOrBody, onlyBody, what);
    await this.take('withPermit()', 1, options.waitTime, options);
    return this.engine.synchronizers.runWithPermits(this.object, 1, body);
  }

  /** Adds permits, by default one, whether or not they were acquired before, and wakes waiters. */
  async release(permits = 1): Promise<void> {
    const amount = this.count('release()', permits);
    if (amount === 0) return;
    await this.setUp();
    await this.engine.synchronizers.change(this.object, releasePermits, amount);
  }

  /** Like {@link release}, but only if the semaphore's permits were set. @returns whether they were */
  async releaseIfExists(permits = 1): Promise<boolean> {
    const amount = this.count('releaseIfExists()', permits);
    if (amount === 0) return false;
    await this.setUp();
    return this.engine.synchronizers.change(this.object, addPermitsIfExists, amount);
  }

  /** How many permits can be acquired now. Negative when more permits were taken away than were available. */
  async availablePermits(): Promise<number> {
    await this.setUp();
    return this.engine.synchronizers.ask(this.object, (backend, key) => backend.availablePermits(key));
  }

  /** Takes all available permits. @returns how many there were */
  async drainPermits(): Promise<number> {
    await this.setUp();
    return this.engine.synchronizers.change(this.object, drainPermits, undefined);
  }

  /** Changes the number of permits by a positive or negative amount. While it is below zero, callers wait. */
  async addPermits(permits: number): Promise<void> {
    const amount = toCount(permits, `addPermits() of ${this.object.what}: permits`, -(2 ** 31));
    if (amount === 0) return;
    await this.setUp();
    await this.engine.synchronizers.change(this.object, addCountedPermits, amount);
  }

  /** Sets the number of permits, once for all processes. @returns false when it was set before */
  async trySetPermits(permits: number): Promise<boolean> {
    return this.engine.synchronizers.change(this.object, trySetCountedPermits, this.count('trySetPermits()', permits));
  }

  private async take(
    method: string,
    permits: number,
    waitTime: Duration | undefined,
    options: WaitOptions | undefined,
  ): Promise<void> {
    const { synchronizers, waitDefaults } = this.engine;
    const wanted = this.count(method, permits);
    const terms = toWaitTerms(waitTime, waitDefaults, options, `${method} of ${this.object.what}`);
    if (wanted === 0) return;
    // This request also creates the semaphore.
    await synchronizers.takePermits(this.object, wanted, terms);
    this.isSetUp = true;
  }

  private async setUp(): Promise<void> {
    if (this.isSetUp) return;
    await this.engine.synchronizers.change(this.object, trySetCountedPermits, this.object.initial as number);
    this.isSetUp = true;
  }

  private count(method: string, permits: number): number {
    return toCount(permits, `${method} of ${this.object.what}: permits`);
  }
}

printsAs(Semaphore, ({ name }) => ({ name }));
