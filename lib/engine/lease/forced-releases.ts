import type { LockBackend, Removal, Subscription } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import { LockLostError } from '../errors.js';
import type { HeldLock } from './held-lock.js';
import { PendingAcquisitions } from './pending-acquisitions.js';

/** The locks that this process holds under one key. */
type HeldUnder = (key: string) => Iterable<HeldLock>;

/**
 * Takes locks away from their leases after a forced release: at once where this process did it. Where another process says that it did, the
 * backend is asked first, because anybody may send such a message.
 */
export class ForcedReleases {
  readonly pendingAcquisitions: PendingAcquisitions;
  private subscription: Subscription | undefined;
  private listening = false;
  /** Locks about which the backend is being asked. True: another message arrived meanwhile, so that the answer may be outdated. */
  private readonly looks = new Map<HeldLock, boolean>();

  constructor(
    private readonly backend: LockBackend,
    private readonly runtime: Runtime,
    private readonly clientId: string,
    private readonly heldUnder: HeldUnder,
  ) {
    // If the lock was acquired, its lease exists in the next turn.
    this.pendingAcquisitions = new PendingAcquisitions((removal) => runtime.nextTurn(() => this.verify(removal)));
  }

  /** This process holds something: from the next turn on it listens for forced releases by other processes. */
  listen(): void {
    if (this.listening) return;
    this.listening = true;
    this.runtime.nextTurn(() => {
      if (this.listening)
        this.subscription = this.backend.listenToClient?.(this.clientId, (removal) => this.heard(removal));
    });
  }

  close(): void {
    this.listening = false;
    this.subscription?.close();
    this.subscription = undefined;
  }

  /** This process took the lock from these owners. */
  removed(removal: Removal): void {
    this.pendingAcquisitions.interfere(removal, 'removed');
    for (const held of this.concerned(removal)) this.lose(held);
  }

  private heard(removal: Removal): void {
    this.pendingAcquisitions.interfere(removal, 'doubtful');
    this.verify(removal);
  }

  /** Where the message is true, the lock is lost. If there is no answer, the next renewal tells. */
  private verify(removal: Removal): void {
    for (const held of this.concerned(removal)) {
      const isUnderWay = this.looks.has(held);
      this.looks.set(held, isUnderWay);
      if (!isUnderWay) void this.look(held);
    }
  }

  private lose(held: HeldLock): void {
    const { name } = held;
    held.lose(new LockLostError(`The lock '${name}' was lost: it was force-released`, name));
  }

  private async look(held: HeldLock): Promise<void> {
    const { key, owner } = held;
    do {
      this.looks.set(held, false);
      const owners = await this.backend.inspect(key).then(
        (state) => state.owners,
        () => undefined,
      );
      const isHeld = [...this.heldUnder(key)].includes(held);
      if (isHeld && owners?.every((other) => other.owner !== owner)) this.lose(held);
    } while (this.looks.get(held) && held.lost === undefined);
    this.looks.delete(held);
  }

  private concerned({ key, owners }: Removal): readonly HeldLock[] {
    return [...this.heldUnder(key)].filter((held) => owners.includes(held.owner));
  }
}
