import type { Runtime } from '../../backends/runtime.js';
import type { Subscription, Wake } from '../../backends/subscription.js';
import type { RequestId, SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import type { Moment } from '../lease/lease-clock.js';
import type { Milliseconds } from '../terms/duration.js';
import type { WaitTerms } from '../waiting/caller.js';
import { lateAnswer } from '../waiting/late-answer.js';
import { newPermitId } from './permit-id.js';
import { type GrantResult, type PermitRequest, type PermitSource, takeWhile } from './permit-source.js';
import { PermitWaiter } from './permit-waiter.js';
import type { PermitWatchdog } from './permit-watchdog.js';
import type { Synchronizer } from './synchronizer.js';

const LARGEST_BATCH = 64;
/** How many permits with ids one call can take. */
export const MAX_LEASED_PERMITS = 1_000;

export interface LeasedPermitTerms extends WaitTerms {
  /** Undefined: the watchdog renews the permits until they are released. */
  readonly leaseTime: Milliseconds | undefined;
}

/** A caller that wants permits with ids. */
export class LeasedPermitWaiter extends PermitWaiter<readonly string[]> {
  declare readonly terms: LeasedPermitTerms;

  constructor(
    semaphore: Synchronizer,
    permits: number,
    terms: LeasedPermitTerms,
    runtime: Runtime,
    granted: (ids: readonly string[]) => void,
    refused: (error: Error) => void,
  ) {
    super(semaphore, permits, terms, runtime, granted, refused);
  }
}

/** Permits that have an id and a lease each. Those without a leaseTime get the watchdog's, and are renewed by it. */
export class LeasedPermits implements PermitSource<LeasedPermitWaiter> {
  constructor(
    private readonly backend: SynchronizerBackend,
    private readonly context: AcquisitionContext,
    private readonly watchdog: PermitWatchdog,
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
    const { runtime, clock, clientId } = this.context;
    const newId = () => newPermitId(clientId, runtime.uuid());
    const ids = waiters.map(({ permits }) => Array.from({ length: permits }, newId));
    const { leaseTime } = waiters[0].terms;
    let sent = clock.now();
    return {
      takesPermits: true,
      send: (repeated) => {
        sent = clock.now();
        return this.take(ids, leaseTime ?? this.watchdog.leaseTime, sent, { ...id, repeated }, initial);
      },
      grant: (index) => {
        if (leaseTime === undefined) this.watchdog.add(this.semaphore, ids[index], sent);
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
    const late = lateAnswer(this.context.clock, sent, leaseTime, undefined, 'refused');
    if (late === undefined) return result;
    this.giveBack(ids.slice(0, result.served).flat());
    return { served: 0, remaining: 0, late };
  }
}
