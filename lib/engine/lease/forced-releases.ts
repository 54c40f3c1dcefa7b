import type { LockBackend, Removal, Subscription } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { PendingAttempts } from '../ask/attempt.js';
import type { EventHub } from '../events/event-hub.js';
import type { HeldLock } from '../hold/held-lock.js';
import { forcedReleaseError } from '../hold/loss-reasons.js';

/** The maximum number of held locks to check when listening starts. Renewals check the rest. */
const MOST_CHECKS = 1_000;

/** The parts of a service that are needed to notice forced releases. */
interface ForcedReleaseServices {
  readonly backend: LockBackend;
  readonly runtime: Runtime;
  readonly clientId: string;
  readonly events: EventHub;
  readonly pendingAttempts: PendingAttempts;
  /** The locks that this process holds: under one key, or all of them. */
  heldLocks(key?: string): readonly HeldLock[];
  /** Confirms the leases that were confirmed before this moment. */
  confirmAll(before: number): void;
}

/**
 * Marks locks as lost after a forced release: at once if this process requested the release. If another process reports
 * it, the backend is asked first, because anybody can send such a message.
 */
export class ForcedReleases {
  private subscription: Subscription | undefined;
  private closed = false;
  /**
   * Locks that the backend is being asked about. The value is true if another message has arrived since, so that the
   * answer may be outdated.
   */
  private readonly checks = new Map<HeldLock, boolean>();

  constructor(private readonly services: ForcedReleaseServices) {
    const { backend, pendingAttempts, runtime } = services;
    // If the attempt was granted, its lease is created only by the next turn of the event loop.
    pendingAttempts.doubted = (removal) => runtime.nextTurn(() => this.verify(removal));
    if (backend.blocking !== undefined) this.listen();
  }

  /**
   * Listens for forced releases by other processes from now on. A process starts to listen once it has held a lock for
   * one watchdog interval. Listening needs a connection, which is not worth it for short holds. With a blocking
   * backend, it listens from the start.
   */
  listen(): void {
    if (this.closed || this.subscription !== undefined) return;
    const { backend, clientId, events, runtime } = this.services;
    this.subscription = backend.listenToClient?.(
      clientId,
      (removal) => this.heard(removal),
      () => this.services.confirmAll(runtime.monotonic()),
    );
    // Forced releases may have been missed before the subscription was confirmed, so check the held locks.
    events.unawaited(this.subscription?.ready.then(() => this.checkAll()));
  }

  close(): void {
    this.closed = true;
    this.subscription?.close();
  }

  /** Handles a forced release by this process. */
  removed(removal: Removal): void {
    this.services.pendingAttempts.interfere(removal, 'removed');
    for (const held of this.concerned(removal)) this.lose(held, removal.reason);
  }

  private heard(removal: Removal): void {
    if (removal.reason !== undefined) return this.removed(removal);
    this.services.pendingAttempts.interfere(removal, 'doubtful');
    this.verify(removal);
  }

  /**
   * Marks locks as lost if the backend confirms the message. If the backend does not answer, or does not know, the next
   * renewal decides.
   */
  verify(removal: Removal): void {
    for (const held of this.concerned(removal)) this.startCheck(held);
  }

  private lose(held: HeldLock, reason?: string): void {
    held.lose(forcedReleaseError(held.name, reason));
  }

  private checkAll(): void {
    let count = 0;
    for (const held of this.services.heldLocks()) {
      if (this.closed || count++ >= MOST_CHECKS) return;
      this.startCheck(held);
    }
  }

  private startCheck(held: HeldLock): void {
    const isUnderWay = this.checks.has(held);
    this.checks.set(held, isUnderWay);
    if (!isUnderWay) this.services.events.unawaited(this.check(held));
  }

  private async check(held: HeldLock): Promise<void> {
    const { key, owner } = held;
    do {
      this.checks.set(held, false);
      const isGone = await this.services.backend.inspect(key).then(
        ({ owners, possibleOwners = [] }) =>
          !possibleOwners.includes(owner) && owners.every((other) => other.owner !== owner),
        () => false,
      );
      const isHeld = [...this.services.heldLocks(key)].includes(held);
      if (isHeld && isGone) this.lose(held);
    } while (this.checks.get(held) && held.lost === undefined);
    this.checks.delete(held);
  }

  private concerned({ key, owners }: Removal): readonly HeldLock[] {
    return [...this.services.heldLocks(key)].filter((held) => owners.includes(held.owner));
  }
}
