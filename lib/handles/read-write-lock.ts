import { printsAs } from '../backends/prints-as.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { ReentrantLock } from './reentrant-lock.js';

/**
 * Redisson's RReadWriteLock: many readers, or one writer.
 *
 * A writer may also acquire the read lock in its scope, and keeps it when the write lock is released. A reader that
 * requests the write lock gets LockUpgradeError, because it would wait for itself. Each reader has its own lease.
 * Readers that use this library let waiting writers go first. Readers in Java do not.
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

  /** The side that many callers can hold at once. */
  readLock(): ReadWriteLockSide {
    return new ReadWriteLockSide(this.engine, this.name, 'read');
  }

  /** The side that only one caller can hold, without readers. */
  writeLock(): ReadWriteLockSide {
    return new ReadWriteLockSide(this.engine, this.name, 'write');
  }
}

/**
 * One side of a {@link ReadWriteLock}. Its methods concern only this side: `isLocked()` of the read lock is false while
 * somebody writes.
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
    return (await this.engine.inspector.inspect(this.name)).mode === this.side;
  }

  /**
   * Frees the lock from its writer, or from all readers, and wakes its waiters.
   *
   * @returns false when this side was not locked
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for an invalid name
   */
  override async forceUnlock(): Promise<boolean> {
    return (await this.isLocked()) && super.forceUnlock();
  }

  /**
   * Milliseconds until the last lease of this side ends unless renewed; −1 when it has no end, −2 when this side is not
   * locked.
   *
   * @throws LockUnavailableError when the backend does not answer, LockKeyError for an invalid name
   */
  override async remainTimeToLive(): Promise<number> {
    return (await this.isLocked()) ? super.remainTimeToLive() : -2;
  }
}

printsAs(ReadWriteLock, ({ name }) => ({ name }));
