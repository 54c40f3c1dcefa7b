import type { Grant, Wake } from '../../../lib/backends/lock-backend.js';
import type { HeldLock } from '../../../lib/engine/hold/held-lock.js';
import { validity } from '../../../lib/engine/hold/lease-clock.js';
import { LockQueue } from '../../../lib/engine/queue/lock-queue.js';
import type { SimulatedLink } from '../../chaos/simulation/simulated/simulated-link.js';
import type { SimulationTrace } from '../../chaos/simulation/simulation-trace.js';

/** Of a class that keeps this to itself. */
interface Inside {
  readonly services: { readonly backend: SimulatedLink };
  takeGrant(line: unknown, wake: Wake): boolean;
}

/** What the message says that a queue has just heard. */
const heard = new WeakMap<LockQueue, Grant>();

/**
 * Writes into the traces of simulations which grants processes believe, and until when they count on them. The engine
 * does not report that, so its methods are replaced by ones that call them, in this whole process.
 */
export function watchGrants(): void {
  const queue = LockQueue.prototype;
  const inside = queue as unknown as Inside;
  const { hold } = queue;
  const { takeGrant } = inside;

  inside.takeGrant = function (this: Inside & LockQueue, line, wake) {
    if (wake.kind === 'message' && wake.grant !== undefined) heard.set(this, wake.grant);
    const isTaken = takeGrant.call(this, line, wake);
    heard.delete(this);
    return isTaken;
  };
  // Before the request for its full lease is sent.
  queue.hold = function (this: LockQueue, held, now) {
    const grant = heard.get(this);
    if (grant !== undefined && held.claim !== undefined) note(this, held, grant);
    hold.call(this, held, now);
  };
}

function note(queue: LockQueue, { key, owner, leaseTime, confirmed, validFor }: HeldLock, grant: Grant): void {
  const { process, settings } = (queue as unknown as Inside).services.backend;
  const until = confirmed.monotonic + validity(validFor);
  const trace = settings?.trace as SimulationTrace | undefined;
  trace?.believed({ process: process.name, key, owner, grant, leaseTime, until });
}
