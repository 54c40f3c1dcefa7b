import { type Duration, toLeaseTime } from '../engine/duration.js';
import { LockBusyError, LockConfigurationError, LockNotOwnedError } from '../engine/errors.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { addPermits, giveLeasedPermits, setPermits, trySetPermits } from '../engine/permits/mutations.js';
import type { Synchronizer } from '../engine/permits/permit-request.js';
import { LeasedPermits, LeasedPermitWaiter, MOST_IDS } from '../engine/permits/permit-source.js';
import { toCount, toWaitTerms, type WaitOptions } from './wait-options.js';

/**
 * A semaphore whose permits have an id and a lease each, so that those of a process that died come back. It is Redisson's
 * RPermitExpirableSemaphore, method by method, on the same Redis layout: an id acquired here can be released by a Java process.
 *
 * ```ts
 * const licences = locks.getPermitExpirableSemaphore('cad-licences');
 * await licences.trySetPermits(5);
 * const id = await licences.acquire();
 * try {
 *   await render(drawing);
 * } finally {
 *   await licences.release(id);
 * }
 * ```
 *
 * A permit acquired with a `leaseTime` comes back when that has passed, released or not. One acquired without is renewed for as long
 * as this process lives and has not released it (Redisson's then has no lease at all, and is lost with its process): it comes back
 * within `watchdogTimeout` of the process's death, and at shutdown. If it is lost all the same (deleted, or Redis was away for too
 * long), the service emits `lost`, with the id as the owner.
 *
 * Whoever knows an id may release it. Callers of one process are served in the order of their calls; between processes there is no
 * order. Errors are those of {@link Semaphore}.
 *
 * @publicApi
 */
export class PermitExpirableSemaphore {
  private readonly object: Synchronizer;

  /** @internal */
  constructor(
    private readonly engine: LockEngine,
    /** The semaphore's name, without the key prefix. */
    readonly name: string,
  ) {
    this.object = engine.synchronizers.named(name, 'semaphore', 'getPermitExpirableSemaphore()');
  }

  /**
   * Waits for a permit.
   *
   * @param leaseTime after which it comes back by itself, from 100 ms to 10 years; absent: it is kept until released
   * @returns its id: 32 hexadecimal digits
   * @throws LockBusyError when the module's `waitTime` is over (there is none by default), LockAbortedError when `signal` aborts or
   *   the service shuts down
   */
  async acquire(leaseTime?: Duration, options?: WaitOptions): Promise<string> {
    const [id] = await this.take('acquire()', 1, undefined, leaseTime, options);
    return id;
  }

  /** As {@link acquire}, for up to 1,000 permits: all at once. */
  async acquireMany(permits: number, leaseTime?: Duration, options?: WaitOptions): Promise<readonly string[]> {
    return this.take('acquireMany()', permits, undefined, leaseTime, options);
  }

  /** As {@link acquire}, for at most `waitTime` (default 0: once, past those who wait in line). @returns null when there was none */
  async tryAcquire(waitTime: Duration = 0, leaseTime?: Duration, options?: WaitOptions): Promise<string | null> {
    const ids = await orNull(this.take('tryAcquire()', 1, waitTime, leaseTime, options));
    return ids === null ? null : ids[0];
  }

  /** As {@link tryAcquire}, for up to 1,000 permits. @returns null when there were too few: then none is taken */
  async tryAcquireMany(
    permits: number,
    waitTime: Duration = 0,
    leaseTime?: Duration,
    options?: WaitOptions,
  ): Promise<readonly string[] | null> {
    return orNull(this.take('tryAcquireMany()', permits, waitTime, leaseTime, options));
  }

  /**
   * Gives a permit back, or several, and wakes who waits.
   *
   * @throws LockNotOwnedError for an id whose lease has ended, that was released before, or never given; the others are released
   */
  async release(id: string | readonly string[]): Promise<void> {
    const ids = this.ids('release()', id);
    const given = await this.give(ids);
    const strange = ids.filter((_, index) => !given[index]);
    if (strange.length === 0) return;
    throw new LockNotOwnedError(
      `release() of ${this.object.what}: ${strange.join(', ')} is not held: its lease has ended, it was released, or never given`,
      this.name,
    );
  }

  /** As {@link release}. @returns whether the permit was held; of several, how many were */
  async tryRelease(id: string): Promise<boolean>;
  async tryRelease(ids: readonly string[]): Promise<number>;
  async tryRelease(id: string | readonly string[]): Promise<boolean | number> {
    const given = await this.give(this.ids('tryRelease()', id));
    return typeof id === 'string' ? given[0] : given.filter(Boolean).length;
  }

