import type { WaitingPlace } from '../deadlock/nested-wait.js';
import type { LockWaiter } from '../hold/held-lock.js';
import type { Services } from '../services.js';
import { abortedError, type Caller } from '../wait/caller.js';

/** The queue of a lock. */
interface Queue<Queued> {
  readonly callers: WaitingPlace;
  enqueue(waiter: Queued): void;
}

/**
 * Lets a caller in, or refuses it, because its signal was aborted before, or as {@link mayWait} does.
 *
 * @param what the name of the call in errors
 * @param hasScope whether the caller runs in a scope of any service, if that is known
 * @returns whether it may wait
 * @throws LockAbortedError when the service is closed
 */
export function admitCaller(
  services: Pick<Services, 'admission' | 'outages'>,
  caller: Caller<never>,
  what: string,
  key: string,
  hasScope?: boolean,
): boolean {
  const { signal } = caller.terms;
  if (signal?.aborted) {
    caller.refuse(abortedError(caller, signal));
    return false;
  }
  caller.scoped = services.admission.admit(what, caller.name, hasScope);
  return mayWait(services, caller, key);
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
