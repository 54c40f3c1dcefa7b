import { type AcquireMessage, type HoldMessage, holdChannel } from '../events/channels.js';
import type { LockLease } from '../lease/lock-lease.js';
import { type LockScope, lockScopes } from '../scope/lock-scope.js';
import type { Services } from '../services.js';
import type { Lease } from '../terms/lease.js';
import { runTraced } from './run-traced.js';

interface TracedHold {
  readonly message: HoldMessage;
  readonly runtime: Services['runtime'];
  readonly events: Services['events'];
  readonly since: number;
  begun: boolean;
}

/** The holds of leases that have not ended. */
const holds = new WeakMap<LockLease, TracedHold>();
/** The number of traced holds that have not ended. While it is 0, lookups are skipped. */
let open = 0;

/**
 * Starts to trace the hold of a lease. The hold begins when the body that gets the lease begins or, if there is none,
 * in the next turn of the event loop.
 */
export function traceHold(
  { runtime, events }: Pick<Services, 'events' | 'runtime'>,
  lease: LockLease,
  acquisition: AcquireMessage,
): void {
  if (!holdChannel.hasSubscribers || !lease.live) return;
  const { name, names, type, group, method, fencingToken, reentry = false } = acquisition;
  const { owner, owners } = lease;
  const taken = lease.locks.filter(({ shares }) => shares[0] === lease).map((lock) => lock.name);
  const about = { name, names, type, group, method, owner, owners, fencingToken, reentry, taken, acquisition };
  const hold = {
    message: { ...about, run: undefined, outcome: undefined, held: undefined },
    runtime,
    events,
    since: runtime.monotonic(),
    begun: false,
  };
  holds.set(lease, hold);
  open++;
  runtime.nextTurn(() => begin(hold));
}

/**
 * Runs the body of a lease in its scope, with the stores that the channel's subscribers bind to its hold.
 */
export function runInHold<T>(lease: LockLease, scope: LockScope, body: (lease: Lease) => T): T {
  const hold = open > 0 ? holds.get(lease) : undefined;
  if (hold === undefined || hold.begun) return lockScopes.run(scope, body, lease);
  hold.begun = true;
  try {
    const { message, events } = hold;
    const run = () => lockScopes.run(scope, body, lease);
    return holdChannel.start.runStores(message, () => runTraced('nestjs-redis-lock:hold', message, run, events));
  } finally {
    holdChannel.end.publish(hold.message);
  }
}

/** Publishes the end of a hold, when the lease was given back or lost. */
export function holdEnded(lease: LockLease, isLost: boolean): void {
  if (open === 0) return;
  const hold = holds.get(lease);
  if (hold === undefined) return;
  holds.delete(lease);
  open--;
  begin(hold);
  const { message, runtime, since } = hold;
  message.held = runtime.monotonic() - since;
  message.outcome = isLost ? 'lost' : lease.detached ? 'detached' : 'released';
  if (isLost) {
    message.error = lease.loss;
    holdChannel.error.publish(message);
  }
  holdChannel.asyncStart.publish(message);
  holdChannel.asyncEnd.publish(message);
}

/** The common token of all locks; undefined if their tokens differ. */
export function tokenOf({ tokens }: LockLease): number | undefined {
  const all = new Set(tokens.values());
  return all.size === 1 ? [...all][0] : undefined;
}

function begin(hold: TracedHold): void {
  if (hold.begun) return;
  hold.begun = true;
  holdChannel.start.publish(hold.message);
  holdChannel.end.publish(hold.message);
}
