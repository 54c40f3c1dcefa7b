import type { LockType } from '../backends/lock-backend.js';
import type { Lease } from '../engine/lease.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { liveFrom, lockScopes } from '../engine/lock-scope.js';
import { LockHandle } from './lock-handle.js';
import { type ClaimTerms, LeaseHold, type LockHold } from './lock-hold.js';

/**
 * Redisson's RLock: at most one flow of control holds it, as often as it likes, and unlocks it as often as it locked it.
 *
 * ```ts
 * const lock = locks.getLock('stock:42');
 * await lock.lock();
 * try {
 *   await move(42);
 * } finally {
 *   await lock.unlock();
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
  readonly width = 1;
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
    this.order = `${name}\0${type}\0${engine.parts.backend.description}`;
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
    for (let scope = liveFrom(lockScopes.getStore()); scope !== undefined; scope = liveFrom(scope.parent)) {
      if (this.isOn(scope.lease)) count++;
    }
    return count;
  }

  /** Milliseconds until the holder's lease ends unless renewed; −1 when it has none, −2 when the lock is free. */
  async remainTimeToLive(): Promise<number> {
    const { mode, owners } = await this.engine.inspect(this.name);
    return mode === 'free' ? -2 : Math.max(-1, ...owners.map(({ remaining }) => remaining));
  }

  /** @internal */
  async claim(terms: ClaimTerms): Promise<LockHold> {
    return new LeaseHold(await this.engine.acquire(this.name, { ...terms, type: this.type }, 'lock()'));
  }

  private isOn(lease: Lease): boolean {
    return (
      lease.service === this.engine &&
      lease.locks.some((lock) => lock.name === this.name && kindOf(lock.type) === kindOf(this.type))
    );
  }
}

/** Types of one kind exclude and re-enter each other under one name. */
function kindOf(type: LockType): 'plain' | 'read' | 'write' {
  return type === 'read' || type === 'write' ? type : 'plain';
}
