import type { LockLease } from '../lease/lock-lease.js';
import type { Services } from '../services.js';

/** Called when a body has ended. Warns if it outlived the code that holds its lock, which did not await it. */
export function warnIfLeaked(services: Pick<Services, 'events'>, lease: LockLease): void {
  if (outlivesHolder(lease)) warn(services, lease);
}

function warn({ events }: Pick<Services, 'events'>, { name, terms }: LockLease): void {
  const { method, group } = terms;
  const what = method || `A body of withLock${group && ` with the group '${group}'`}`;
  events.warnOnce(
    what,
    `${what} still ran inside the lock '${name}' after the code that holds it had ended. That code started it and did not await it, so both ran at the same time. Await it there, or let it wait for the lock: with reentry: false, or started in outsideLocks()`,
  );
}

/** Whether this is a share in a lock whose holder has ended already. */
function outlivesHolder({ entered }: LockLease): boolean {
  return entered.length > 0 && entered.some(({ share }) => share.left);
}
