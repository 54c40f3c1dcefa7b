import type { Removal, Subscription } from '../../backends/lock-backend.js';
import type { EngineContext } from '../engine-context.js';
import { LockLostError } from '../errors.js';
import type { HeldLock } from './held-lock.js';

/** How many held locks are verified when listening starts. The others are verified by their renewals. */
const MOST_LOOKS = 1_000;

/**
 * Takes locks away from their leases after a forced release: at once where this process did it. Where another process
 * says that it did, the backend is asked first, because anybody may send such a message.
 */
export class ForcedReleases {
  private subscription: Subscription | undefined;
  private closed = false;
  /**
   * Locks about which the backend is being asked. True: another message arrived meanwhile, so that the answer may be
   * outdated.
   */
  private readonly looks = new Map<HeldLock, boolean>();

  constructor(private readonly context: EngineContext) {}

  /**
   * Listens for forced releases by other processes from now on. A process starts to do so when it has held something
   * for a heartbeat of the watchdog: that takes a connection, which locks that are held for a moment do not need.
   */
  listen(): void {
    if (this.closed || this.subscription !== undefined) return;
    const { backend, clientId, events } = this.context;
    this.subscription = backend.listenToClient?.(clientId, (removal) => this.heard(removal));
    // A forced release before the subscription was confirmed was not heard.
    events.unawaited(this.subscription?.ready.then(() => this.lookAtAll()));
  }

  close(): void {
    this.closed = true;
    this.subscription?.close();
  }

  /** This process took the lock from these owners. */
  removed(removal: Removal): void {
    this.context.pendingAttempts.interfere(removal, 'removed');
    for (const held of this.concerned(removal)) this.lose(held, removal.reason);
  }

  private heard(removal: Removal): void {
    if (removal.reason !== undefined) return this.removed(removal);
    this.context.pendingAttempts.interfere(removal, 'doubtful');
    this.verify(removal);
  }

  /** If the message is true, the lock is lost. Without an answer, the next renewal finds out. */
  verify(removal: Removal): void {
    for (const held of this.concerned(removal)) this.lookAt(held);
  }

  private lose(held: HeldLock, reason = 'it was force-released'): void {
    const { name } = held;
    held.lose(new LockLostError(`The lock '${name}' was lost: ${reason}`, name));
  }

  private lookAtAll(): void {
    let count = 0;
    for (const held of this.context.heldLocks()) {
      if (this.closed || count++ >= MOST_LOOKS) return;
      this.lookAt(held);
    }
  }

  private lookAt(held: HeldLock): void {
    const isUnderWay = this.looks.has(held);
    this.looks.set(held, isUnderWay);
    if (!isUnderWay) this.context.events.unawaited(this.look(held));
  }

  private async look(held: HeldLock): Promise<void> {
    const { key, owner } = held;
    do {
      this.looks.set(held, false);
      const owners = await this.context.backend.inspect(key).then(
        (state) => state.owners,
        () => undefined,
      );
      const isHeld = [...this.context.heldLocks(key)].includes(held);
      if (isHeld && owners?.every((other) => other.owner !== owner)) this.lose(held);
    } while (this.looks.get(held) && held.lost === undefined);
    this.looks.delete(held);
  }

  private concerned({ key, owners }: Removal): readonly HeldLock[] {
    return [...this.context.heldLocks(key)].filter((held) => owners.includes(held.owner));
  }
}
