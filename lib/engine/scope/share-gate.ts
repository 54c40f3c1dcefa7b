import { LinkedQueue } from '../collections/linked-queue.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { Waiter } from '../waiting/waiter.js';

/** What a child of a share wants: to be alone among its siblings, or to read beside other readers. */
export type ShareMode = 'exclusive' | 'shared';

/** What a share has entered, to be left when it ends. */
export interface EnteredGate {
  /** Of the lock. */
  readonly key: string;
  /** Whose children it lets in. */
  readonly share: LockLease;
  leave(): void;
}

/**
 * Lets the children of one share into its lock: one after the other in the order of their arrival, readers side by side. A child is
 * inside until it and the last share below it have ended. It is local to the lease; the backend is not asked.
 */
export class ShareGate implements EnteredGate {
  private readonly waiting = new LinkedQueue<Waiter>();
  private readonly modes = new Map<Waiter, { readonly mode: ShareMode; readonly enter: () => void }>();
  private inside = 0;
  private mode: ShareMode = 'shared';

  constructor(
    /** Whose children it lets in. */
    readonly share: LockLease,
    /** Of the lock. */
    readonly key: string,
  ) {}

  /** Whether a child could enter now. */
  open(mode: ShareMode): boolean {
    return this.waiting.length === 0 && this.admits(mode);
  }

  /** Enters without waiting; only where {@link open}. */
  enter(mode: ShareMode): void {
    this.mode = mode;
    this.inside++;
  }

  /** Queues; `enter` is called when it is this waiter's turn, with the gate entered. */
  wait(waiter: Waiter, mode: ShareMode, enter: () => void): void {
    this.waiting.push(waiter);
    this.modes.set(waiter, { mode, enter });
  }

  /** Takes a waiter out that waits no more. */
  abandon(waiter: Waiter): void {
    if (!this.waiting.remove(waiter)) return;
    this.modes.delete(waiter);
    this.admit();
  }

  leave(): void {
    this.inside--;
    this.admit();
  }

  /**
   * Lets nobody in beside the one reader that is inside, which writes for a while.
   *
   * @returns what ends that; `undefined` where another reader is inside
   */
  closeToReaders(): EnteredGate | undefined {
    if (this.inside > 1) return undefined;
    const { mode, key, share } = this;
    this.mode = 'exclusive';
    const leave = () => {
      this.mode = mode;
      this.admit();
    };
    return { key, share, leave };
  }

  private admits(mode: ShareMode): boolean {
    return this.inside === 0 || (mode === 'shared' && this.mode === 'shared');
  }

  private admit(): void {
    for (let head = this.waiting.first; head !== undefined; head = this.waiting.first) {
      const { mode, enter } = this.modes.get(head) as { mode: ShareMode; enter: () => void };
      if (!this.admits(mode)) return;
      this.waiting.remove(head);
      this.modes.delete(head);
      this.enter(mode);
      enter();
    }
    if (this.inside === 0) this.share.gateEmptied(this);
  }
}
