import { BackOff } from '../backends/back-off.js';
import type { Runtime, Timer } from '../backends/runtime.js';
import { LockBusyError } from '../engine/errors.js';
import { type Duration, FOREVER } from '../engine/terms/duration.js';
import { CombinedLease, type MemberLease, releaseUnused } from './combined-lease.js';
import { CombinedLock } from './combined-lock.js';
import type { Deadline } from './deadline.js';
import type { LeaseRequest, LockHandle } from './lock-handle.js';
import { isRetryable, retryUntilDeadline } from './retry-until-deadline.js';

/** How long to wait for a member when there is no `waitTime` to divide, in milliseconds, as in Redisson. */
const MEMBER_WAIT_TIME = 1_500;

/**
 * The shortest and the longest pause between attempts, in milliseconds. Callers that hold each other's missing locks
 * must not stay in step.
 */
const FIRST_PAUSE = 1;
const LONGEST_PAUSE = 100;

/**
 * Redisson's RRedLock: a lock that is held while a majority of its members is. The members are locks of independent
 * services, each with its own Redis. Members that are not acquired in time are left out, and are released again if they
 * are acquired later. (The module's option `quorum` does the same for all locks of a service, with one owner instead of
 * several.)
 *
 * ```ts
 * const lock = one.getRedLock(one.getLock('order'), two.getLock('order'), three.getLock('order'));
 * await using lease = await lock.tryLock('2s');
 * if (lease !== null) …
 * ```
 *
 * A call waits for one busy member at a time, for `waitTime` divided by the number of members (1.5 s without one).
 *
 * @see https://redis.io/docs/latest/develop/use/patterns/distributed-locks/
 * @publicApi
 */
export class RedLock extends CombinedLock {
  /** @internal */
  readonly needed: number;

  /** @internal */
  constructor(locks: readonly LockHandle[]) {
    super('getRedLock()', locks);
    this.needed = Math.floor(this.members.length / 2) + 1;
  }

  /** @internal */
  async acquireLease(request: LeaseRequest): Promise<MemberLease> {
    const { members, needed, name, engines } = this;
    const { leaseTime } = request;
    const { runtime } = engines[0].settings;
    const terms = this.waitTermsOf(request);
    const { waitTime } = terms;
    const memberWaitTime = waitTime === FOREVER ? MEMBER_WAIT_TIME : Math.max(1, waitTime / members.length);
    // If all members are needed, the wait for one of them can be part of a deadlock.
    const tentative = request.tentative === true || needed < members.length;
    const acquisition = new MajorityAcquisition({
      members,
      needed,
      name,
      leaseTime,
      memberWaitTime,
      tentative,
      runtime,
    });
    const backOff = new BackOff(runtime, FIRST_PAUSE, LONGEST_PAUSE);
    const backends = engines.map(({ settings }) => settings.backend);
    return retryUntilDeadline({ runtime, terms, lock: this, backends, backOff }, async (deadline) => {
      const lease = new CombinedLease(await acquisition.attempt(deadline), needed, engines);
      await lease.refresh(leaseTime);
      return lease;
    });
  }
}

/** The shortest time to wait for members that answer a little later than the majority, in milliseconds. */
const SHORTEST_GRACE = 5;

interface MajorityTerms {
  readonly members: readonly LockHandle[];
  /** The size of a majority. */
  readonly needed: number;
  /** The name of the red lock in errors. */
  readonly name: string;
  readonly leaseTime: Duration | undefined;
  /** How long to wait for one busy member, in milliseconds. */
  readonly memberWaitTime: number;
  /** The caller can do without any single member, or without the red lock. */
  readonly tentative: boolean;
  readonly runtime: Runtime;
}

/** The answers of the members to one attempt. */
interface Answers {
  readonly leases: Map<LockHandle, MemberLease>;
  readonly errors: Map<LockHandle, unknown>;
}

/**
 * Acquires a majority of the members of a red lock. It tries all at once. Without a majority it gives back the acquired
 * members, and its next attempt first waits for one member that was busy.
 */
class MajorityAcquisition {
  private busy: readonly LockHandle[] = [];
  private failedAttempts = 0;

  constructor(private readonly terms: MajorityTerms) {}

  /**
   * @returns the leases that make up the combined lease
   * @throws the error that prevented a majority; nothing is held then
   */
  async attempt(deadline: Deadline): Promise<readonly MemberLease[]> {
    const answers: Answers = { leases: new Map(), errors: new Map() };
    const { leases, errors } = answers;
    if (this.failedAttempts > 0) await this.waitForBusyMember(leases, deadline);
    await this.tryTheOthers(answers, deadline);
    if (leases.size >= this.terms.needed) return [...leases.values()];
    await releaseUnused(leases.values());
    this.busy = [...errors].filter(([, error]) => error instanceof LockBusyError).map(([member]) => member);
    this.failedAttempts++;
    throw this.failure([...errors.values()]);
  }

  /** Waits for a different member each time. */
  private async waitForBusyMember(
    leases: Map<LockHandle, MemberLease>,
    { remaining, signal }: Deadline,
  ): Promise<void> {
    const { leaseTime, memberWaitTime, tentative } = this.terms;
    const member = this.busy[this.failedAttempts % this.busy.length];
    if (member === undefined) return;
    const waitTime = Math.min(remaining, memberWaitTime);
    try {
      leases.set(member, await member.acquireLease({ waitTime, leaseTime, signal, tentative }));
    } catch (error) {
      if (!isRetryable(error)) throw error;
    }
  }

  /** Settles when enough members are acquired, or too many have failed. A lease that arrives later is given back. */
  private async tryTheOthers({ leases, errors }: Answers, deadline: Deadline): Promise<void> {
    const { members, needed, leaseTime, runtime } = this.terms;
    const over = new AbortController();
    const signal = AbortSignal.any([deadline.signal, over.signal]);
    let isOver = false;
    const since = runtime.monotonic();
    let grace: Timer | undefined;
    await new Promise<void>((resolve) => {
      const answered = () => {
        const haveAllAnswered = leases.size + errors.size === members.length;
        if (haveAllAnswered || errors.size > members.length - needed) resolve();
        else if (leases.size >= needed)
          grace ??= runtime.timer(Math.max(SHORTEST_GRACE, runtime.monotonic() - since), resolve);
      };
      for (const member of members.filter((member) => !leases.has(member))) {
        member.acquireLease({ waitTime: 0, leaseTime, signal }).then(
          (lease) => {
            if (isOver) return releaseUnused([lease]);
            leases.set(member, lease);
            answered();
          },
          (error) => {
            if (isOver) return;
            errors.set(member, error);
            answered();
          },
        );
      }
      answered();
    });
    grace?.cancel();
    isOver = true;
    over.abort();
  }

  /** The error that prevented a majority. Permanent errors come before busy locks, and busy locks before outages. */
  private failure(errors: readonly unknown[]): unknown {
    const { members, needed, name } = this.terms;
    const lasting = errors.filter((error) => !isRetryable(error));
    if (lasting.length > members.length - needed) return lasting[0];
    const busy = errors.find((error) => error instanceof LockBusyError);
    if (busy === undefined) return errors.find(isRetryable);
    return new LockBusyError(
      `${errors.length} of the ${members.length} locks ${name} could not be acquired, and ${needed} are needed: ${busy.message}`,
      name,
      busy.remainingTime,
      busy.holder,
    );
  }
}
