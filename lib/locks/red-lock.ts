import type { Runtime, Timer } from '../backends/runtime.js';
import { type Duration, FOREVER, type Milliseconds } from '../engine/duration.js';
import { LockBusyError } from '../engine/errors.js';
import { CombinedLease, giveBack, type MemberLease } from './combined-lease.js';
import { type CombinedAttempt, CombinedLock } from './combined-lock.js';
import type { LockHandle } from './lock-handle.js';
import { type Deadline, isRetryable } from './retry-until-deadline.js';

/** How long a member is waited for when there is no `waitTime` to divide, as in Redisson. */
const MEMBER_WAIT = 1_500;

/** Members that answer a little later than the majority are taken along, in ms. */
const SHORTEST_GRACE = 5;

/**
 * Redisson's RRedLock: a lock that is held while a majority of its members is. The members are locks of independent services, each with
 * a Redis of its own; those that cannot be had are given back and not waited for. (The module's option `quorum` does the same for all
 * locks of a service, with one owner instead of several.)
 *
 * ```ts
 * const lock = one.getRedLock(one.getLock('order'), two.getLock('order'), three.getLock('order'));
 * await using lease = await lock.tryLock('2s');
 * if (lease !== null) …
 * ```
 *
 * A busy member is waited for during `waitTime` divided by the number of members (1.5 s without one), then another one.
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

  protected attempt(waitTime: Milliseconds, leaseTime: Duration | undefined): CombinedAttempt {
    const { members, needed, name } = this;
    const { runtime } = this.engines[0].context;
    const memberWait = waitTime === FOREVER ? MEMBER_WAIT : Math.max(1, waitTime / members.length);
    return new Majority(members, needed, name, leaseTime, memberWait, runtime);
  }
}

/** Tries all members at once; without a majority, gives back what it took, and waits for one that was busy before it tries again. */
class Majority implements CombinedAttempt {
  private busy: readonly LockHandle[] = [];
  private round = 0;

  constructor(
    private readonly members: readonly LockHandle[],
    private readonly needed: number,
    private readonly name: string,
    private readonly leaseTime: Duration | undefined,
    private readonly memberWait: number,
    private readonly runtime: Runtime,
  ) {}

  async run(deadline: Deadline): Promise<CombinedLease> {
    const taken = new Map<LockHandle, MemberLease>();
    if (this.round > 0) await this.waitForOne(taken, deadline);
    const errors = await this.tryRest(taken, deadline);
    if (taken.size >= this.needed) return new CombinedLease([...taken.values()], this.needed);
    await giveBack(taken.values());
    this.busy = [...errors].filter(([, error]) => error instanceof LockBusyError).map(([member]) => member);
    this.round++;
    throw this.refusal([...errors.values()]);
  }

  private async waitForOne(taken: Map<LockHandle, MemberLease>, { left, signal }: Deadline): Promise<void> {
    const member = this.busy[this.round % this.busy.length];
    if (member === undefined) return;
    const waitTime = Math.min(left, this.memberWait);
    try {
      taken.set(member, await member.claim({ waitTime, leaseTime: this.leaseTime, signal }));
    } catch (error) {
      if (!isRetryable(error)) throw error;
    }
  }

  /** Settles when enough are taken or too many have failed. Who is slower does not matter any more, and is given back. */
  private async tryRest(taken: Map<LockHandle, MemberLease>, deadline: Deadline): Promise<Map<LockHandle, unknown>> {
    const { members, needed, leaseTime, runtime } = this;
    const errors = new Map<LockHandle, unknown>();
    const enough = new AbortController();
    const signal = AbortSignal.any([deadline.signal, enough.signal]);
    const since = runtime.monotonic();
    let grace: Timer | undefined;
    await new Promise<void>((resolve) => {
      const look = () => {
        const all = taken.size + errors.size === members.length;
        if (all || errors.size > members.length - needed) resolve();
        else if (taken.size >= needed)
          grace ??= runtime.timer(Math.max(SHORTEST_GRACE, runtime.monotonic() - since), resolve);
      };
      for (const member of members.filter((member) => !taken.has(member))) {
        member.claim({ waitTime: 0, leaseTime, signal }).then(
          (lease) => {
            if (enough.signal.aborted) return giveBack([lease]);
            taken.set(member, lease);
            look();
          },
          (error) => {
            if (enough.signal.aborted) return;
            errors.set(member, error);
            look();
          },
        );
      }
      look();
    });
    grace?.cancel();
    enough.abort();
    return errors;
  }

  private refusal(errors: readonly unknown[]): unknown {
    const final = errors.filter((error) => !isRetryable(error));
    if (final.length > this.members.length - this.needed) return final[0];
    const busy = errors.find((error) => error instanceof LockBusyError);
    if (busy === undefined) return errors.find(isRetryable);
    return new LockBusyError(
      `${errors.length} of the ${this.members.length} locks ${this.name} could not be had, and ${this.needed} are needed: ${busy.message}`,
      this.name,
      busy.remainingTime,
      busy.holder,
    );
  }
}
