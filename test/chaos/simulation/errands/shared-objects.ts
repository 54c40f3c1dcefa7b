import type { SeededRandom } from '../../../support/seeded-random.js';
import type { RecordedTicket } from '../../history-recorder.js';

/** A semaphore whose permits are only counted, and one whose permits have leases. */
export const POOL = 'pool';
export const SEATS = 'seats';
/** A lock that as many may hold as there are seats. */
export const PLACES = 'places';

/** One latch, used once. */
export interface Gate {
  readonly name: string;
  readonly count: number;
  /** Its count was set. */
  set: boolean;
  /** How many steps somebody has taken over. */
  claimed: number;
  /** How many steps were answered. */
  counted: number;
  /** It was deleted. */
  ended: boolean;
  readonly since: number;
}

/** What the callers of all processes know about the semaphores and latches that they share. */
export class SharedObjects {
  /** How many permits there are. */
  readonly permits: ReadonlyMap<string, number>;
  readonly gates: Gate[] = [];
  /** The tickets that callers may use, some of which were used before. */
  readonly tickets: RecordedTicket[] = [];
  private made = 0;

  /**
   * @param mortal whether processes may end while they hold permits. Permits that are only counted are then lost, so
   *   nobody waits for them without a limit
   * @param most how many permits of each there are at most
   */
  constructor(
    chance: SeededRandom,
    readonly mortal: boolean,
    most = 4,
  ) {
    const pool = chance.whole(1, most);
    const seats = chance.whole(1, most);
    this.permits = new Map([
      [POOL, pool],
      [SEATS, seats],
      [PLACES, seats],
    ]);
  }

  total(name: string): number {
    return this.permits.get(name) ?? 0;
  }

  add(count: number, since: number): Gate {
    const name = `gate-${++this.made}`;
    const gate = { name, count, set: false, claimed: 0, counted: 0, ended: false, since };
    this.gates.push(gate);
    return gate;
  }

  /** One of the latest latches, open or not. */
  anyGate(chance: SeededRandom): Gate | undefined {
    const set = this.gates.filter((gate) => gate.set);
    return set.length === 0 ? undefined : chance.pick(set.slice(-3));
  }

  /** The first latch that has steps left. */
  get unfinished(): Gate | undefined {
    return this.gates.find(({ set, claimed, count }) => set && claimed < count);
  }

  /** All latches are open. */
  get settled(): boolean {
    return this.gates.every(({ counted, count, ended }) => counted === count || ended);
  }
}
