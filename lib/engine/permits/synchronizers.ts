import type { SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import { LockConfigurationError } from '../errors.js';
import { toLockName } from '../terms/lock-name.js';
import type { WaitTerms } from '../waiting/caller.js';
import { CountedPermits } from './counted-permits.js';
import { LeasedPermits, type LeasedPermitTerms, LeasedPermitWaiter } from './leased-permits.js';
import { MutationQueues } from './mutation-queues.js';
import { addPermits, giveLeasedPermits, type Mutation } from './mutations.js';
import { OpenLatch } from './open-latch.js';
import { failedError } from './permit-errors.js';
import { PermitQueues } from './permit-queues.js';
import { PermitWaiter } from './permit-waiter.js';
import { PermitWatchdog } from './permit-watchdog.js';
import { RequestIds } from './request-ids.js';
import type { Synchronizer } from './synchronizer.js';

/** What semaphores and latches need of the service that they belong to. */
export interface SynchronizerHost {
  /** @throws LockKeyError when the prefix makes the name too long */
  keyOf(name: string, what?: string): string;

  /**
   * Whether the caller runs in a live lock scope of the service.
   *
   * @throws LockAbortedError for a caller that may not start waiting any more, because of shutdown
   */
  admit(what: string, name: string): boolean;
}

/**
 * The semaphores and latches of one service: which callers wait, which changes are under way, and which permits are renewed. It keeps no
 * state for objects that nobody uses.
 */
export class Synchronizers {
  readonly permitWatchdog: PermitWatchdog;
  private readonly queues: PermitQueues;
  private readonly mutations: MutationQueues;

  /**
   * @param watchdogTimeout the lease of permits without a leaseTime, in milliseconds
   * @param onIdle called when there is no permit left to renew
   */
  constructor(
    private readonly context: AcquisitionContext,
    private readonly host: SynchronizerHost,
    watchdogTimeout: number,
    onIdle: () => void,
  ) {
    const ids = new RequestIds(context.clientId);
    this.permitWatchdog = new PermitWatchdog(() => this.backend, context, watchdogTimeout, onIdle);
    this.queues = new PermitQueues(context, ids, (what, name) => host.admit(what, name));
    this.mutations = new MutationQueues(context.runtime, ids);
  }

  /** What is waited for, changed and renewed, in numbers. */
  activity(): { readonly permitQueues: number; readonly mutations: number; readonly renewedPermits: number } {
    const { queues, mutations, permitWatchdog } = this;
    return { permitQueues: queues.size, mutations: mutations.size, renewedPermits: permitWatchdog.size };
  }

  /**
   * @param kind `semaphore`
   * @param method what errors call the call: `getSemaphore()`
   * @throws LockKeyError for a bad name, LockConfigurationError when the backend has no semaphores and latches
   */
  named(name: string, kind: string, method: string): Synchronizer {
    const key = this.host.keyOf(toLockName(name, method), method);
    void this.backend;
    return { name, key, what: `the ${kind} '${name}'` };
  }

  /** Waits for permits that are only counted. */
  takePermits(semaphore: Synchronizer, permits: number, terms: WaitTerms): Promise<void> {
    const giveBack = (unused: number) => this.inBackground(this.mutate(semaphore, addPermits, unused));
    return new Promise((resolve, reject) => {
      const waiter = new PermitWaiter<void>(semaphore, permits, terms, this.context.runtime, resolve, reject);
      const newSource = () => new CountedPermits(this.backend, semaphore, giveBack);
      this.queues.enqueue('permits', semaphore.key, waiter, newSource);
    });
  }

  /** Waits for permits with ids, and resolves to the ids. */
  takeLeasedPermits(semaphore: Synchronizer, permits: number, terms: LeasedPermitTerms): Promise<readonly string[]> {
    const giveBack = (unused: readonly string[]) =>
      this.inBackground(this.mutate(semaphore, giveLeasedPermits, unused));
    return new Promise((resolve, reject) => {
      const waiter = new LeasedPermitWaiter(semaphore, permits, terms, this.context.runtime, resolve, reject);
      const newSource = () => new LeasedPermits(this.backend, this.context, this.permitWatchdog, semaphore, giveBack);
      this.queues.enqueue('leased-permits', semaphore.key, waiter, newSource);
    });
  }

  /** Waits until a latch is open. */
  awaitLatch(latch: Synchronizer, terms: WaitTerms): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter = new PermitWaiter<void>(latch, 0, terms, this.context.runtime, resolve, reject);
      this.queues.enqueue('latch', latch.key, waiter, () => new OpenLatch(this.backend, latch));
    });
  }

  /** Changes an object. Changes of one object are sent one after the other; an outage is waited out for a minute. */
  mutate<Item, Reply>(object: Synchronizer, mutation: Mutation<Item, Reply>, item: Item): Promise<Reply> {
    return this.explained(object, this.mutations.apply(this.backend, object.key, mutation, item));
  }

  /** Asks about an object without changing it. */
  ask<T>(object: Synchronizer, query: (backend: SynchronizerBackend, key: string) => Promise<T>): Promise<T> {
    return this.explained(object, query(this.backend, object.key));
  }

  /** Shutdown: rejects all waiters, except those in a lock scope. */
  rejectWaiters(): void {
    this.queues.rejectWaiters();
  }

  /** Lets end what is under way. Permits that are still held expire with their leases: their holders may still be at work. */
  async close(): Promise<void> {
    for (const { semaphore, count } of this.permitWatchdog.close())
      this.context.events.logger.warn(
        `Shutdown: ${count} permits of ${semaphore.what} are still held; they are no longer renewed and expire with their leases`,
      );
    this.mutations.stopRetrying();
    await this.queues.close();
    await this.mutations.idle();
  }

  /** Rejects every change that has no answer yet. */
  abandon(): void {
    this.mutations.abandon();
  }

  /** @throws LockConfigurationError when the backend has none */
  private get backend(): SynchronizerBackend {
    const { synchronizers, description } = this.context.backend;
    if (synchronizers !== undefined) return synchronizers;
    throw new LockConfigurationError(
      `${description} does not support semaphores and latches: use a service with a single connection for them`,
    );
  }

  /** The same reply, with the errors of this library. */
  private async explained<T>(object: Synchronizer, reply: Promise<T>): Promise<T> {
    try {
      return await reply;
    } catch (error) {
      throw failedError(object, this.context.backend, error as Error);
    }
  }

  /** Nobody waits for this change: a failure is emitted as an event. */
  private inBackground(change: Promise<unknown>): void {
    change.catch((error: Error) => this.context.events.emit('error', error));
  }
}
