import { BackendError, type Subscription, type Wake } from '../../backends/lock-backend.js';
import type { Runtime } from '../../backends/runtime.js';
import type { RequestId, SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import type { Milliseconds } from '../duration.js';
import { type Moment, validity } from '../lease/lease-clock.js';
import type { WaitTerms } from '../waiting/caller.js';
import {
  firstAlike,
  type GrantResult,
  type PermitRequest,
  type PermitSource,
  PermitWaiter,
  type Synchronizer,
} from './permit-request.js';
import type { PermitWatchdog } from './permit-watchdog.js';

const LARGEST_GROUP = 64;
/** The most permits with ids that one call may take. */
export const MOST_IDS = 1_000;

/** Permits that are only counted. */
export class CountedPermits implements PermitSource<PermitWaiter<void>> {
  constructor(
    private readonly backend: SynchronizerBackend,
    private readonly semaphore: Synchronizer,
    private readonly giveBack: (permits: number) => void,
  ) {}

  group(callers: Iterable<PermitWaiter<void>>): readonly PermitWaiter<void>[] {
    return firstAlike(callers, LARGEST_GROUP, () => true);
  }

  request(callers: readonly PermitWaiter<void>[], request: RequestId): PermitRequest {
    const sizes = callers.map(({ permits }) => permits);
    return {
      takes: true,
      send: async (repeated) => ({
        served: await this.backend.takePermits(this.semaphore.key, sizes, { ...request, repeated }),
        remaining: -1,
      }),
      grant: (index) => callers[index].grant(),
      takeBack: (indexes) => this.giveBack(indexes.reduce((sum, index) => sum + sizes[index], 0)),
    };
  }

  subscribe(listener: (wake: Wake) => void): Subscription {
    return this.backend.subscribe(this.semaphore.key, 'semaphore', listener);
  }
}

export interface LeaseTerms extends WaitTerms {
  /** Undefined: for as long as they are not given back. */
  readonly leaseTime: Milliseconds | undefined;
}

/** One caller that wants permits with ids. */
export class LeasedPermitWaiter extends PermitWaiter<readonly string[]> {
  declare readonly terms: LeaseTerms;

  constructor(
    semaphore: Synchronizer,
    permits: number,
    terms: LeaseTerms,
    runtime: Runtime,
    granted: (ids: readonly string[]) => void,
    refused: (error: Error) => void,
  ) {
    super(semaphore, permits, terms, runtime, granted, refused);
  }
}

/** Permits with an id and a lease each. Those without a leaseTime get the keeper's, and are kept by it. */
export class LeasedPermits implements PermitSource<LeasedPermitWaiter> {
  constructor(
    private readonly backend: SynchronizerBackend,
    private readonly context: AcquisitionContext,
    private readonly keeper: PermitWatchdog,
    private readonly semaphore: Synchronizer,
    private readonly giveBack: (ids: readonly string[]) => void,
  ) {}

  group(callers: Iterable<LeasedPermitWaiter>): readonly LeasedPermitWaiter[] {
    let permits = 0;
    return firstAlike(callers, LARGEST_GROUP, (first, other) => {
      permits += other.permits;
      return first.terms.leaseTime === other.terms.leaseTime && first.permits + permits <= MOST_IDS;
    });
  }

  request(callers: readonly LeasedPermitWaiter[], request: RequestId): PermitRequest {
    const { runtime, clock } = this.context;
    const newId = () => runtime.uuid().replaceAll('-', '');
    const ids = callers.map(({ permits }) => Array.from({ length: permits }, newId));
    const { leaseTime } = callers[0].terms;
    let sent = clock.now();
    return {
      takes: true,
      send: (repeated) => {
        sent = clock.now();
        return this.take(ids, leaseTime ?? this.keeper.leaseTime, sent, { ...request, repeated });
      },
      grant: (index) => {
        if (leaseTime === undefined) this.keeper.keep(this.semaphore, ids[index], sent);
        callers[index].grant(ids[index]);
      },
      takeBack: (indexes) => this.giveBack(indexes.flatMap((index) => ids[index])),
    };
  }

  subscribe(listener: (wake: Wake) => void): Subscription {
    return this.backend.subscribe(this.semaphore.key, 'semaphore', listener);
  }

  private async take(
    ids: readonly (readonly string[])[],
    leaseTime: number,
    sent: Moment,
    request: RequestId,
  ): Promise<GrantResult> {
    const supplied = await this.backend.takeLeasedPermits(this.semaphore.key, ids, leaseTime, request);
    if (supplied.served === 0 || this.context.clock.age(sent) < validity(leaseTime)) return supplied;
    this.giveBack(ids.slice(0, supplied.served).flat());
    const late = `the answer came after the lease of ${leaseTime} ms had ended`;
    throw new BackendError(late, 'unavailable', 'refused');
  }
}
