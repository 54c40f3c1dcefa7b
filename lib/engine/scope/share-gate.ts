import { LinkedQueue } from '../collections/linked-queue.js';
import type { LockWaiter } from '../hold/held-lock.js';

/** How a child of a share uses the lock: alone among its siblings, or reading beside other readers. */
export type ShareMode = 'exclusive' | 'shared';

/** A gate that a share has entered, and leaves when it ends. */
export interface EnteredGate {
  /** The lock's key. */
  readonly key: string;
  /** The share whose children the gate admits. */
  readonly share: ShareGates;
  leave(): void;
}

/** The gates of one share: those that it has entered, and those at which its children exclude each other. */
export class ShareGates {
  /** The gates for its children, by the lock's key. Only gates with children inside or waiting are kept. */
  private readonly below = new Map<string, ShareGate>();
  private leaving = false;

  /** @param entered the gates of the shares whose child this share is */
  constructor(readonly entered: readonly EnteredGate[]) {}

  /** Whether the share was given back. */
  get left(): boolean {
    return this.leaving;
  }

  /** The gate for this share's children in the lock with this key. */
  gate(key: string): ShareGate {
    let gate = this.below.get(key);
    if (gate === undefined) {
      gate = new ShareGate(this, key);
      this.below.set(key, gate);
    }
    return gate;
  }

  /** The gate that this share entered as a child in the lock with this key. */
  above(key: string): ShareGate | undefined {
    return this.entered.find((gate) => gate.key === key) as ShareGate | undefined;
  }

  /** Whether this share is below `other` in the lock with this key. */
  isBelow(other: ShareGates, key: string): boolean {
    for (let share = this.above(key)?.share; share !== undefined; share = share.above(key)?.share) {
      if (share === other) return true;
    }
    return false;
  }

  /**
   * Handles the end of the share. If there are shares below it in a gate's lock, the gate is left only when the last of
   * them ends. Otherwise that share and the next child would be inside together.
   */
  leave(): void {
    this.leaving = true;
    for (const gate of this.entered) if (!this.below.has(gate.key)) gate.leave();
  }

  /**
   * Called when the last child has left and none waits. A child that leaves as soon as it is admitted causes a second
   * call.
   */
  emptied(emptied: ShareGate): void {
    const { key } = emptied;
    if (this.below.get(key) !== emptied) return;
    this.below.delete(key);
    if (!this.leaving) return;
    for (const gate of this.entered) if (gate.key === key) gate.leave();
  }
}

/**
 * Admits the children of one share to its lock: one at a time, in the order of their arrival, or readers side by side.
 * A child is inside until it and the last share below it have ended. A gate is local to the lease, and does not ask the
 * backend.
 */
export class ShareGate implements EnteredGate {
  private readonly waiting = new LinkedQueue<LockWaiter>();
  private readonly admissions = new WeakMap<LockWaiter, { readonly mode: ShareMode; readonly enter: () => void }>();
  private inside = 0;
  private mode: ShareMode = 'shared';
  /** How many writers below the only reader inside have closed the gate to others. */
  private closed = 0;

  constructor(
    readonly share: ShareGates,
    readonly key: string,
  ) {}

  /** Whether those inside read. */
  get isShared(): boolean {
    return this.mode === 'shared';
  }

  /** Whether a child could enter now. */
  open(mode: ShareMode): boolean {
    return this.waiting.length === 0 && this.admits(mode);
  }

  /** Enters without waiting. Allowed only while the gate is {@link open}. */
  enter(mode: ShareMode): void {
    this.mode = mode;
    this.inside++;
  }

  /**
   * Waits for the waiter's turn, and enters. Until then, the waiter's own timer and signal may end the wait.
   *
   * @param entered called when the gate was entered, but not for a waiter that has left
   * @param departed returns why a waiter that leaves was not served
   */
  wait(waiter: LockWaiter, mode: ShareMode, entered: () => void, departed: () => Error): void {
    const enter = () => (waiter.settled ? this.leave() : entered());
    if (this.open(mode)) {
      this.enter(mode);
      return enter();
    }
    this.waiting.push(waiter);
    this.admissions.set(waiter, { mode, enter });
    waiter.watch(() => {
      this.remove(waiter);
      return departed();
    });
  }

  /** Refuses one waiter. */
  dismiss(waiter: LockWaiter, error: Error): void {
    this.remove(waiter);
    waiter.refuse(error);
  }

  leave(): void {
    this.inside--;
    this.admit();
  }

  /**
   * Closes the gate to all others while the only reader inside writes.
   *
   * @returns a gate whose `leave()` reopens this one; `undefined` if another reader is inside
   */
  closeToReaders(): EnteredGate | undefined {
    if (this.inside > 1) return undefined;
    const { key, share } = this;
    this.closed++;
    // The reader may have left by then, and another child may be inside.
    const leave = () => {
      this.closed--;
      this.admit();
    };
    return { key, share, leave };
  }

  private remove(waiter: LockWaiter): void {
    this.waiting.remove(waiter);
    this.admit();
  }

  private admits(mode: ShareMode): boolean {
    return this.inside === 0 || (mode === 'shared' && this.mode === 'shared' && this.closed === 0);
  }

  private admit(): void {
    for (let head = this.waiting.first; head !== undefined; head = this.waiting.first) {
      const { mode, enter } = this.admissions.get(head) as { mode: ShareMode; enter: () => void };
      if (!this.admits(mode)) return;
      this.waiting.remove(head);
      this.enter(mode);
      enter();
    }
    if (this.inside === 0) this.share.emptied(this);
  }
}
