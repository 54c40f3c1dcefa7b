import type { LockState, LockType } from '../lock-requests.js';

/** Who holds one lock. Every answer ignores owners whose lease has ended; times are on the store's clock. */
export interface LockRecord {
  /** Nobody holds the lock any more. */
  isEmpty(now: number): boolean;
  /** Whether this owner holds the lock as this type. */
  isHeldBy(owner: string, type: LockType, now: number): boolean;
  /** Whether this owner, which does not hold the lock, may acquire it beside those that do. */
  admits(owner: string, type: LockType, now: number): boolean;
  /** Adds an owner, or renews its lease. Only for an owner that {@link isHeldBy} or {@link admits} accepts. */
  set(owner: string, type: LockType, deadline: number, now: number): void;
  /** Removes an owner that holds the lock as this type. */
  remove(owner: string, type: LockType): void;
  /** Removes an owner that holds the lock, as whatever type. */
  evict(owner: string): void;
  /** The owner whose lease ends last, and when it ends. */
  lastToExpire(now: number): readonly [owner: string, deadline: number];
  state(now: number): Pick<LockState, 'mode' | 'owners'>;
}

/** Whole milliseconds until a future deadline. Never 0, so that a waiter that sleeps this long does not wake too early. */
export function remaining(deadline: number, now: number): number {
  return Math.max(1, Math.ceil(deadline - now));
}
