import { type BackendError, type ExpectedHolders, type LockState, withReason } from '../backends/lock-backend.js';
import type { AcquisitionContext } from './acquisition-context.js';
import type { HolderClient } from './clients/holder-client.js';
import { LockKeyError, LockUnavailableError } from './errors.js';
import type { ForcedReleases } from './lease/forced-releases.js';
import type { HeldLock } from './lease/held-lock.js';
import type { QueueTable } from './queue/queue-table.js';
import { toKey, toLockName } from './terms/lock-name.js';

/** Looks at locks from outside, and frees them by force. */
export class LockInspector {
  constructor(
    private readonly context: AcquisitionContext,
    private readonly queues: QueueTable,
    private readonly forcedReleases: ForcedReleases,
    private readonly keyPrefix: string,
  ) {}

  inspect(name: string): Promise<LockState> {
    return this.ask(name, (key) => this.context.backend.inspect(key));
  }

  /** @returns the owners that it was taken from */
  async forceRelease(name: string, expected?: ExpectedHolders): Promise<readonly string[]> {
    const owners = await this.ask(name, (key) => this.context.backend.forceRelease(key, expected));
    this.forcedReleases.removed({ key: toKey(this.keyPrefix, name, 'The lock'), owners });
    for (const queue of this.queues.named(name)) queue.removed(owners);
    return owners;
  }

  /** The locks that this process holds: under one key, or all of them. */
  heldLocks(key?: string): readonly HeldLock[] {
    const { keyPrefix, queues } = this;
    if (key === undefined) return queues.values().flatMap(({ holders }) => holders);
    if (!key.startsWith(keyPrefix)) return [];
    return queues.named(key.slice(keyPrefix.length)).flatMap(({ holders }) => holders);
  }

  /** Who an owner is that is one of this service. */
  ownHolder(key: string, owner: string): HolderClient | undefined {
    if (!owner.startsWith(`${this.context.clientId}:`)) return undefined;
    const held = this.heldLocks(key).find((lock) => lock.owner === owner);
    return held && this.context.holders.own(held);
  }

  /**
   * Asks the backend something that is not about one lock.
   *
   * @param what how errors name the call: `list()`
   * @throws LockUnavailableError when there is no answer
   */
  async askBackend<T>(what: string, question: () => Promise<T>): Promise<T> {
    try {
      return await question();
    } catch (error) {
      const cause = withReason(this.context.backend, error as BackendError);
      throw new LockUnavailableError(`${what}: the backend gave no answer: ${cause.message}`, '', { cause });
    }
  }

  /** @throws the errors of this library in place of the backend's */
  private async ask<T>(name: string, question: (key: string) => Promise<T>): Promise<T> {
    const key = toKey(this.keyPrefix, toLockName(name, 'The lock'), 'The lock');
    try {
      return await question(key);
    } catch (error) {
      const cause = withReason(this.context.backend, error as BackendError);
      if (cause.kind === 'key')
        throw new LockKeyError(`The lock '${name}' cannot be used: ${cause.message}`, name, { cause });
      const message = `The backend gave no answer about the lock '${name}': ${cause.message}`;
      throw new LockUnavailableError(message, name, { cause });
    }
  }
}
