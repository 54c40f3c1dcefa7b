import type { LockLease } from '../lease/lock-lease.js';
import { checkResult, type EndedBody } from '../scope/body-result.js';
import { LockScope, scopeAround } from '../scope/lock-scope.js';
import type { Services } from '../services.js';
import type { Lease } from '../terms/lease.js';
import { runInHold } from '../trace/trace-hold.js';
import { timeHoldAtMost } from './hold-at-most.js';
import { warnIfLeaked } from './leaked-body-warning.js';

/** The services that are needed here. */
type Needs = Pick<Services, 'events' | 'runtime' | 'standby' | 'work'>;

/**
 * Runs `body` in a scope of a lease, then releases the lease. An error of the body is thrown whatever the outcome of
 * the release. If the body succeeded but the lease was lost meanwhile, LockLostError is thrown (unless
 * `onLost: 'warn'`). With `release: 'background'`, the promise settles before the release is answered.
 *
 * @param holdAtLeast how many milliseconds from now to keep the lock, even if the body ends earlier
 */
export async function holdWhile<T>(
  services: Needs,
  lease: LockLease,
  body: (lease: Lease) => T | Promise<T>,
  holdAtLeast = 0,
): Promise<T> {
  const { runtime, work } = services;
  const scope = new LockScope(lease, scopeAround(lease));
  const keepUntil = holdAtLeast > 0 ? runtime.monotonic() + holdAtLeast : 0;
  const limit = timeHoldAtMost(services, lease);
  let result: T;
  lease.hasBody = true;
  const period = work.bodyStarted();
  try {
    result = await runInHold(lease, scope, body);
    if (typeof result === 'object') checkResult(result, endedBody(lease, body), services.events);
  } catch (error) {
    limit?.cancel();
    scope.end();
    await finish(services, lease, keepUntil, period)?.catch(() => {});
    throw error;
  }
  limit?.cancel();
  scope.end();
  const released = finish(services, lease, keepUntil, period);
  if (released !== undefined) await released;
  return result;
}

function endedBody({ name, terms }: LockLease, body: unknown): EndedBody {
  return terms.method === '' ? { what: `withLock() of '${name}'`, body } : { what: terms.method, isMethod: true, body };
}

function finish(services: Needs, lease: LockLease, keepUntil: number, period: number): Promise<void> | undefined {
  const { runtime, work } = services;
  const { release } = lease.terms;
  work.bodyEnded(period);
  warnIfLeaked(services, lease);
  // The body has released the lease itself, so shutdown may still be waiting for the body.
  if (lease.released) work.changed();
  const rest = keepUntil > 0 ? keepUntil - runtime.monotonic() : 0;
  return rest > 0 ? lease.releaseAfter(rest, release) : lease.releaseAs(release);
}