  /**
   * Lets a permit come back when `leaseTime` has passed from now on; it is not renewed any more.
   *
   * @returns false when it is not held
   */
  async updateLeaseTime(id: string, leaseTime: Duration): Promise<boolean> {
    const { synchronizers } = this.engine;
    const [permit] = this.ids('updateLeaseTime()', id);
    const lease = toLeaseTime(leaseTime, `updateLeaseTime() of ${this.object.what}: leaseTime`);
    const kept = synchronizers.permitWatchdog.drop(this.object, permit);
    try {
      const [held] = await synchronizers.answer(
        this.object,
        synchronizers.backend.renewPermits(this.object.key, [permit], lease),
      );
      return held;
    } catch (error) {
      if (kept !== undefined) synchronizers.permitWatchdog.keep(this.object, [permit], kept);
      throw error;
    }
  }

  /** How many can be acquired now. Negative after permits were taken away that are in use. */
  async availablePermits(): Promise<number> {
    return (await this.counts()).available;
  }

  /** How many there are, acquired ones included. */
  async getPermits(): Promise<number> {
    const { available, acquired } = await this.counts();
    return available + acquired;
  }

  /** How many are acquired. */
  async acquiredPermits(): Promise<number> {
    return (await this.counts()).acquired;
  }

  /** Sets how many permits there are, once and for all processes. @returns false when they were set before */
  async trySetPermits(permits: number): Promise<boolean> {
    return this.engine.synchronizers.mutate(this.object, trySetPermits, this.count('trySetPermits()', permits));
  }

  /** Sets how many permits there are, acquired ones included. With fewer than before, callers wait until enough came back. */
  async setPermits(permits: number): Promise<void> {
    await this.engine.synchronizers.mutate(this.object, setPermits, this.count('setPermits()', permits));
  }

  /** Changes how many permits there are by a positive or negative number: below zero, callers wait until it is positive again. */
  async addPermits(permits: number): Promise<void> {
    const amount = this.count('addPermits()', permits, -(2 ** 31));
    if (amount !== 0) await this.engine.synchronizers.mutate(this.object, addPermits, amount);
  }

  private async take(
    method: string,
    permits: number,
    waitTime: Duration | undefined,
    leaseTime: Duration | undefined,
    options: WaitOptions | undefined,
  ): Promise<readonly string[]> {
    const { engine, object } = this;
    const { synchronizers, context, settings } = engine;
    const what = `${method} of ${object.what}`;
    const wanted = this.count(method, permits, 0, MOST_IDS);
    const terms = {
      ...toWaitTerms(waitTime, settings.waitTime, options, what),
      leaseTime: leaseTime === undefined ? undefined : toLeaseTime(leaseTime, `${what}: leaseTime`),
    };
    if (wanted === 0) return [];
    const giveBack = (unused: readonly string[]) =>
      synchronizers.settle(synchronizers.mutate(object, giveLeasedPermits, unused));
    return new Promise((resolve, reject) => {
      const caller = new LeasedPermitWaiter(object, wanted, terms, context.runtime, resolve, reject);
      synchronizers.enter(
        'ids',
        object,
        caller,
        () => new LeasedPermits(synchronizers.backend, context, synchronizers.permitWatchdog, object, giveBack),
      );
    });
  }

  private give(ids: readonly string[]): Promise<readonly boolean[]> {
    const { synchronizers } = this.engine;
    for (const id of ids) synchronizers.permitWatchdog.drop(this.object, id);
    return synchronizers.mutate(this.object, giveLeasedPermits, ids);
  }

  private counts() {
    const { synchronizers } = this.engine;
    return synchronizers.answer(this.object, synchronizers.backend.countPermits(this.object.key));
  }

  private ids(method: string, id: string | readonly string[]): readonly string[] {
    return [id].flat().map((one) => {
      if (typeof one === 'string' && /^[0-9a-f]{32}$/i.test(one)) return one.toLowerCase();
      throw new LockConfigurationError(
        `${method} of ${this.object.what}: ${String(one).slice(0, 40)} is no permit id: those are 32 hexadecimal digits`,
      );
    });
  }

  private count(method: string, permits: number, least?: number, most?: number): number {
    return toCount(permits, `${method} of ${this.object.what}: permits`, least, most);
  }
}

async function orNull<T>(taken: Promise<T>): Promise<T | null> {
  try {
    return await taken;
  } catch (error) {
    if (error instanceof LockBusyError) return null;
    throw error;
  }
}
