import type { LockType } from '../backends/lock-backend.js';
import type { Duration } from '../engine/duration.js';
import { LockBusyError, LockNotOwnedError } from '../engine/errors.js';
import type { Lease } from '../engine/lease.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { LockScope, liveFrom, lockScopes } from '../engine/lock-scope.js';

/**
 * A lock in the style of Redisson's RLock (and java.util.concurrent's Lock). The owner is the flow of control that called
 * `lock()`: the code after it, and the code that it calls, re-enter through any handle of that name, as a Java thread would.
 * Another flow (another request, on the same handle) waits like a stranger, and its `unlock()` is a LockNotOwnedError.
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
 * Handles are cheap, hold nothing by themselves and may be shared. `withLock` does the same in one call, and is harder to get wrong:
 * `lock()` marks its caller's caller too, so that a branch of a `Promise.all` which awaits something else before its own `lock()`
 * counts as code that the branches started before it have called, and enters with them.
 *
 * @publicApi
 */
export class ReentrantLock {
  /** @internal */
  constructor(
    protected readonly engine: LockEngine,
    /** The lock's name, without the key prefix. */
    readonly name: string,
    /** @internal */
    readonly type: LockType = 'reentrant',
  ) {}

  /**
   * Waits until this flow holds the lock.
   *
   * @param leaseTime how long, without renewal; absent: until `unlock()`, kept by the watchdog
   */
  lock(leaseTime?: Duration): Promise<void> {
    return this.mark((scope) => this.enter(scope, { leaseTime }));
  }

  /**
   * Tries for at most `waitTime` (default 0: once).
   *
   * @returns whether this flow holds the lock now
   */
  tryLock(waitTime: Duration = 0, leaseTime?: Duration): Promise<boolean> {
    return this.mark(async (scope) => {
      try {
        await this.enter(scope, { waitTime, leaseTime });
        return true;
      } catch (error) {
        if (error instanceof LockBusyError) return false;
        throw error;
      }
    });
  }

  /**
   * Takes back this flow's latest `lock()` of this name; the last one frees the lock.
   *
   * @throws LockNotOwnedError when this flow does not hold it through a handle; nothing changes then
   * @throws LockLostError when the lock had been lost meanwhile
   */
  unlock(): Promise<void> {
    for (let scope = lockScopes.getStore(); scope !== undefined; scope = scope.beside ?? scope.parent) {
      if (!marks.has(scope) || scope.over || scope.lease === undefined || !this.isOn(scope.lease)) continue;
      scope.end();
      return scope.lease.release();
    }
    return Promise.reject(
      new LockNotOwnedError(
        `unlock() of '${this.name}': this flow of control does not hold the lock; only who called lock() can unlock it`,
        this.name,
      ),
    );
  }

  /** Frees the lock whoever holds it, and wakes who waits. @returns whether it was held */
  forceUnlock(): Promise<boolean> {
    return this.engine.forceRelease(this.name);
  }

  /** Whether anybody holds it, here or elsewhere. */
  async isLocked(): Promise<boolean> {
    return (await this.engine.inspect(this.name)).mode !== 'free';
  }

  /** Whether the running flow of control holds it, by a handle, a scope or a decorated method. */
  isHeldByCurrentOwner(): boolean {
    return this.getHoldCount() > 0;
  }

  /** How many times the running flow holds it. */
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

  private async enter(scope: LockScope, options: { waitTime?: Duration; leaseTime?: Duration }): Promise<Lease> {
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    try {
      scope.lease = await this.engine.acquire(this.name, { ...given, type: this.type }, `lock()`);
      return scope.lease;
    } catch (error) {
      scope.end();
      throw error;
    }
  }

  /** Marks the caller's flow before anything is awaited: only so the code after the call is marked too. */
  private mark<T>(acquire: (scope: LockScope) => Promise<T>): Promise<T extends Lease ? void : T>;
  private mark(acquire: (scope: LockScope) => Promise<unknown>): Promise<unknown> {
    const scope = new LockScope(undefined, lockScopes.getStore());
    marks.add(scope);
    lockScopes.enterWith(scope);
    return acquire(scope).then((result) => (typeof result === 'boolean' ? result : undefined));
  }

  private isOn(lease: Lease): boolean {
    return (
      lease.service === this.engine &&
      lease.locks.some((lock) => lock.name === this.name && sameKind(lock.type, this.type))
    );
  }
}

/** Scopes that a handle made; `unlock()` leaves those of `withLock` alone. */
const marks = new WeakSet<LockScope>();

function sameKind(held: LockType, asked: LockType): boolean {
  return held === asked || (isPlain(held) && isPlain(asked));
}

function isPlain(type: LockType): boolean {
  return type !== 'read' && type !== 'write';
}
