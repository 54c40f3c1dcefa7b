import type { LockBackend, Removal, Subscription } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import { LockLostError } from '../errors.js';
import type { HeldLock } from './held-lock.js';
import { PendingAcquisitions } from './pending-acquisitions.js';

/** The locks that this process holds under one key. */
type HeldUnder = (key: string) => Iterable<HeldLock>;

/**
 * Takes locks from their leases that were released by force: at once where this process did it, and after a look where another process says
 * that it did, because anybody may send such a message.
 */
export class ForcedReleases {
  readonly pendingAcquisitions: PendingAcquisitions;
  private subscription: Subscription | undefined;
  private listening = false;
  /** Locks that are being looked for. True: another message came meanwhile, so that the answer may be outdated. */
  private readonly looks = new Map<HeldLock, boolean>();

  constructor(
    private readonly backend: LockBackend,
    private readonly runtime: Runtime,
    private readonly clientId: string,
    private readonly heldUnder: HeldUnder,
  ) {
    // In the next turn its lease is there, if it was acquired.
    this.pendingAcquisitions = new PendingAcquisitions((removal) => runtime.nextTurn(() => this.verify(removal)));
  }

  /** This process holds something: from the next turn on it hears what others take from it. */
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

  /** Where it is true, the lock is lost. Without an answer, its next renewal tells. */
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
