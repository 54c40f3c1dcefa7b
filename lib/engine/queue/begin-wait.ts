import type { WaitingPlace } from '../deadlock/nested-wait.js';
import type { LockWaiter } from '../hold/held-lock.js';
import type { Services } from '../services.js';
import type { Caller } from '../wait/caller.js';

/** The queue of a lock. */
interface Queue<Queued> {
  readonly callers: WaitingPlace;
  enqueue(waiter: Queued): void;
}

/** Refuses a caller that arrives during an outage and would not wait for its end. @returns whether it may wait */
export function mayWait({ outages }: Pick<Services, 'outages'>, caller: Caller<never>, key: string): boolean {
  if (!outages.active) return true;
  const refusal = outages.arrived(caller, [key]);
  if (refusal !== undefined) caller.refuse(refusal);
  return refusal === undefined;
}

/**
 * Adds a caller to the queue of a lock.
 *
 * @param isNested whether it runs in a lock scope, so that its wait can be a part of a deadlock
 */
export function beginWait<Queued extends LockWaiter>(
  { deadlocks }: Pick<Services, 'deadlocks'>,
  queue: Queue<Queued>,
  waiter: Queued,
  isNested: boolean,
): void {
  queue.enqueue(waiter);
  if (isNested) deadlocks.add(waiter, queue.callers);
}
