import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockType } from '../../backends/lock-backend.js';
import type { HeldLock } from '../lease/held-lock.js';
import type { Lease } from '../lease/lease.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { LockEngine } from '../lock-engine.js';

/**
 * A body of code that runs while a lease is held, and the scope around it. The scopes of one flow of control form a chain;
 * acquiring a lock that a live lease of the chain holds is re-entry.
 */
export class LockScope {
  /** The scope around it. */
  parent: LockScope | undefined;
  private ended = false;

  /**
   * @param around the scope that the caller runs in
   * @param shown what `currentLease()` is in it: the lease of a multi-lock has a scope for each of its members
   */
  constructor(
    readonly lease: LockLease,
    around: LockScope | undefined,
    readonly shown: Lease & { readonly live: boolean } = lease,
  ) {
    this.parent = withoutOver(around);
  }

  /** A scope that has ended takes no new share: work that leaked out of it acquires anew. */
  get live(): boolean {
    return !this.ended && this.lease.live;
  }

  /** It will never be live again, and nobody asks for it: it may be left out of the chain. */
  get over(): boolean {
    return this.ended || this.lease.released;
  }

  end(): void {
    this.ended = true;
  }
}

/** The rest of a chain. What is over is taken out: a task that starts its successor in its own scope would make it grow for ever. */
export function withoutOver(scope: LockScope | undefined): LockScope | undefined {
  const innermost = firstNotOver(scope);
  for (let rest = innermost; rest !== undefined; rest = rest.parent) rest.parent = firstNotOver(rest.parent);
  return innermost;
}

function firstNotOver(scope: LockScope | undefined): LockScope | undefined {
  let rest = scope;
  while (rest?.over) rest = rest.parent;
  return rest;
}

/** A lock that the running flow of control holds already. */
export interface Reentry {
  /** The scope of the innermost share that the flow has in the lock: the new one is a child of that share. */
  readonly scope: LockScope;
  /** Through which lease the lock is held that is shared. */
  readonly holder: LockLease;
  readonly held: HeldLock;
}

/**
 * One store for every copy of this library in the process: an ESM and a CommonJS copy re-enter each other's scopes. The number is that of
 * the scopes' format, to be raised with every change to what {@link LockScope}s, and the leases in them, offer each other: two versions
 * of the library in one process then have a store each, instead of calling what the other one's scopes do not have.
 */
const STORE = Symbol.for('nestjs-redis-lock.scopes.2');
const shared = globalThis as { [STORE]?: AsyncLocalStorage<LockScope | undefined> };

shared[STORE] ??= new AsyncLocalStorage();

/** The scope that each flow of control runs in. A scope is a function that runs: never `enterWith`, which marks whoever called too. */
export const lockScopes = shared[STORE];

// Switches it on: what waits while it is off, and goes on when it was used for the first time, is taken for that first user's flow by
// Node.js 20 and 22. They stay off for a run with undefined.
lockScopes.run({} as never, () => {});

/** The innermost live scope of the running flow. */
export function currentScope(): LockScope | undefined {
  return liveFrom(lockScopes.getStore());
}

/** The first live scope of a chain. */
export function liveFrom(scope: LockScope | undefined): LockScope | undefined {
  while (scope !== undefined && !scope.live) scope = scope.parent;
  return scope;
}

/** Whether the running flow is in a live scope of this service. */
export function inScopeOf(service: object): boolean {
  let scope = currentScope();
  while (scope !== undefined && scope.lease.service !== service) scope = liveFrom(scope.parent);
  return scope !== undefined;
}

/**
 * Looks through the chain for a live lease of this service on `key`; one that has ended by the clock is declared lost, and is none. Who
 * wants to write is a child of the innermost share of that lock all the same, but shares the write lock that an outer one holds, if
 * there is one.
 */
export function findReentry(service: LockEngine, key: string, wanted: LockType): Reentry | undefined {
  let innermost: LockScope | undefined;
  let found: Omit<Reentry, 'scope'> | undefined;
  for (let scope = currentScope(); scope !== undefined; scope = liveFrom(scope.parent)) {
    const { lease } = scope;
    if (lease.service !== service) continue;
    const held = lease.locks.find((lock) => lock.key === key && lock.lost === undefined);
    if (held === undefined || service.context.watchdog.judge(held) === 'lost') continue;
    // Where lease.run() of an outer lease is called inside of an inner one, the inner one's share is found later.
    if (innermost === undefined || lease.isBelow(innermost.lease, key)) innermost = scope;
    const mayWrite = found?.held.type === 'read' && held.type !== 'read';
    if (found === undefined || (wanted !== 'read' && mayWrite)) found = { holder: lease, held };
  }
  return innermost && found && { scope: innermost, ...found };
}

/**
 * The lease of the innermost lock scope around the caller: of any lock, or of the lock `name`. `undefined` outside of one,
 * and after the scope has ended. A lease that was lost meanwhile is given too: its token is what keeps late writes out.
 *
 * ```ts
 * @DistributedLock('order:#<args[0]>')
 * async pay(orderId: string) {
 *   await this.bank.charge(orderId, { fencingToken: currentLease()!.fencingToken, signal: currentLease()!.signal });
 * }
 * ```
 *
 * Of several names each has a fencing token of its own, and `fencingToken` throws where they differ: take `tokens.get(name)`.
 *
 * @publicApi
 */
export function currentLease(name?: string): Lease | undefined {
  for (let scope = firstNotOver(lockScopes.getStore()); scope !== undefined; scope = firstNotOver(scope.parent)) {
    if (name === undefined) return scope.shown;
    if (scope.lease.names.includes(name)) return scope.lease;
  }
  return undefined;
}
