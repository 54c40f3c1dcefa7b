import { printsAs } from '../backends/prints-as.js';
import type { PermitCounts } from '../backends/synchronizer-backend.js';
import { LockConfigurationError, LockNotOwnedError } from '../engine/errors.js';
import type { LockEngine } from '../engine/lock-engine.js';
import type { PermitLease } from '../engine/synchronizers/permit-lease.js';
import { MAX_LEASED_PERMITS } from '../engine/synchronizers/permit-sources.js';
import type { Synchronizer } from '../engine/synchronizers/synchronizer.js';
import {
  addLeasedPermits,
  giveLeasedPermits,
  setPermits,
  trySetLeasedPermits,
} from '../engine/synchronizers/synchronizer-changes.js';
import { type Duration, toFixedLease, toLeaseTime } from '../engine/terms/duration.js';
import { nullWhenBusy } from '../engine/wait/null-when-busy.js';
import { initialPermits, type SemaphoreOptions } from './semaphore-options.js';
import { toCount } from './to-count.js';
import { toWaitTerms, toWithPermit, type WaitOptions, type WithPermitOptions } from './wait-options.js';

/**
 * A semaphore whose permits have an id and a lease each, so that the permits of a dead process become available again.
 * It is Redisson's RPermitExpirableSemaphore, method by method, on the same Redis layout: a Java process can release an
 * id acquired here.
 *
 * ```ts
 * const licences = locks.getPermitExpirableSemaphore('cad-licences', { permits: 5 });
 * await licences.withPermit((permit) => render(drawing, permit.signal));
 * ```
 *
 * A permit acquired with a `leaseTime` becomes available again after that time, whether or not it was released. A
 * permit acquired without one is renewed until it is released; if its process dies or shuts down, the permit becomes
 * available again within `watchdogTimeout`. (In Redisson, such a permit has no lease and is lost with its process.) If
 * a renewed permit is lost because it was deleted or Redis did not answer for too long, the service emits `lost` with
 * the id as the owner.
 *
 * Anybody who knows the id of a permit may release it. Callers of one process are served in the order of their calls;
 * between processes there is no order. An outage is handled as by {@link Semaphore}.
 *
 * @throws LockUnavailableError from every method when the backend gives no answer
 * @throws LockKeyError from every method when something else is stored under the name
 * @throws LockConfigurationError from every method for an invalid argument
 * @publicApi
 */
