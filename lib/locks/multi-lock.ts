import type { Runtime } from '../backends/runtime.js';
import { type Duration, type Milliseconds, toLeaseTime } from '../engine/duration.js';
import { LockConfigurationError } from '../engine/errors.js';
import { LONGEST_HOLD, PASSED_OVER, ROUNDS_IN_VAIN } from '../engine/several/hold-and-wait.js';
import { CombinedLease, giveBack, type MemberLease } from './combined-lease.js';
import { type CombinedAttempt, CombinedLock } from './combined-lock.js';
import type { ClaimTerms, LockHandle } from './lock-handle.js';
import type { Deadline } from './retry-until-deadline.js';

/**
 * Redisson's RMultiLock: all of several locks, or none, of any kinds and of any services.
 *
 * Normally none is held while another one is waited for; a caller that was passed over for long may hold what it has for a second, so that
 * no order of locks can deadlock and nobody starves. Those of one service and type are acquired by one command where
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
    return new AllOrNone(this.claims, leaseTime, this.engines[0].context.runtime);
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
 * one in hand. Who is passed over for long waits for one after the other in their order, and holds what it has got meanwhile, for a
 * second at most (see HoldAndWait, which does so for the names of one service).
 */
class AllOrNone implements CombinedAttempt {
  private busy: Claim | undefined;
  private rounds = 0;
  private readonly began: number;
  /** It has just held while it waited, and does without until then. */
  private holdsAgainAt = 0;

  constructor(
    private readonly claims: readonly Claim[],
    private readonly leaseTime: Duration | undefined,
    private readonly runtime: Runtime,
  ) {
    this.began = runtime.monotonic();
  }

  run(deadline: Deadline): Promise<CombinedLease> {
    const now = this.runtime.monotonic();
    const passedOver = this.rounds++ >= ROUNDS_IN_VAIN || now - this.began >= PASSED_OVER;
    return passedOver && now >= this.holdsAgainAt ? this.holdAndWait(deadline) : this.tryWithBusy(deadline);
  }

  private async tryWithBusy({ left, signal }: Deadline): Promise<CombinedLease> {
    const { leaseTime, busy } = this;
    const taken = new Map<Claim, MemberLease>();
    if (busy !== undefined) taken.set(busy, await busy({ waitTime: left, leaseTime, signal }));
    for (const claim of this.claims) if (!taken.has(claim)) await this.take(claim, 0, taken, signal);
    return new CombinedLease([...taken.values()], taken.size);
  }

  private async holdAndWait(deadline: Deadline): Promise<CombinedLease> {
    const { runtime, claims, leaseTime } = this;
    const { signal } = deadline;
    const fixed = leaseTime === undefined ? undefined : toLeaseTime(leaseTime, 'lock(): leaseTime');
    const longestHold = Math.min(LONGEST_HOLD, (fixed ?? Number.POSITIVE_INFINITY) / 2);
    const taken = new Map<Claim, MemberLease>();
    let end = Number.POSITIVE_INFINITY;
    for (const claim of claims) {
      const waitTime = Math.max(0, Math.min(deadline.left, end - runtime.monotonic()));
      await this.take(claim, waitTime, taken, signal);
      if (taken.size === 1) end = runtime.monotonic() + longestHold;
    }
    return new CombinedLease([...taken.values()], taken.size);
  }

  /** Gives back what was taken where this one stays busy. */
  private async take(
    claim: Claim,
    waitTime: number,
    taken: Map<Claim, MemberLease>,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      taken.set(claim, await claim({ waitTime, leaseTime: this.leaseTime, signal }));
    } catch (error) {
      await giveBack(taken.values());
      this.busy = claim;
      // Two callers that keep step could be in each other's way for ever.
      this.holdsAgainAt =
        this.runtime.monotonic() + (waitTime > 0 ? LONGEST_HOLD * (1 + this.runtime.random() / 2) : 0);
      throw error;
    }
  }
}
