import type { LockState, LockType } from '../lock-backend.js';

/** Who holds one lock. Lapsed parts count as gone in every answer; times are the store's clock. */
export interface Hold {
  /** Nobody is left in it. */
  isOver(now: number): boolean;
  /** Whether this owner is in it, in the way of this type. */
  has(owner: string, type: LockType, now: number): boolean;
  /** Whether this owner, which is not in it yet, may come in beside those who are. */
  admits(owner: string, type: LockType, now: number): boolean;
  /** Lets an owner in, or sets its lease anew. Only for one that it {@link has} or {@link admits}. */
  put(owner: string, type: LockType, deadline: number, now: number): void;
  /** Takes an owner out that it {@link has}. */
  remove(owner: string, type: LockType): void;
  /** Of those who are in it, the one that will have lapsed last, and when. */
  longest(now: number): readonly [owner: string, deadline: number];
  state(now: number): Pick<LockState, 'mode' | 'owners'>;
}

/** Whether both kinds of lock look at the same hold: a read/write lock takes any other under its name for busy, and the reverse. */
export function isReadWrite(type: LockType): type is 'read' | 'write' {
  return type === 'read' || type === 'write';
}

/** Milliseconds from now to a deadline that lies ahead; whole ones, and never 0, so that who waits for it does not come too early. */
export function remaining(deadline: number, now: number): number {
  return Math.max(1, Math.ceil(deadline - now));
}
