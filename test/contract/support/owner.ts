import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type Busy,
  type ExpectedHolders,
  type HeldType,
  isTransferable,
  type LockState,
  type OwnerRef,
  type ReleaseReply,
} from '../../../lib/backends/lock-backend.js';
import type { QuorumMember } from '../../../lib/backends/quorum/quorum-member.js';
import { NEVER } from '../../support/time-limits.js';
import type { Client } from './fixture.js';

export const LONG = NEVER;

export type AcquireOptions = Partial<Omit<AcquireRequest, keyof OwnerRef>>;

/** One owner of one lock, with the requests that it sends to its backend. */
export class Owner implements OwnerRef {
  constructor(
    readonly client: Client,
    readonly key: string,
    readonly type: HeldType,
    readonly owner: string,
  ) {}

  private get holding(): OwnerRef {
    return { key: this.key, type: this.type, owner: this.owner };
  }

  /** A lock that one may hold is like any other. */
  private get permits(): { readonly permits?: number } {
    return this.type === 'permits' ? { permits: 1 } : {};
  }

  /** Its backend as a node of a quorum, which each backend is that has the clauses about such nodes. */
  private get member(): QuorumMember {
    return this.client.backend as QuorumMember;
  }

  request(options: AcquireOptions = {}): AcquireRequest {
    return {
      ...this.holding,
      leaseTime: LONG,
      reserve: 0,
      waiterTimeout: 0,
      pastLine: true,
      ...this.permits,
      ...options,
    };
  }

  acquire(options?: AcquireOptions): Promise<AcquireReply> {
    return this.client.backend.acquire(this.request(options));
  }

  /** Acquires a lock that must not be busy. */
  async take(options?: AcquireOptions): Promise<Acquired> {
    const reply = await this.acquire(options);
    if (!reply.acquired) throw new Error(`${this.type} lock ${this.key} is busy, held by ${reply.holder}`);
    return reply;
  }

  /** Tries to acquire a lock that must be busy. */
  async meet(options?: AcquireOptions): Promise<Busy> {
    const reply = await this.acquire(options);
    if (reply.acquired) throw new Error(`${this.type} lock ${this.key} is not busy`);
    return reply;
  }

  /** Acquires without messages, by trying again whenever a busy reply says so. Returns the number of attempts. */
  async takeInTime(options?: AcquireOptions): Promise<number> {
    for (let looks = 1; ; looks++) {
      const reply = await this.acquire(options);
      if (reply.acquired) return looks;
      if (looks === 50)
        throw new Error(`${this.type} lock ${this.key}: still busy, to be asked again in ${reply.remaining} ms`);
      // As long as not all nodes have answered, a quorum may report the lease of a node that lags behind.
      const pause = Math.min(reply.remaining, 5_000);
      await (this.client.clock?.advance(pause) ?? sleep(pause));
    }
  }

  release(): Promise<ReleaseReply> {
    return this.client.backend.release(this.holding);
  }

  releaseQuietly(): Promise<ReleaseReply> {
    return this.member.release({ ...this.holding, quietly: true });
  }

  raiseToken(token: number): Promise<void> {
    return this.member.raiseToken(this.key, this.type, token);
  }

  renew(leaseTime = LONG): Promise<boolean> {
    return this.client.backend.renew({ ...this.holding, leaseTime });
  }

  transferTo(to: Owner, leaseTime = LONG, reserve = 0): Promise<Acquired | undefined> {
    const { key, type, owner: from } = this;
    if (!isTransferable(type)) throw new Error(`a ${type} lock cannot be transferred`);
    return this.client.backend.transfer({ key, type, from, to: to.owner, leaseTime, reserve });
  }

  async refreshWaiter(waiterTimeout = LONG, keptLonger?: () => void, nonce?: string): Promise<boolean> {
    const [kept] = await this.client.backend.refreshWaiters([{ ...this.holding, nonce }], waiterTimeout, keptLonger);
    return kept;
  }

  removeWaiter(): Promise<void> {
    return this.client.backend.removeWaiter(this.holding);
  }

  forceRelease(expected?: ExpectedHolders): Promise<readonly string[]> {
    return this.client.backend.forceRelease(this.key, expected);
  }

  inspect(): Promise<LockState> {
    return this.client.backend.inspect(this.key);
  }

  /** The same owner, in another kind of lock of this name. */
  as(type: HeldType): Owner {
    return new Owner(this.client, this.key, type, this.owner);
  }

  /** The milliseconds that remain of its lease; undefined if it does not hold the lock. */
  async remaining(): Promise<number | undefined> {
    return (await this.inspect()).owners.find(({ owner }) => owner === this.owner)?.remaining;
  }

  async holds(): Promise<boolean> {
    return (await this.remaining()) !== undefined;
  }
}
