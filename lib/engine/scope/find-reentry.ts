import type { LockType } from '../../backends/lock-backend.js';
import type { AcquisitionContext } from '../acquisition-context.js';
import type { HeldLock } from '../lease/held-lock.js';
import { currentScope, type LockScope, liveFrom, type ScopedLease } from './lock-scope.js';

/** A lock that the running flow of control holds already. */
export interface Reentry {
  /** The scope of the innermost share that the flow has in the lock: the new share is a child of that one. */
  readonly scope: LockScope;
  /** The lease by which the shared lock is held. */
  readonly holder: ScopedLease;
  readonly held: HeldLock;
}

/**
 * Looks through the chain of scopes for a live lease of this service on `key`; a lease that has ended by the clock is declared lost and does
 * not count. A caller that wants to write becomes a child of the innermost share of that lock as well, but shares the write lock that an
 * outer scope holds, if there is one.
 */
export function findReentry(context: AcquisitionContext, key: string, wanted: LockType): Reentry | undefined {
  let innermost: LockScope | undefined;
  let found: Omit<Reentry, 'scope'> | undefined;
  for (let scope = currentScope(); scope !== undefined; scope = liveFrom(scope.parent)) {
    const { lease } = scope;
    if (lease.service !== context) continue;
    const held = lease.locks.find((lock) => lock.key === key && lock.lost === undefined);
    if (held === undefined || context.watchdog.judge(held) === 'lost') continue;
    // Where lease.run() of an outer lease is called inside an inner scope, the inner lease's share is found later.
    if (innermost === undefined || lease.gates.isBelow(innermost.lease.gates, key)) innermost = scope;
    const mayWrite = found?.held.type === 'read' && held.type !== 'read';
    if (found === undefined || (wanted !== 'read' && mayWrite)) found = { holder: lease, held };
  }
  return innermost && found && { scope: innermost, ...found };
}

/** Whether what was found before a wait can still be shared; a lease that has ended by the clock is declared lost. */
export function isStillShared({ watchdog }: AcquisitionContext, { scope, holder, held }: Reentry): boolean {
  return scope.live && holder.live && watchdog.judge(held) !== 'lost';
}
