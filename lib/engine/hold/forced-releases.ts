import type { LockBackend, Removal, Subscription } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { PendingAttempts } from '../ask/attempt.js';
import type { EventHub } from '../events/event-hub.js';
import type { HeldLock } from './held-lock.js';
import { forcedReleaseError, lockLostError } from './loss-reasons.js';

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

/** A question to the backend about a lock. */
interface Check {
  /** Whether a message says that it was released by force. */
  isTold: boolean;
  /** Whether the answer may be outdated, because the lock has to be checked again since the question. */
  isOutdated: boolean;
}

/**
 * Marks locks as lost after a forced release: at once if this process requested the release. If another process reports
 * it, the backend is asked first, because anybody can send such a message.
 */
export class ForcedReleases {
  private subscription: Subscription | undefined;
  private closed = false;
  /** Locks that the backend is being asked about. */
  private readonly checks = new Map<HeldLock, Check>();

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
    for (const held of this.concerned(removal)) this.startCheck(held, true);
  }

  private lose(held: HeldLock, reason?: string): void {
    held.lose(forcedReleaseError(held.name, reason));
  }

  private checkAll(): void {
    let count = 0;
    for (const held of this.services.heldLocks()) {
      if (this.closed || count++ >= MOST_CHECKS) return;
      this.startCheck(held, false);
    }
  }

  private startCheck(held: HeldLock, isTold: boolean): void {
    const underWay = this.checks.get(held);
    if (underWay !== undefined) {
      underWay.isOutdated = true;
      underWay.isTold ||= isTold;
      return;
    }
    const check = { isTold, isOutdated: false };
    this.checks.set(held, check);
    this.services.events.unawaited(this.check(held, check));
  }

  private async check(held: HeldLock, check: Check): Promise<void> {
    const { key, name, owner } = held;
    do {
      check.isOutdated = false;
      const isGone = await this.services.backend.inspect(key).then(
        ({ owners, possibleOwners = [] }) =>
          !possibleOwners.includes(owner) && owners.every((other) => other.owner !== owner),
        () => false,
      );
      const isHeld = [...this.services.heldLocks(key)].includes(held);
      if (isHeld && isGone)
        held.lose(check.isTold ? forcedReleaseError(name) : lockLostError(name, { reason: 'gone-at-lookup' }));
    } while (check.isOutdated && held.lost === undefined);
    this.checks.delete(held);
  }

  private concerned({ key, owners }: Removal): readonly HeldLock[] {
    return [...this.services.heldLocks(key)].filter((held) => owners.includes(held.owner));
  }
}
