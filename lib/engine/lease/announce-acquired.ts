import type { AcquisitionContext } from '../acquisition-context.js';
import type { LockLease } from './lock-lease.js';

/** The present moment, if anybody listens to how long an acquisition takes. */
export function startTime({ events, runtime }: AcquisitionContext): number | undefined {
  return events.hears('acquired') ? runtime.monotonic() : undefined;
}

/** Emits `acquired` for each lock that was not shared before. */
export function announceAcquired(
  { events, runtime }: AcquisitionContext,
  lease: LockLease,
  started: number | undefined,
): void {
  if (!events.hears('acquired')) return;
  const waited = started === undefined ? 0 : runtime.monotonic() - started;
  for (const { name, owner, token, shares } of lease.locks)
    if (shares.length === 1) events.emit('acquired', { name, owner, fencingToken: token, waited });
}
