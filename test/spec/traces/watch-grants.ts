import type { Grant, LockBackend } from '../../../lib/backends/lock-backend.js';
import type { HeldLock } from '../../../lib/engine/hold/held-lock.js';
import { LockQueue } from '../../../lib/engine/queue/lock-queue.js';
import { validity } from '../../../lib/engine/time/lease-clock.js';
import { tracedBackends } from '../../chaos/simulation/simulation-trace.js';

/** Of a class that keeps this to itself. */
interface Inside {
  readonly services: { readonly backend: LockBackend };
}

/** What the message says that a queue begins with, and which lease the caller wants who is next. */
const believed = new WeakMap<LockQueue, { readonly grant: Grant; readonly wanted: number }>();

/**
 * Writes into the traces of simulations which grants processes believe, and until when they count on them. The engine
 * does not report that, so its methods are replaced by ones that call them, in this whole process.
 */
export function watchGrants(): void {
  const queue = LockQueue.prototype;
  const { hold, takeGrant } = queue;

  queue.takeGrant = function (this: LockQueue, first, owner, grant, begun, now) {
    const { terms } = first;
    const isPlain = terms.type === this.type && !terms.fixed && !terms.newest;
    believed.set(this, { grant, wanted: isPlain ? terms.leaseTime : 0 });
    takeGrant.call(this, first, owner, grant, begun, now);
    believed.delete(this);
  };
  queue.hold = function (this: LockQueue, held, now) {
    const said = believed.get(this);
    if (said !== undefined) note(this, held, said.grant, said.wanted);
    hold.call(this, held, now);
  };
}

function note(queue: LockQueue, { key, owner, confirmed, validFor }: HeldLock, grant: Grant, wanted: number): void {
  const traced = tracedBackends.get((queue as unknown as Inside).services.backend);
  const until = confirmed.monotonic + validity(validFor);
  traced?.trace.believed({ process: traced.process, key, owner, grant, wanted, until });
}
