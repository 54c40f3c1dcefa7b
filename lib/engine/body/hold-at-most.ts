import type { Timer } from '../../backends/runtime.js';
import { LockAbortedError } from '../errors.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { Services } from '../services.js';
import { FOREVER } from '../terms/duration.js';

// `holdAtMost`: a body may run only so long inside its lock. After that, the lock ends with its lease.

/** The services that are needed here. */
type Needs = Pick<Services, 'events' | 'runtime'>;

/** Called when the body begins. Cancel the timer when the body has ended. */
export function timeHoldAtMost(services: Needs, lease: LockLease): Timer | undefined {
  const { holdAtMost } = lease.terms;
  return holdAtMost < FOREVER ? services.runtime.timer(holdAtMost, () => overdue(services, lease)) : undefined;
}

/** The body has run for `holdAtMost`. A re-entry cannot end the locks of the code around it. */
function overdue({ events }: Needs, lease: LockLease): void {
  if (lease.released) return;
  const { name, terms, locks, entered } = lease;
  const ending = locks.filter(
    ({ key, abandoned, lost }) =>
      abandoned === undefined && lost === undefined && !entered.some((gate) => gate.key === key),
  );
  const names = ending.map((lock) => lock.name).join(', ');
  const what = names === name ? 'it' : `'${names}'`;
  const consequence = ending.length > 0 ? `, and ${what} is no longer renewed, so it ends with its lease` : '';
  const reason = new LockAbortedError(
    `The body inside the lock '${name}' has run for longer than holdAtMost (${terms.holdAtMost} ms)${consequence}. Stop the work`,
    name,
  );
  if (ending.length === 0) return lease.requestEnd(reason);
  events.logger.warn(
    `The lock '${names}' was held for longer than holdAtMost (${terms.holdAtMost} ms); its signal is aborted, and it is no longer renewed`,
  );
  const shares = ending.flatMap((lock) => lock.shares);
  lease.abort(reason, ending);
  for (const share of shares) share.requestEnd(reason);
}