export class PermitExpirableSemaphore {
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
    const initial = initialPermits(options, 'getPermitExpirableSemaphore()');
    this.object = engine.synchronizers.named(name, 'semaphore', 'getPermitExpirableSemaphore', initial);
    this.isSetUp = initial === undefined;
  }

  /**
   * Waits for a permit.
   *
   * @param leaseTime the longest time to hold the permit, from 100 ms to 10 years. Default: it is renewed until it is
   *   released
   * @returns its id: 32 hexadecimal digits
   * @throws LockBusyError when the module's `waitTime` ends (by default there is no limit)
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   */
  async acquire(leaseTime?: Duration, options?: WaitOptions): Promise<string> {
    const [id] = await this.take('acquire()', 1, undefined, leaseTime, options);
    return id;
  }

  /**
   * Like {@link acquire}, for up to 1,000 permits at once. It may wait forever while callers of other processes keep
   * taking single permits: see {@link tryAcquireMany}.
   */
  async acquireMany(permits: number, leaseTime?: Duration, options?: WaitOptions): Promise<readonly string[]> {
    return this.take('acquireMany()', permits, undefined, leaseTime, options);
  }

  /**
   * Like {@link acquire}, but waits for at most `waitTime`. By default it tries once, without queueing behind waiting
   * callers.
   *
   * @returns null when no permit was available in time
   */
  async tryAcquire(waitTime: Duration = 0, leaseTime?: Duration, options?: WaitOptions): Promise<string | null> {
    const ids = await nullWhenBusy(this.take('tryAcquire()', 1, waitTime, leaseTime, options));
    return ids === null ? null : ids[0];
  }

  /**
   * Like {@link tryAcquire}, for up to 1,000 permits at once.
   *
   * @returns null when there were too few; none is acquired then
   */
  async tryAcquireMany(
    permits: number,
    waitTime: Duration = 0,
    leaseTime?: Duration,
    options?: WaitOptions,
  ): Promise<readonly string[] | null> {
    return nullWhenBusy(this.take('tryAcquireMany()', permits, waitTime, leaseTime, options));
  }

  /**
   * Waits for a permit, runs `body` and releases the permit, whatever became of `body`. The permit is renewed while
   * `body` runs, and its `signal` aborts when it is lost. If `body` fails, its error is thrown. If the permit cannot be
   * released, the service emits `error`, and the permit's lease ends. Shutdown waits for `body`.
   *
   * ```ts
   * await licences.withPermit({ waitTime: '5s' }, (permit) => render(drawing, permit.signal));
   * ```
   *
   * @throws LockBusyError when `waitTime` ends
   * @throws LockAbortedError when `signal` aborts or the service shuts down
   * @throws LockLostError when `body` has succeeded although the permit was lost. With the module's `onLost: 'warn'`,
   * the loss is only logged
   */
  withPermit<T>(body: (permit: PermitLease) => T | Promise<T>): Promise<T>;
  withPermit<T>(options: WithPermitOptions, body: (permit: PermitLease) => T | Promise<T>): Promise<T>;
  async withPermit<T>(
    optionsOrBody: WithPermitOptions | ((permit: PermitLease) => T | Promise<T>),
    onlyBody?: (permit: PermitLease) => T | Promise<T>,
  ): Promise<T> {
    const { synchronizers, onLost } = this.engine;
    const what = `withPermit() of ${this.object.what}`;
    const { options, body } = toWithPermit(optionsOrBody, onlyBody, what);
    const [id] = await this.take('withPermit()', 1, options.waitTime, undefined, options);
    return synchronizers.runWithLeasedPermit(this.object, id, body, onLost);
  }

  /**
   * Releases one or several permits, and wakes waiters.
   *
   * @throws LockNotOwnedError for an id that is not held, because its lease has ended, or because it was released
   * before or never acquired. The other ids are released
   */
  async release(id: string | readonly string[]): Promise<void> {
    const ids = this.ids('release()', id);
    const given = await this.give(ids);
    const notHeld = ids.filter((_, index) => !given[index]);
    if (notHeld.length === 0) return;
    throw new LockNotOwnedError(
      `release() of ${this.object.what}: ${notHeld.join(', ')} is not held: its lease has ended, or it was released before or never acquired`,
      this.name,
    );
  }

  /** Like {@link release}. @returns whether the permit was held; for several ids, how many were held */
  async tryRelease(id: string): Promise<boolean>;
  async tryRelease(ids: readonly string[]): Promise<number>;
  async tryRelease(id: string | readonly string[]): Promise<boolean | number> {
    const given = await this.give(this.ids('tryRelease()', id));
    return typeof id === 'string' ? given[0] : given.filter(Boolean).length;
  }

  /**
   * Sets the longest time for which a permit is held, from now on. The permit is no longer renewed.
   *
   * @returns false when the permit is not held
   */
  async updateLeaseTime(id: string, leaseTime: Duration): Promise<boolean> {
    const { synchronizers } = this.engine;
    const [permit] = this.ids('updateLeaseTime()', id);
    const lease = toLeaseTime(leaseTime, `updateLeaseTime() of ${this.object.what}: leaseTime`);
    return synchronizers.renewedPermits.replaceRenewal(this.object, permit, async () => {
      const [isHeld] = await synchronizers.ask(this.object, (backend, key) =>
        backend.renewPermits(key, [permit], lease),
      );
      return isHeld;
    });
  }

  /** How many permits can be acquired now. Negative when more permits were taken away than were available. */
  async availablePermits(): Promise<number> {
    return (await this.counts()).available;
  }

  /** The number of permits, including acquired ones. */
  async getPermits(): Promise<number> {
    const { available, acquired } = await this.counts();
    return available + acquired;
  }

  /** The number of acquired permits. */
  async acquiredPermits(): Promise<number> {
    return (await this.counts()).acquired;
  }

  /** Sets the number of permits, once for all processes. @returns false when it was set before */
  async trySetPermits(permits: number): Promise<boolean> {
    return this.engine.synchronizers.change(this.object, trySetLeasedPermits, this.count('trySetPermits()', permits));
  }

  /**
   * Sets the number of permits, including acquired ones. If the number becomes lower, callers wait until enough permits
   * have been released.
   */
  async setPermits(permits: number): Promise<void> {
    await this.engine.synchronizers.change(this.object, setPermits, this.count('setPermits()', permits));
  }

  /** Changes the number of permits by a positive or negative amount. While it is below zero, callers wait. */
  async addPermits(permits: number): Promise<void> {
    const amount = this.count('addPermits()', permits, -(2 ** 31));
    if (amount === 0) return;
    await this.setUp();
    await this.engine.synchronizers.change(this.object, addLeasedPermits, amount);
  }

  private async take(
    method: string,
    permits: number,
    waitTime: Duration | undefined,
    leaseTime: Duration | undefined,
    options: WaitOptions | undefined,
  ): Promise<readonly string[]> {
    const { synchronizers, waitDefaults } = this.engine;
    const what = `${method} of ${this.object.what}`;
    const wanted = this.count(method, permits, 0, MAX_LEASED_PERMITS);
    const terms = {
      ...toWaitTerms(waitTime, waitDefaults, options, what),
      leaseTime: leaseTime === undefined ? undefined : toFixedLease(leaseTime, `${what}: leaseTime`),
    };
    if (wanted === 0) return [];
    // This request also creates the semaphore.
    const ids = await synchronizers.takeLeasedPermits(this.object, wanted, terms);
    this.isSetUp = true;
    return ids;
  }

  private async setUp(): Promise<void> {
    if (this.isSetUp) return;
    await this.engine.synchronizers.change(this.object, trySetLeasedPermits, this.object.initial as number);
    this.isSetUp = true;
  }

  private give(ids: readonly string[]): Promise<readonly boolean[]> {
    const { synchronizers } = this.engine;
    synchronizers.renewedPermits.remove(this.object, ids);
    return synchronizers.change(this.object, giveLeasedPermits, ids);
  }

  private async counts(): Promise<PermitCounts> {
    await this.setUp();
    return this.engine.synchronizers.ask(this.object, (backend, key) => backend.countPermits(key));
  }

  private ids(method: string, id: string | readonly string[]): readonly string[] {
    return [id].flat().map((one) => {
      if (typeof one === 'string' && /^[0-9a-f]{32}$/i.test(one)) return one.toLowerCase();
      throw new LockConfigurationError(
        `${method} of ${this.object.what}: ${String(one).slice(0, 40)} is not a permit id: it must be 32 hexadecimal digits`,
      );
    });
  }

  private count(method: string, permits: number, least?: number, most?: number): number {
    return toCount(permits, `${method} of ${this.object.what}: permits`, least, most);
  }
}

printsAs(PermitExpirableSemaphore, ({ name }) => ({ name }));
