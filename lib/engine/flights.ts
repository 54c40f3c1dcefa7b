import type { Removal } from '../backends/lock-backend.js';
import { type Linked, LinkedQueue } from './linked-queue.js';

/**
 * What a forced release did to an owner whose acquisition or transfer was under way: took the lock from it (whatever the answer says), or
 * perhaps did, as another process says.
 */
export type Upset = 'removed' | 'doubtful';

/** An acquisition or a transfer whose answer is awaited. */
export interface Flight extends Linked<Flight> {
  readonly key: string;
  /** Who will have the lock. */
  readonly owner: string;
  /** Undefined: nobody interfered. */
  upset: Upset | undefined;
}

/** Where there is no request to use as one. */
export class OwnFlight implements Flight {
  previous: Flight | undefined;
  next: Flight | undefined;
  upset: Upset | undefined;

  constructor(
    readonly key: string,
    readonly owner: string,
  ) {}
}

/**
 * All acquisitions and transfers of one engine that are under way: what is done to their owners meanwhile is remembered with them, and no
 * longer than their answers take.
 */
export class Flights {
  private readonly underWay = new LinkedQueue<Flight>();

  /** @param doubted called when one has ended whose owner may have been removed */
  constructor(private readonly doubted: (removal: Removal) => void) {}

  begin(flight: Flight): void {
    this.underWay.push(flight);
  }

  end(flight: Flight): void {
    this.underWay.remove(flight);
    if (flight.upset === 'doubtful') this.doubted({ key: flight.key, owners: [flight.owner] });
  }

  disturb({ key, owners }: Removal, upset: Upset): void {
    for (const flight of this.underWay) {
      if (flight.key === key && flight.upset !== 'removed' && owners.includes(flight.owner)) flight.upset = upset;
    }
  }
}
