import { announceAcquired, startTime } from './lease/announce.js';
import type { HeldLock } from './lease/held-lock.js';
import type { LockLease } from './lease/lock-lease.js';
import type { LockAcquirer } from './lock-acquirer.js';
import { findReentry } from './scope/find-reentry.js';
import { lockScopes } from './scope/lock-scope.js';
import { reenter } from './scope/reentry.js';
import { toLockName } from './terms/lock-name.js';
import type { AcquisitionTerms } from './terms/lock-options.js';
import { abortedError } from './waiting/caller.js';
import { Waiter } from './waiting/waiter.js';

/** Acquires one lock: by re-entry where the running flow holds it already, else by waiting in its queue. */
export function acquireOne(
  engine: LockAcquirer,
  name: string,
  terms: AcquisitionTerms,
  what: string,
): Promise<LockLease> {
  const { context, queues } = engine;
  let queue = queues.get(terms.type, name);
  // The name of a queue was checked when the queue was created.
  const key = queue?.key ?? engine.keyOf(toLockName(name, what), what);
  if (terms.signal?.aborted) throw abortedError({ what: `the lock '${name}'`, name }, terms.signal);
  const hasScope = lockScopes.getStore() !== undefined;
  if (hasScope) {
    const reentry = findReentry(context, key, terms.type);
    if (reentry !== undefined) return reenter(engine, reentry, name, terms);
    // Where the lock proved to be lost, its queue may have ended with it.
    queue = queues.get(terms.type, name);
  }
  const scoped = engine.admit(what, name, hasScope);
  const started = startTime(context);
  return new Promise((resolve, reject) => {
    const granted = (held: HeldLock) => {
      const lease = engine.createLease(held.alone, terms);
      announceAcquired(context, lease, started);
      resolve(lease);
    };
    const waiter = new Waiter<HeldLock>(name, engine.newOwner, terms, context.runtime, granted, reject);
    waiter.scoped = scoped;
    if (context.outages.active) {
      const refusal = context.outages.arrived(waiter, [key]);
      if (refusal !== undefined) return waiter.refuse(refusal);
    }
    const entered = queue ?? engine.newQueue(terms.type, name, key);
    entered.enqueue(waiter);
    if (hasScope) context.nestedWaits.add(waiter, entered);
  });
}
