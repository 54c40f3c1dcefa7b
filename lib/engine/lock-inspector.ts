import {
  type BackendError,
  type ExpectedHolders,
  type LockState,
  type ResultState,
  withReason,
} from '../backends/lock-backend.js';
import type { SynchronizerState } from '../backends/synchronizer-state.js';
import type { HolderClient } from './describe-holder.js';
import { LockKeyError, LockUnavailableError } from './errors.js';
import type { Services } from './services.js';
import { toKey, toLockName } from './terms/lock-name.js';

/** Reads the state of locks, and frees them by force. */
export class LockInspector {
  constructor(
    private readonly services: Services,
    private readonly keyPrefix: string,
  ) {}

  inspect(name: string): Promise<LockState> {
    return this.ask(name, (key) => this.services.backend.inspect(key));
  }

  /** The state of a semaphore or latch; undefined if there is none. */
  inspectSynchronizer(name: string): Promise<SynchronizerState | undefined> {
    return this.ask(name, async (key) => this.services.backend.synchronizers?.inspect?.(key));
  }

  /** The stored result of a single flight; undefined if there is none. */
  inspectResult(name: string): Promise<ResultState | undefined> {
    return this.ask(name, async (key) => this.services.backend.flights?.inspect(key));
  }

  /** @returns whether there was a result */
  forgetResult(name: string): Promise<boolean> {
    return this.ask(name, async (key) => (await this.services.backend.flights?.forget(key)) ?? false);
  }

  /**
   * Frees a lock, whoever holds it, or only from the expected owners. A lease of this service is lost at once; leases
   * of other services are lost when those are notified.
   *
   * @returns the removed owners
   */
  async forceRelease(name: string, expected?: ExpectedHolders): Promise<readonly string[]> {
    const owners = await this.ask(name, (key) => this.services.backend.forceRelease(key, expected));
    const { forcedReleases } = this.services;
    forcedReleases.removed({ key: toKey(this.keyPrefix, name, 'The lock'), owners });
    for (const queue of this.services.work.queues.named(name)) queue.removed?.(owners);
    return owners;
  }

  /** The holder with this owner id, if it belongs to this service. */
  ownHolder(key: string, owner: string): HolderClient | undefined {
    const held = this.services.heldLocks(key).find((lock) => lock.owner === owner);
    return held && this.services.holders.own(held);
  }

  /**
   * Asks the backend a question that does not concern a single lock.
   *
   * @param what the name of the call in errors: `list()`
   * @throws LockUnavailableError when there is no answer
   */
  async askBackend<T>(what: string, question: () => Promise<T>): Promise<T> {
    try {
      return await question();
    } catch (error) {
      const cause = withReason(this.services.backend, error as BackendError);
      throw new LockUnavailableError(`${what}: the backend gave no answer: ${cause.message}`, '', { cause });
    }
  }

  /** @throws the library's own errors instead of the backend's */
  private async ask<T>(name: string, question: (key: string) => Promise<T>): Promise<T> {
    const key = toKey(this.keyPrefix, toLockName(name, 'The lock'), 'The lock');
    // The answer must take into account the releases that callers did not wait for.
    await this.services.unsettledReleases.answersFor(key);
    try {
      return await question(key);
    } catch (error) {
      const cause = withReason(this.services.backend, error as BackendError);
      if (cause.kind === 'key')
        throw new LockKeyError(`The lock '${name}' cannot be used: ${cause.message}`, name, { cause });
      const message = `The backend gave no answer about the lock '${name}': ${cause.message}`;
      throw new LockUnavailableError(message, name, { cause });
    }
  }
}
