import type { Duration, Milliseconds } from '../engine/duration.js';
import { LockConfigurationError } from '../engine/errors.js';
import { CombinedLease, giveBack, type MemberLease } from './combined-lease.js';
import { type CombinedAttempt, CombinedLock } from './combined-lock.js';
import type { ClaimTerms, LockHandle } from './lock-handle.js';
import type { Deadline } from './persevere.js';

/**
 * Redisson's RMultiLock: all of several locks, or none, of any kinds and of any services.
 *
 * While one of them is busy, none is held: no order of locks can deadlock. Those of one service and type are acquired by one command where
 * the backend can. It gives one lease: held while all members are, with a token for each of them, and `run()` is a scope in each service.
 *
 * ```ts
 * const both = locks.getMultiLock(locks.getLock('stock:1'), archive.getLock('stock:2'));
 * await using lease = await both.lock();
 * ```
 *
 * @publicApi
 */
export class MultiLock extends CombinedLock {
  /** @internal */
  readonly needed: number;
  private readonly claims: readonly Claim[];

  /** @internal */
  constructor(locks: readonly LockHandle[]) {
    super(
      'getMultiLock()',
      locks.flatMap((lock) => lock?.parts ?? [lock]),
    );
    this.needed = this.members.length;
    this.refuseContradictions();
    this.claims = claimsOf(this.members);
  }

  /** @internal */
  override get parts(): readonly LockHandle[] {
    return this.members;
  }

  /** @internal */
  override claim(terms: ClaimTerms): Promise<MemberLease> {
    return this.claims.length === 1 ? this.claims[0](terms) : super.claim(terms);
  }

  protected attempt(_waitTime: Milliseconds, leaseTime: Duration | undefined): CombinedAttempt {
    return new AllOrNone(this.claims, leaseTime);
  }

  private refuseContradictions(): void {
    const known = new Map<string, LockHandle>();
    for (const member of this.members) {
      for (const { settings } of member.engines) {
        const name = `${settings.clientId} ${member.name}`;
        if (known.has(name))
          throw new LockConfigurationError(
            `getMultiLock(): the lock '${member.name}' is in it in two ways, which exclude each other: it would wait for itself`,
          );
        known.set(name, member);
      }
    }
  }
}

type Claim = (terms: ClaimTerms) => Promise<MemberLease>;

/** Members of one service and type go together. */
function claimsOf(members: readonly LockHandle[]): Claim[] {
  const groups = new Map<string | LockHandle, LockHandle[]>();
  for (const member of members) {
    const { batch } = member;
    const id = batch === undefined ? member : `${batch.engine.settings.clientId} ${batch.type}`;
    groups.set(id, [...(groups.get(id) ?? []), member]);
  }
  return [...groups.values()].map((group) => {
    const [{ batch }] = group;
    if (batch === undefined || group.length === 1) return (terms) => group[0].claim(terms);
    const { engine, type } = batch;
    const names = group.map(({ name }) => name);
    return (terms) => engine.acquire(names, { ...terms, type }, 'lock()');
  });
}

/**
 * Takes what is free, one after the other; when one is busy, gives back what it took, waits for the busy one, and tries again with that
 * one in hand.
 */
class AllOrNone implements CombinedAttempt {
  private busy: Claim | undefined;

  constructor(
    private readonly claims: readonly Claim[],
    private readonly leaseTime: Duration | undefined,
  ) {}

  async run({ left, signal }: Deadline): Promise<CombinedLease> {
    const { leaseTime, busy } = this;
    const taken = new Map<Claim, MemberLease>();
    if (busy !== undefined) taken.set(busy, await busy({ waitTime: left, leaseTime, signal }));
    for (const claim of this.claims) {
      if (taken.has(claim)) continue;
      try {
        taken.set(claim, await claim({ waitTime: 0, leaseTime, signal }));
      } catch (error) {
        await giveBack(taken.values());
        this.busy = claim;
        throw error;
      }
    }
    return new CombinedLease([...taken.values()], taken.size);
  }
}
