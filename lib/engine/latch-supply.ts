import type { Subscription, Wake } from '../backends/lock-backend.js';
import type { SynchronizerBackend } from '../backends/synchronizer-backend.js';
import type { Contender, Question, Supply, Synchronizer } from './supply.js';

/** An open latch, of which there is enough for everybody. */
export class OpenLatch implements Supply<Contender<void>> {
  constructor(
    private readonly backend: SynchronizerBackend,
    private readonly latch: Synchronizer,
  ) {}

  group(callers: Iterable<Contender<void>>): readonly Contender<void>[] {
    return [...callers];
  }

  question(callers: readonly Contender<void>[]): Question {
    return {
      takes: false,
      ask: async () => {
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
