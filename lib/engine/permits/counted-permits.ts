import type { Subscription, Wake } from '../../backends/subscription.js';
import type { RequestId, SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import { type PermitRequest, type PermitSource, takeWhile } from './permit-source.js';
import type { PermitWaiter } from './permit-waiter.js';
import type { Synchronizer } from './synchronizer.js';

const LARGEST_BATCH = 64;

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
