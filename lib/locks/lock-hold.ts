import type { Duration } from '../engine/duration.js';
import { LockLostError } from '../engine/errors.js';
import type { Lease } from '../engine/lease.js';
import type { LockOptions } from '../engine/lock-options.js';

/** How a handle acquires. */
export type ClaimTerms = Pick<LockOptions, 'waitTime' | 'leaseTime' | 'signal'>;

/** What a handle has acquired: a lease, or those of several locks. */
export interface LockHold {
  readonly leases: readonly Lease[];
  /** Neither released nor lost, as far as was noticed. */
  readonly live: boolean;
  release(): Promise<void>;
}

export class LeaseHold implements LockHold {
  readonly leases: readonly Lease[];

  constructor(private readonly lease: Lease) {
    this.leases = [lease];
  }

  get live(): boolean {
    return this.lease.live;
  }

  release(): Promise<void> {
    return this.lease.release();
  }
}

/** Several holds that are worth something while so many of them are. */
export class CombinedHold implements LockHold {
  constructor(
    readonly holds: readonly LockHold[],
    private readonly needed: number,
  ) {}

  get leases(): readonly Lease[] {
    return this.holds.flatMap((hold) => hold.leases);
  }

  get live(): boolean {
    return this.holds.filter((hold) => hold.live).length >= this.needed;
  }

  /**
   * Lets a fixed lease begin now, also where it was acquired a while ago.
   *
   * @throws LockLostError when too few are held, or what their extension threw; then nothing is held
   */
  async refresh(leaseTime: Duration | undefined): Promise<void> {
    const aged = leaseTime === undefined ? [] : this.leases.filter(isAged);
    const results = await Promise.allSettled(aged.map((lease) => lease.extend(leaseTime as Duration)));
    if (this.live) return;
    await giveBack(this.holds);
    const failure = results.find((result) => result.status === 'rejected');
    const names = this.leases.map(({ name }) => name).join(', ');
    throw (
      failure?.reason ?? new LockLostError(`The locks ${names} were lost while others of them were acquired`, names)
    );
  }

  /** @throws what the release of a member threw, when too few of them were held to the end */
  async release(): Promise<void> {
    const results = await Promise.allSettled(this.holds.map((hold) => hold.release()));
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    if (results.length - failures.length < this.needed) throw failures[0];
  }
}

/** Releases what is not used after all; that it was lost does not matter then. */
export async function giveBack(holds: Iterable<LockHold>): Promise<void> {
  await Promise.allSettled(Array.from(holds, (hold) => hold.release()));
}

/** A tenth of it is over. What is a re-entry too keeps the lease that it has. */
function isAged(lease: Lease): boolean {
  return (
    lease.locks.every(({ shares }) => shares.length === 1) && lease.remainingTime() < lease.locks[0].leaseTime * 0.9
  );
}
