import type { Grant, Wake } from '../../../lib/backends/lock-backend.js';
import type { HeldLock } from '../../../lib/engine/hold/held-lock.js';
import { validity } from '../../../lib/engine/hold/lease-clock.js';
import { LockQueue } from '../../../lib/engine/queue/lock-queue.js';
import type { SimulatedLink } from '../../chaos/simulation/simulated/simulated-link.js';
import type { SimulationTrace } from '../../chaos/simulation/simulation-trace.js';

/** Of a class that keeps this to itself. */
interface Inside {
  readonly services: { readonly backend: SimulatedLink };
  takeGrant(this: unknown, line: unknown, wake: Wake): boolean;
}

/** What the message says that a queue has just heard, and which lease the caller wants who is next. */
const heard = new WeakMap<LockQueue, { readonly grant: Grant; readonly wanted: number }>();

/**
 * Writes into the traces of simulations which grants processes believe, and until when they count on them. The engine
 * does not report that, so its methods are replaced by ones that call them, in this whole process.
 */
export function watchGrants(): void {
  const queue = LockQueue.prototype;
  const inside = queue as unknown as Inside;
  const { hold } = queue;
  const { takeGrant } = inside;

  inside.takeGrant = function (this: LockQueue, line, wake) {
    const { type, waiting } = this;
    const terms = waiting.first?.terms;
    if (wake.kind === 'message' && wake.grant !== undefined && terms !== undefined) {
      const isPlain = terms.type === type && !terms.fixed && !terms.newest;
      heard.set(this, { grant: wake.grant, wanted: isPlain ? terms.leaseTime : 0 });
    }
    const isTaken = takeGrant.call(this, line, wake);
    heard.delete(this);
    return isTaken;
  };
  queue.hold = function (this: LockQueue, held, now) {
    const said = heard.get(this);
    if (said !== undefined) note(this, held, said.grant, said.wanted);
    hold.call(this, held, now);
  };
}

function note(queue: LockQueue, { key, owner, confirmed, validFor }: HeldLock, grant: Grant, wanted: number): void {
  const { process, settings } = (queue as unknown as Inside).services.backend;
  const until = confirmed.monotonic + validity(validFor);
  const trace = settings?.trace as SimulationTrace | undefined;
  trace?.believed({ process: process.name, key, owner, grant, wanted, until });
}
