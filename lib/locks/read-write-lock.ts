import type { LockEngine } from '../engine/lock-engine.js';
import { ReentrantLock } from './reentrant-lock.js';

/**
 * Redisson's RReadWriteLock: many readers, or one writer.
 *
 * A writer may take the read lock too, in its scope, and goes on reading when it releases the write lock. A reader that asks for the write lock would
 * wait for itself, and gets LockUpgradeError. Readers have a lease each. Readers of this library stand back for writers that
 * wait; those of Java don't.
 *
 * ```ts
 * const catalogue = locks.getReadWriteLock('catalogue');
 * await using lease = await catalogue.readLock().lock();
 * ```
 *
 * @publicApi
 */
export class ReadWriteLock {
  /** @internal */
  constructor(
    private readonly engine: LockEngine,
    /** The lock's name, without the key prefix. */
    readonly name: string,
  ) {}

  /** A handle on the side that many can have at once. */
  readLock(): ReadWriteLockSide {
    return new ReadWriteLockSide(this.engine, this.name, 'read');
  }

  /** A handle on the side that one alone can have, without readers. */
  writeLock(): ReadWriteLockSide {
    return new ReadWriteLockSide(this.engine, this.name, 'write');
  }
}

/**
 * One side of a {@link ReadWriteLock}. What it says of the lock is about this side: the read lock is not locked while somebody writes.
 *
 * @publicApi
 */
export class ReadWriteLockSide extends ReentrantLock {
  /** @internal */
  constructor(
    engine: LockEngine,
    name: string,
    private readonly side: 'read' | 'write',
  ) {
    super(engine, name, side);
  }

  override async isLocked(): Promise<boolean> {
    return (await this.engine.inspect(this.name)).mode === this.side;
  }

  /** Frees the lock from the writer, or from all readers, and wakes who waits. @returns false when this side was not locked */
  override async forceUnlock(): Promise<boolean> {
    return (await this.isLocked()) && super.forceUnlock();
  }

  /** Milliseconds until the last lease of this side ends unless renewed; −1 when it has none, −2 when this side is not locked. */
  override async remainTimeToLive(): Promise<number> {
    return (await this.isLocked()) ? super.remainTimeToLive() : -2;
  }
}
