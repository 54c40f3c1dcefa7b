import type { Removal } from '../../backends/lock-backend.js';
import { type Linked, LinkedQueue } from '../collections/linked-queue.js';

/**
 * What a forced release did to an owner whose acquisition or transfer was under way: took the lock from it (whatever the answer says), or
 * perhaps did, as another process says.
 */
export type Interference = 'removed' | 'doubtful';

/** An acquisition or a transfer whose answer is awaited. */
export interface PendingAcquisition extends Linked<PendingAcquisition> {
  readonly key: string;
  /** Who will have the lock. */
  readonly owner: string;
  /** Undefined: nobody interfered. */
  interference: Interference | undefined;
}

/** Where there is no request to use as one. */
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
 * All acquisitions and transfers of one engine that are under way: what is done to their owners meanwhile is remembered with them, and no
 * longer than their answers take.
 */
export class PendingAcquisitions {
  private readonly underWay = new LinkedQueue<PendingAcquisition>();

  /** @param doubted called when one has ended whose owner may have been removed */
  constructor(private readonly doubted: (removal: Removal) => void) {}

  begin(flight: PendingAcquisition): void {
    this.underWay.push(flight);
  }

  end(flight: PendingAcquisition): void {
    this.underWay.remove(flight);
    if (flight.interference === 'doubtful') this.doubted({ key: flight.key, owners: [flight.owner] });
  }

  interfere({ key, owners }: Removal, upset: Interference): void {
    for (const flight of this.underWay) {
      if (flight.key === key && flight.interference !== 'removed' && owners.includes(flight.owner))
        flight.interference = upset;
    }
  }
}
