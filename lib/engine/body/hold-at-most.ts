import type { Timer } from '../../backends/runtime.js';
import { LockAbortedError } from '../errors.js';
import type { HeldLock } from '../hold/held-lock.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { Services } from '../services.js';
import { FOREVER } from '../terms/duration.js';

// `holdAtMost`: a body may run only so long inside its lock. After that, the lock ends with its lease.

/** The services that are needed here. */
type Needs = Pick<Services, 'events' | 'runtime' | 'standby'>;

/** Called when the body begins. Cancel the timer when the body has ended. */
export function timeHoldAtMost(services: Needs, lease: LockLease): Timer | undefined {
  const { holdAtMost } = lease.terms;
  return holdAtMost === FOREVER ? undefined : startTimer(services, lease, holdAtMost);
}

function startTimer(services: Needs, lease: LockLease, holdAtMost: number): Timer {
  const timer = services.runtime.timer(holdAtMost, () => overdue(services, lease));
  if (services.standby === undefined) return timer;
  limitStandby(services, lease, services.runtime.monotonic() + holdAtMost);
  return {
    cancel: () => {
      timer.cancel();
      limitStandby(services, lease, undefined);
    },
  };
}

/** The event loop may be blocked when the time is over. */
function limitStandby({ standby }: Needs, lease: LockLease, until: number | undefined): void {
  for (const lock of locksOf(lease)) standby?.limit(lock, until);
}

/** A re-entry cannot end the locks of the code around it. */
function locksOf({ locks, entered }: LockLease): readonly HeldLock[] {
  return locks.filter(({ key }) => !entered.some((gate) => gate.key === key));
}

/** The body has run for `holdAtMost`. */
function overdue({ events }: Needs, lease: LockLease): void {
  if (lease.released) return;
  const { name, terms } = lease;
  const ending = locksOf(lease).filter(({ abandoned, lost }) => abandoned === undefined && lost === undefined);
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
