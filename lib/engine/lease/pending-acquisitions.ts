import type { Removal } from '../../backends/lock-backend.js';
import { type Linked, LinkedQueue } from '../collections/linked-queue.js';

/**
 * What a forced release did to an owner whose acquisition or transfer was under way. `removed`: it took the lock away, whatever the answer
 * will say. `doubtful`: another process says that it did.
 */
export type Interference = 'removed' | 'doubtful';

/** An acquisition or a transfer that was not answered yet. */
export interface PendingAcquisition extends Linked<PendingAcquisition> {
  readonly key: string;
  /** The owner that will hold the lock. */
  readonly owner: string;
  /** `undefined`: nobody interfered. */
  interference: Interference | undefined;
}

/** For acquisitions whose request cannot serve as a {@link PendingAcquisition}. */
export class PendingOwner implements PendingAcquisition {
  previous: PendingAcquisition | undefined;
  next: PendingAcquisition | undefined;
  interference: Interference | undefined;

  constructor(
    readonly key: string,
    readonly owner: string,
  ) {}
}

/**
 * All acquisitions and transfers of one engine that are under way. What happens to their owners meanwhile is remembered with them, for no
 * longer than their answers take.
 */
export class PendingAcquisitions {
  private readonly pending = new LinkedQueue<PendingAcquisition>();

  /** @param doubted called when an acquisition has ended whose owner may have been removed */
  constructor(private readonly doubted: (removal: Removal) => void) {}

  begin(acquisition: PendingAcquisition): void {
    this.pending.push(acquisition);
  }

  end(acquisition: PendingAcquisition): void {
    this.pending.remove(acquisition);
    if (acquisition.interference === 'doubtful') this.doubted({ key: acquisition.key, owners: [acquisition.owner] });
  }

  interfere({ key, owners }: Removal, interference: Interference): void {
    for (const acquisition of this.pending) {
      if (acquisition.key !== key || acquisition.interference === 'removed') continue;
      if (owners.includes(acquisition.owner)) acquisition.interference = interference;
    }
  }
}
