import { ExpiringMap, isPast } from '../../../../lib/backends/expiring-map.js';
import type { StoredResult } from '../../../../lib/backends/flight-backend.js';

/** For how many milliseconds after a run has ended its record of a forgotten result is kept. */
const LONGER = 10_000;

/**
 * Records when results were forgotten since the run began: the first and the last time. Both times are readings.
 */
interface Forgotten {
  readonly first: number;
  readonly last: number;
  /** Until when the record is kept if nobody holds the lock. */
  until: number;
}

interface KeptResult {
  readonly result: StoredResult;
  /** When its run ended, in milliseconds of the store's clock. */
  readonly endTime: number;
  readonly until: number;
}

/** The results of single flights by the keys of their locks, and the records of forgotten results. */
export class FlightStore {
  readonly results = new ExpiringMap<KeptResult>(({ until }, now) => until <= now);
  /** The latest time at which somebody may still wait for a result. */
  readonly wanted = new ExpiringMap(isPast);
  /** A record is kept while the lock is held, and a little longer. */
  private readonly forgotten: ExpiringMap<Forgotten>;

  /** @param isHeld whether somebody holds the lock */
  constructor(isHeld: (key: string, now: number) => boolean) {
    this.forgotten = new ExpiringMap((note, now, key) => {
      if (isHeld(key, now)) note.until = now + LONGER;
      return note.until <= now;
    });
  }

  forget(key: string, at: number, now: number): void {
    const { first } = this.forgotten.get(key, now) ?? { first: at };
    this.forgotten.set(key, { first, last: at, until: now + LONGER }, now);
  }

  /** Called when a new run begins. Results that were forgotten earlier do not concern it. */
  begin(key: string): void {
    this.forgotten.delete(key);
  }

  /**
   * When results were first forgotten since this token of a run; undefined if they were not. The same as in
   * release-flight-5.lua.
   */
  forgottenSince(key: string, token: number, now: number): number | undefined {
    const note = this.forgotten.get(key, now);
    return note === undefined || note.last <= token ? undefined : Math.max(note.first, token);
  }
}
