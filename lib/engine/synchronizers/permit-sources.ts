import type { Subscription, Wake } from '../../backends/subscription.js';
import type { RequestId, SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import { lateAnswer } from '../ask/attempt.js';
import type { Services } from '../services.js';
import type { Milliseconds } from '../terms/duration.js';
import type { WaitTerms } from '../terms/wait-terms.js';
import type { Moment } from '../time/lease-clock.js';
import { newPermitId } from './permit-id.js';
import type { GrantResult, PermitRequest, PermitSource, PermitWaiter } from './permit-queue.js';
import type { RenewedPermits } from './renewed-permits.js';
import type { Synchronizer } from './synchronizer.js';

/** The most callers that one request serves. */
const LARGEST_BATCH = 64;
/** The most permits with ids that one call can take. */
export const MAX_LEASED_PERMITS = 1_000;

export interface LeasedPermitTerms extends WaitTerms {
  /** If it is undefined, the watchdog renews the permits until they are released. */
  readonly leaseTime: Milliseconds | undefined;
}

type LeasedPermitWaiter = PermitWaiter<readonly string[], LeasedPermitTerms>;

/** Permits that are only counted. */
export class CountedPermits implements PermitSource<PermitWaiter<void>> {
  constructor(
    private readonly backend: SynchronizerBackend,
    private readonly semaphore: Synchronizer,
    private readonly giveBack: (permits: number) => void,
    private readonly onMissing: () => void,
  ) {}

  selectBatch(waiters: Iterable<PermitWaiter<void>>): readonly PermitWaiter<void>[] {
    return takeWhile(waiters, LARGEST_BATCH, () => true);
  }

  request(waiters: readonly PermitWaiter<void>[], id: RequestId, initial: number | undefined): PermitRequest {
    const sizes = waiters.map(({ permits }) => permits);
    return {
      takesPermits: true,
      send: async (repeated) => {
        const served = await this.backend.takePermits(this.semaphore.key, sizes, { ...id, repeated }, initial);
        if (served >= 0) return { served, remaining: -1 };
        this.onMissing();
        return { served: 0, remaining: -1, missing: true };
      },
      grant: (index) => waiters[index].grant(),
      giveBack: (indexes) => this.giveBack(indexes.reduce((sum, index) => sum + sizes[index], 0)),
    };
  }

  subscribe(listener: (wake: Wake) => void): Subscription {
    return this.backend.subscribe(this.semaphore.key, 'semaphore', listener);
  }
}

/** Permits with an id and a lease each. Without a leaseTime, they get the watchdog's lease and are renewed. */
export class LeasedPermits implements PermitSource<LeasedPermitWaiter> {
  constructor(
    private readonly backend: SynchronizerBackend,
    private readonly services: Pick<Services, 'clientId' | 'clock' | 'runtime'>,
    private readonly renewedPermits: RenewedPermits,
    private readonly semaphore: Synchronizer,
    private readonly giveBack: (ids: readonly string[]) => void,
    private readonly onMissing: () => void,
  ) {}

  selectBatch(waiters: Iterable<LeasedPermitWaiter>): readonly LeasedPermitWaiter[] {
    let permits = 0;
    return takeWhile(waiters, LARGEST_BATCH, (first, other) => {
      permits += other.permits;
      return first.terms.leaseTime === other.terms.leaseTime && first.permits + permits <= MAX_LEASED_PERMITS;
    });
  }

  request(waiters: readonly LeasedPermitWaiter[], id: RequestId, initial: number | undefined): PermitRequest {
    const { runtime, clock, clientId } = this.services;
    const newId = () => newPermitId(clientId, runtime.uuid());
    const ids = waiters.map(({ permits }) => Array.from({ length: permits }, newId));
    const { leaseTime } = waiters[0].terms;
    let sent = clock.now();
    return {
      takesPermits: true,
      send: (repeated) => {
        sent = clock.now();
        return this.take(ids, leaseTime ?? this.renewedPermits.leaseTime, sent, { ...id, repeated }, initial);
      },
      grant: (index) => {
        if (leaseTime === undefined) this.renewedPermits.add(this.semaphore, ids[index], sent);
        waiters[index].grant(ids[index]);
      },
      giveBack: (indexes) => this.giveBack(indexes.flatMap((index) => ids[index])),
    };
  }

  subscribe(listener: (wake: Wake) => void): Subscription {
    return this.backend.subscribe(this.semaphore.key, 'semaphore', listener);
  }

  private async take(
    ids: readonly (readonly string[])[],
    leaseTime: number,
    sent: Moment,
    id: RequestId,
    initial: number | undefined,
  ): Promise<GrantResult> {
    const result = await this.backend.takeLeasedPermits(this.semaphore.key, ids, leaseTime, id, initial);
    if (result.missing) this.onMissing();
    if (result.served === 0) return result;
    const late = lateAnswer(this.services.clock, sent, leaseTime, undefined, 'refused');
    if (late === undefined) return result;
    this.giveBack(ids.slice(0, result.served).flat());
    return { served: 0, remaining: 0, late };
  }
}

/** A latch. When it is open, all its waiters are served. */
export class OpenLatch implements PermitSource<PermitWaiter<void>> {
  constructor(
    private readonly backend: SynchronizerBackend,
    private readonly latch: Synchronizer,
  ) {}

  selectBatch(waiters: Iterable<PermitWaiter<void>>): readonly PermitWaiter<void>[] {
    return [...waiters];
  }

  request(waiters: readonly PermitWaiter<void>[]): PermitRequest {
    return {
      takesPermits: false,
      send: async () => {
        const isOpen = (await this.backend.getCount(this.latch.key)) === 0;
        return { served: isOpen ? waiters.length : 0, remaining: -1 };
      },
      grant: (index) => waiters[index].grant(),
      giveBack: () => {},
    };
  }

  subscribe(listener: (wake: Wake) => void): Subscription {
    return this.backend.subscribe(this.latch.key, 'latch', listener);
  }
}

/** The first waiters, at most `limit`, up to the first one that cannot share their request. */
function takeWhile<Waiter>(
  waiters: Iterable<Waiter>,
  limit: number,
  fits: (first: Waiter, other: Waiter) => boolean,
): readonly Waiter[] {
  const batch: Waiter[] = [];
  for (const waiter of waiters) {
    if (batch.length === limit || (batch.length > 0 && !fits(batch[0], waiter))) break;
    batch.push(waiter);
  }
  return batch;
}
