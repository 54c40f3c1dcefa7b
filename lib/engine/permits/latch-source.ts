import type { Subscription, Wake } from '../../backends/lock-backend.js';
import type { SynchronizerBackend } from '../../backends/synchronizer-backend.js';
import type { PermitRequest, PermitSource, PermitWaiter, Synchronizer } from './permit-request.js';

/** An open latch, of which there is enough for everybody. */
export class LatchSource implements PermitSource<PermitWaiter<void>> {
  constructor(
    private readonly backend: SynchronizerBackend,
    private readonly latch: Synchronizer,
  ) {}

  group(callers: Iterable<PermitWaiter<void>>): readonly PermitWaiter<void>[] {
    return [...callers];
  }

  request(callers: readonly PermitWaiter<void>[]): PermitRequest {
    return {
      takes: false,
      send: async () => {
        const isOpen = (await this.backend.getCount(this.latch.key)) === 0;
        return { served: isOpen ? callers.length : 0, remaining: -1 };
      },
      grant: (index) => callers[index].grant(),
      takeBack: () => {},
    };
  }

  subscribe(listener: (wake: Wake) => void): Subscription {
    return this.backend.subscribe(this.latch.key, 'latch', listener);
  }
}
