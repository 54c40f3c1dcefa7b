import type { LockType } from '../backends/lock-backend.js';
import type { LockLease } from '../engine/lease/lock-lease.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { currentScope, liveFrom, type ScopedLease } from '../engine/scope/lock-scope.js';
import { type ClaimTerms, LockHandle } from './lock-handle.js';

/**
 * Redisson's RLock: at most one caller holds it, and the code inside of its scope, which may lock it again.
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
  readonly identity: string;
  /** @internal */
  readonly order: string;
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
    this.engines = [engine];
    this.identity = `${engine.settings.clientId} ${kindOf(type)} ${name}`;
    this.order = `${name}\0${type}\0${engine.context.backend.description}`;
  }

  /** @internal */
  get batch(): LockHandle['batch'] {
    return this;
  }

  /** Frees the lock whoever holds it, and wakes who waits. @returns whether it was held */
  forceUnlock(): Promise<boolean> {
    return this.engine.forceRelease(this.name);
  }

  async isLocked(): Promise<boolean> {
    return (await this.engine.inspect(this.name)).mode !== 'free';
  }

  getHoldCount(): number {
    let count = 0;
    for (let scope = currentScope(); scope !== undefined; scope = liveFrom(scope.parent)) {
      if (this.isOn(scope.lease) && scope.lease.held) count++;
    }
    return count;
  }

  /** Milliseconds until the holder's lease ends unless renewed; −1 when it has none, −2 when the lock is free. */
  async remainTimeToLive(): Promise<number> {
    const { mode, owners } = await this.engine.inspect(this.name);
    return mode === 'free' ? -2 : Math.max(-1, ...owners.map(({ remaining }) => remaining));
  }

  /** @internal */
  claim(terms: ClaimTerms): Promise<LockLease> {
    return this.engine.acquire(this.name, { ...terms, type: this.type }, 'lock()');
  }

  private isOn(lease: ScopedLease): boolean {
    return (
      lease.service === this.engine.context &&
      lease.locks.some((lock) => lock.name === this.name && kindOf(lock.type) === kindOf(this.type))
    );
  }
}

/** Types of one kind exclude and re-enter each other under one name. */
function kindOf(type: LockType): 'plain' | 'read' | 'write' {
  return type === 'read' || type === 'write' ? type : 'plain';
}
