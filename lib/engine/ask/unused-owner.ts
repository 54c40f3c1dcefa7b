import type { FlightRelease, OwnerRef } from '../../backends/lock-backend.js';

/** An owner that is no longer used, but that the backend may still have. */
export interface UnusedOwner extends OwnerRef {
  /** Milliseconds after which its lease has certainly ended. */
  readonly leaseTime: number;
  /** The backend's time after which its acquisition cannot be executed any more (see BackendError). */
  readonly validUntil?: number;
  /** Whether the owner may also be registered as a waiter in the backend. */
  readonly waits?: boolean;
  /** The name of the lock, if its holder has released it without an answer. */
  readonly name?: string;
  /** The release of a single flight, with its result. */
  readonly flight?: FlightRelease;
}

/** The owner of a lock that was held. */
export interface FormerOwner extends OwnerRef {
  readonly leaseTime: number;
  /** How long its lease is known to last. */
  readonly validFor: number;
  readonly lateCopiesUntil: number | undefined;
  /** Whether its acquisition would have registered it as a waiter. */
  readonly wouldWait: boolean;
}

/**
 * How many milliseconds the lease of a lock may last. A message may have granted a shorter one than the next renewal
 * sets, and that renewal may be unanswered.
 */
export function longestLease({ leaseTime, validFor }: Pick<FormerOwner, 'leaseTime' | 'validFor'>): number {
  return Math.max(leaseTime, validFor);
}

/** The owner of a lock that is no longer held. */
export function unusedOwner({ key, type, owner, lateCopiesUntil, wouldWait, ...held }: FormerOwner): UnusedOwner {
  const leaseTime = longestLease(held);
  if (lateCopiesUntil === undefined) return { key, type, owner, leaseTime };
  // A late copy of the acquisition registers the owner as a waiter if it finds the lock busy.
  return { key, type, owner, leaseTime, validUntil: lateCopiesUntil, waits: wouldWait };
}

/** The owner of a lock whose release got no answer. It is reported if the first repetition gets none either. */
export function unreleasedOwner(held: FormerOwner & { readonly name: string }): UnusedOwner {
  return { ...unusedOwner(held), name: held.name };
}
