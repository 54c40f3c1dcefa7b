/** How the permits of a semaphore are held: only counted, or each with an id and a lease. @publicApi */
export type SemaphoreType = 'semaphore' | 'permit-expirable-semaphore';

/**
 * The type of a semaphore or latch. `counter`: a number that may be either. This library records the type when it
 * creates an object; Redisson does not.
 *
 * @publicApi
 */
export type SynchronizerType = SemaphoreType | 'count-down-latch' | 'counter';

/** A permit that is held. @publicApi */
export interface HeldPermit {
  /** The first 16 digits of the permit's id: not enough to release it. */
  readonly id: string;
  /** Milliseconds until the lease ends unless renewed; −1: it has no end. */
  readonly remaining: number;
}

/** The reply of `SynchronizerBackend.inspect`. @publicApi */
export interface SynchronizerState {
  readonly type: SynchronizerType;
  /** The available permits of a semaphore, below zero if more were taken away; the steps left of a latch. */
  readonly count: number;
  /** All permits of a semaphore, including taken ones; the initial count of a latch. Undefined: not known. */
  readonly total: number | undefined;
  /** The number of held permits with a lease. */
  readonly acquired: number;
  /** Up to {@link MOST_PERMITS_SHOWN} held permits, in the order in which their leases end. */
  readonly permits: readonly HeldPermit[];
}

export const MOST_PERMITS_SHOWN = 100;

/** How many digits of a permit's id are shown. All 32 digits would allow anybody to release the permit. */
export const SHOWN_ID_DIGITS = 16;

/** The note stored beside a semaphore or latch when it is created. */
export interface SynchronizerNote {
  readonly type: SynchronizerType;
  readonly total: number | undefined;
}

/**
 * The state of an object according to its note. The note may be out of date: Redisson changes and deletes the number
 * without updating it.
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
