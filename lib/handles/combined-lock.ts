import { LockConfigurationError, LockKeyError } from '../engine/errors.js';
import type { LockEngine } from '../engine/lock-engine.js';
import { bySortKey } from '../engine/several/all-or-none.js';
import { type Milliseconds, toFixedLease } from '../engine/terms/duration.js';
import type { WaitTerms } from '../engine/terms/wait-terms.js';
import { type LeaseRequest, LockHandle } from './lock-handle.js';
import { toWaitTerms } from './wait-options.js';

/** A lock that combines others. It is held while enough of them are held. */
export abstract class CombinedLock extends LockHandle {
  readonly name: string;
  /** Each lock once, in the order that all processes use. @internal */
  readonly members: readonly LockHandle[];
  /** @internal */
  readonly lockId: string;
  /** @internal */
  readonly sortKey: string;
  /** @internal */
  readonly engines: readonly LockEngine[];
  /** @internal */
  readonly commandGroup = undefined;

  /** @throws LockKeyError when there are no members, LockConfigurationError when a member is not a lock */
  protected constructor(title: 'getMultiLock()' | 'getRedLock()', members: readonly LockHandle[]) {
    super();
    if (members.length === 0) throw new LockKeyError(`${title}: there are no locks; nothing would be locked`, '');
    for (const member of members) {
      if (typeof member?.acquireLease !== 'function')
        throw new LockConfigurationError(`${title}: one of the locks is ${typeof member}; give what getLock() returns`);
    }
    this.members = eachOnce([...members].sort(bySortKey));
    this.name = this.members.map(({ name }) => name).join(', ');
    const lockIds = this.members.map(({ lockId }) => lockId).sort();
    this.lockId = `${title} ${lockIds.join(' + ')}`;
    this.sortKey = this.members[0].sortKey;
    this.engines = this.members.flatMap(({ engines }) => engines);
  }

  /** How many members have to be held. @internal */
  abstract readonly needed: number;

  getHoldCount(): number {
    const counts = this.members.map((member) => member.getHoldCount()).sort((one, other) => other - one);
    return counts[this.needed - 1];
  }

  async isLocked(): Promise<boolean> {
    const locked = await Promise.all(this.members.map((member) => member.isLocked()));
    return locked.filter(Boolean).length >= this.needed;
  }

  /** @internal */
  override isOutageOver(calledAt: number, outageTimeout: number): boolean {
    const away = this.members.filter((member) => member.isOutageOver(calledAt, outageTimeout));
    return away.length > this.members.length - this.needed;
  }

  /** Settles when all services are ready. @throws LockConfigurationError with the reason why one is not */
  protected async started(): Promise<void> {
    for (const { services } of this.engines) if (services.starting !== undefined) await services.starting;
  }

  /** How long a call waits. The default is the shortest of all services' defaults. */
  protected waitTermsOf(request: LeaseRequest): WaitTerms {
    const { name, engines } = this;
    const shortest = (timeOf: (engine: LockEngine) => Milliseconds) => Math.min(...engines.map(timeOf)) as Milliseconds;
    const defaults = {
      waitTime: shortest(({ waitDefaults }) => waitDefaults.waitTime),
      outageTimeout: shortest(({ waitDefaults }) => waitDefaults.outageTimeout),
    };
    return toWaitTerms(request.waitTime, defaults, request, `lock() of '${name}'`);
  }

  /** The leaseTime if the leases are not renewed. */
  protected fixedLeaseOf({ leaseTime }: LeaseRequest): Milliseconds | undefined {
    return leaseTime === undefined ? undefined : toFixedLease(leaseTime, `lock() of '${this.name}': leaseTime`);
  }
}

function eachOnce(locks: readonly LockHandle[]): readonly LockHandle[] {
  const known = new Set<string>();
  return locks.filter(({ lockId }) => !known.has(lockId) && known.add(lockId));
}
