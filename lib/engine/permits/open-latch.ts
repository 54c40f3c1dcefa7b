import type { Subscription, Wake } from '../../backends/subscription.js';
import type { SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { PermitRequest, PermitSource } from './permit-source.js';
import type { PermitWaiter } from './permit-waiter.js';
import type { Synchronizer } from './synchronizer.js';

/** A latch, which lets all its waiters go on once it is open. */
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
