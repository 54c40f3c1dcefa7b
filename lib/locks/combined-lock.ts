import { BackOff } from '../backends/back-off.js';
import type { Duration, Milliseconds } from '../engine/duration.js';
import { LockConfigurationError, LockKeyError } from '../engine/errors.js';
import type { LockEngine } from '../engine/lock-engine.js';
import type { CombinedLease, MemberLease } from './combined-lease.js';
import { type ClaimTerms, LockHandle } from './lock-handle.js';
import { type Deadline, retryUntilDeadline } from './retry-until-deadline.js';
import { toWaitTerms } from './wait-options.js';

/** Callers who each bring what the other one lacks could go on swapping for ever, if they kept step. */
const FIRST_PAUSE = 1;
const LONGEST_PAUSE = 100;

/** Tries at the members, one after the other; each knows what stood in the way of the one before. */
export interface CombinedAttempt {
  /** @throws what stood in the way, with nothing in hand */
  run(deadline: Deadline): Promise<CombinedLease>;
}

/** A lock that is made of others: it is held while so many of them are. */
export abstract class CombinedLock extends LockHandle {
  readonly name: string;
  /** In an order that all processes share, each once. @internal */
  readonly members: readonly LockHandle[];
  /** @internal */
  readonly identity: string;
  /** @internal */
  readonly order: string;
  /** @internal */
  readonly engines: readonly LockEngine[];
  /** @internal */
  readonly batch = undefined;

  /** @throws LockKeyError when there are no members, LockConfigurationError when one is no lock */
  protected constructor(title: 'getMultiLock()' | 'getRedLock()', members: readonly LockHandle[]) {
    super();
    if (members.length === 0) throw new LockKeyError(`${title}: there are no locks; nothing would be locked`, '');
    for (const member of members) {
      if (typeof member?.claim !== 'function')
        throw new LockConfigurationError(`${title}: one of the locks is ${typeof member}; give what getLock() returns`);
    }
    const known = new Set<string>();
    const sorted = [...members].sort((one, other) => Number(one.order > other.order) - Number(one.order < other.order));
    this.members = sorted.filter(({ identity }) => !known.has(identity) && known.add(identity));
    this.name = this.members.map(({ name }) => name).join(', ');
    this.identity = `${title} ${[...known].sort().join(' + ')}`;
    this.order = this.members[0].order;
    this.engines = this.members.flatMap(({ engines }) => engines);
  }

  /** How many members have to be held. @internal */
  abstract readonly needed: number;

  /** @internal */
  protected abstract attempt(waitTime: Milliseconds, leaseTime: Duration | undefined): CombinedAttempt;

  getHoldCount(): number {
    const counts = this.members.map((member) => member.getHoldCount()).sort((one, other) => other - one);
    return counts[this.needed - 1];
  }

  async isLocked(): Promise<boolean> {
    const locked = await Promise.all(this.members.map((member) => member.isLocked()));
    return locked.filter((is) => is).length >= this.needed;
  }

  /** @internal */
  async claim({ waitTime, leaseTime, signal }: ClaimTerms): Promise<MemberLease> {
    const { runtime } = this.engines[0].context;
    const patience = Math.min(...this.engines.map(({ settings }) => settings.waitTime)) as Milliseconds;
    const terms = toWaitTerms(waitTime, patience, { signal }, `lock() of '${this.name}'`);
    const attempt = this.attempt(terms.waitTime, leaseTime);
    const backOff = new BackOff(runtime, FIRST_PAUSE, LONGEST_PAUSE);
    const backends = this.engines.map(({ context }) => context.backend);
    return retryUntilDeadline(runtime, terms, this.name, backends, backOff, async (deadline) => {
      const lease = await attempt.run(deadline);
      await lease.refresh(leaseTime);
      return lease;
    });
  }
}
