import type { HeldType, LockType } from '../backends/lock-backend.js';
import type { LockLease } from '../engine/lease/lock-lease.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { currentScope, type LockScope, liveFrom } from '../engine/scope/lock-scope.js';
import { acquireThrough, type LeaseRequest, LockHandle } from './lock-handle.js';

/**
 * Redisson's RLock: at most one caller holds it. Code in its scope may lock it again.
 *
 * ```ts
 * const lock = locks.getLock('stock:42');
 * const lease = await lock.lock();
 * try {
 *   await lease.run(() => move(42)); // locks 'stock:42' too: re-entry
 * } finally {
 *   await lease.release();
 * }
 * ```
 *
 * @publicApi
 */
export class ReentrantLock extends LockHandle {
  /** @internal */
  readonly lockId: string;
  /** @internal */
  readonly sortKey: string;
  /** @internal */
  readonly engines: readonly LockEngine[];

  /** @internal */
  constructor(
    /** @internal */
    readonly engine: LockEngine,
    readonly name: string,
    /** @internal */
    readonly type: LockType = 'reentrant',
  ) {
    super();
    const { clientId, backend } = engine.settings;
    this.engines = [engine];
    this.lockId = `${clientId} ${kindOf(type)} ${name}`;
    this.sortKey = `${name}\0${type}\0${backend.description}`;
  }

  /** @internal */
  get commandGroup(): LockHandle['commandGroup'] {
    return this;
  }

  /**
   * Frees the lock, whoever holds it, and wakes its waiters.
   *
   * @returns whether it was held
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for an invalid name
   */
  async forceUnlock(): Promise<boolean> {
    return (await this.engine.inspector.forceRelease(this.name)).length > 0;
  }

  async isLocked(): Promise<boolean> {
    return (await this.engine.inspector.inspect(this.name)).mode !== 'free';
  }

  getHoldCount(): number {
    let count = 0;
    for (let scope = currentScope(); scope !== undefined; scope = liveFrom(scope.parent)) {
      if (this.isHeldIn(scope)) count++;
    }
    return count;
  }

  /**
   * Milliseconds until the holder's lease ends unless renewed; −1 when it has no end, −2 when the lock is free.
   *
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for an invalid name
   */
  async remainTimeToLive(): Promise<number> {
    const { mode, owners } = await this.engine.inspector.inspect(this.name);
    return mode === 'free' ? -2 : Math.max(-1, ...owners.map(({ remaining }) => remaining));
  }

  /** @internal */
  acquireLease(request: LeaseRequest): Promise<LockLease> {
    return acquireThrough(this.engine, this.name, this.type, request);
  }

  private isHeldIn({ lease }: LockScope): boolean {
    const isThis = ({ name, type }: { name: string; type: HeldType }) =>
      name === this.name && kindOf(type) === kindOf(this.type);
    return this.engine.owns(lease) && lease.locks.some(isThis) && lease.held;
  }
}

/** Types of one kind exclude and re-enter each other under the same name. */
function kindOf(type: HeldType): 'plain' | 'read' | 'write' {
  return type === 'read' || type === 'write' ? type : 'plain';
}
