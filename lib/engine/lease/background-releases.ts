import type { BackendError, LockBackend, OwnerRef, ReleaseReply } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { HeldLock } from './held-lock.js';

const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 500;

/** What the backend may hold for an owner that nobody uses. */
export interface UnusedOwner extends OwnerRef {
  /** Milliseconds after which it has lapsed by itself. */
  readonly leaseTime: number;
  /** The backend's time after which the request that took it, or may still take it, is not executed any more (see BackendError). */
  readonly validUntil?: number;
  /** The owner may also have a place among the waiters. */
  readonly waits?: boolean;
}

/** What is known of a request that may have taken something, or may still do so. */
export type RequestOutcome = Pick<BackendError, 'outcome' | 'validUntil'>;

/** A lock that was held, and is nobody's any more. */
export function unusedOwner({ key, type, owner, leaseTime, lateCopiesUntil }: HeldLock): UnusedOwner {
  if (lateCopiesUntil === undefined) return { key, type, owner, leaseTime };
  // A copy that finds the lock busy would take a place among the waiters.
  return { key, type, owner, leaseTime, validUntil: lateCopiesUntil, waits: type === 'fair' || type === 'write' };
}

/**
 * Gives back, in the background, what the backend may hold for owners that nobody uses: acquisitions and releases whose answer
 * was lost. It tries until the backend answers that nothing is there, at a time when nothing can come any more, or the lease has
 * ended by itself.
 */
export class BackgroundReleases {
  private closed = false;

  constructor(
    private readonly backend: LockBackend,
    private readonly runtime: Runtime,
  ) {}

  release(orphan: UnusedOwner): void {
    this.runtime.detached(() => this.attempt(orphan, this.runtime.monotonic() + orphan.leaseTime, FIRST_PAUSE));
  }

  /** An owner was taken out of the backend: copies of its acquisition may still come. */
  followUp(held: HeldLock): void {
    if (held.lateCopiesUntil !== undefined) this.release(unusedOwner(held));
  }

  close(): void {
    this.closed = true;
  }

  private attempt(orphan: UnusedOwner, until: number, pause: number): void {
    const { key, type, owner, waits } = orphan;
    const released = this.backend.release({ key, type, owner });
    // The place after the lock: when nothing can come any more, it is left once more.
    const all = waits
      ? released.then((reply) => this.backend.removeWaiter({ key, type, owner }).then(() => reply))
      : released;
    all.then(
      (reply) => {
        if (mayStillCome(orphan, reply)) this.attemptLater(orphan, until, pause);
      },
      () => {
        if (this.runtime.monotonic() + pause <= until) this.attemptLater(orphan, until, pause);
      },
    );
  }

  private attemptLater(orphan: UnusedOwner, until: number, pause: number): void {
    if (this.closed) return;
    this.runtime.timer(pause, () => this.attempt(orphan, until, Math.min(pause * 2, LONGEST_PAUSE)));
  }
}

/** The request, or a second copy of it, may be executed after this answer, and take the lock once more. */
function mayStillCome({ validUntil }: UnusedOwner, { released, at }: ReleaseReply): boolean {
  if (validUntil === undefined) return false;
  return released || (at !== undefined && at <= validUntil);
}
