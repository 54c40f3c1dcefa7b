/** How the permits of a semaphore are held: only counted, or each with an id and a lease. @publicApi */
export type SemaphoreType = 'semaphore' | 'permit-expirable-semaphore';

/**
 * The type of a semaphore or latch. `counter`: a number that may be either. This library notes the type when it
 * sets one up; Redisson does not.
 *
 * @publicApi
 */
export type SynchronizerType = SemaphoreType | 'count-down-latch' | 'counter';

/** A permit that is held. @publicApi */
export interface HeldPermit {
  /** The first 16 digits of its id. Nobody can release it with them. */
  readonly id: string;
  /** Milliseconds until its lease ends unless renewed; −1: it has no end. */
  readonly remaining: number;
}

/** The result of `SynchronizerBackend.inspect`. @publicApi */
export interface SynchronizerState {
  readonly type: SynchronizerType;
  /**
   * How many permits of a semaphore are available, below zero after more were taken away; of a latch, how many steps
   * are left.
   */
  readonly count: number;
  /**
   * How many permits there are, including those that are taken; the count that a latch was given. Undefined: not known.
   */
  readonly total: number | undefined;
  /** How many permits with a lease are held. */
  readonly acquired: number;
  /** Up to {@link MOST_PERMITS_SHOWN} of them; the one whose lease ends first comes first. */
  readonly permits: readonly HeldPermit[];
}

export const MOST_PERMITS_SHOWN = 100;

/** How many digits of a permit's id are shown. With the other 16, anybody could release the permit. */
export const SHOWN_ID_DIGITS = 16;

/** The note that is kept beside a semaphore or latch that was set up. */
export interface SynchronizerNote {
  readonly type: SynchronizerType;
  readonly total: number | undefined;
}

/**
 * Interprets a note that may be out of date, because only this library writes it: Redisson also changes and deletes
 * the number beside it.
 */
export function synchronizerState(
  note: SynchronizerNote | undefined,
  count: number,
  acquired: number,
  permits: readonly HeldPermit[],
): SynchronizerState {
  const held = { count, acquired, permits };
  if (acquired > 0 || note?.type === 'permit-expirable-semaphore')
    return { type: 'permit-expirable-semaphore', total: count + acquired, ...held };
  // A latch is deleted at zero.
  if (note === undefined || (note.type === 'count-down-latch' && count <= 0))
    return { type: 'counter', total: undefined, ...held };
  const { type, total } = note;
  return { type, total: total !== undefined && total >= count ? total : undefined, ...held };
}
