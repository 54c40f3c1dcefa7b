import { AsyncLocalStorage } from 'node:async_hooks';
import type { HeldLock } from '../lease/held-lock.js';
import type { Lease } from '../lease/lease.js';
import type { ShareGates } from './share-gate.js';

/** A lease as its scopes see it. */
export interface ScopedLease extends Lease {
  /** Stands for the service that gave it. */
  readonly service: object;
  /** Neither released nor lost, as far as was noticed. */
  readonly live: boolean;
  /** Its share was given back, or is on its way. */
  readonly released: boolean;
  readonly locks: readonly HeldLock[];
  readonly gates: ShareGates;
}

/**
 * A body of code that runs while a lease is held, and the scope around it. The scopes of one flow of control form a
 * chain; acquiring a lock that a live lease of the chain holds is re-entry.
 */
export class LockScope {
  /** The scope around it. */
  parent: LockScope | undefined;
  private ended = false;

  /**
   * @param around the scope that the caller runs in
   * @param shown what `currentLease()` returns in it: the lease of a multi-lock has a scope for each of its members
   */
  constructor(
    readonly lease: ScopedLease,
    around: LockScope | undefined,
    readonly shown: Lease & { readonly live: boolean } = lease,
  ) {
    this.parent = withoutEnded(around);
  }

  /** A scope that has ended takes no new share. Work that leaked out of it acquires the lock again. */
  get live(): boolean {
    return !this.ended && this.lease.live;
  }

  /** It will never be live again, and nobody asks for it: it may be removed from the chain. */
  get over(): boolean {
    return this.ended || this.lease.released;
  }

  end(): void {
    this.ended = true;
  }
}

/** Removes ended scopes from a chain: a task that starts its successor in its own scope would make it grow for ever. */
export function withoutEnded(scope: LockScope | undefined): LockScope | undefined {
  const innermost = firstNotOver(scope);
  for (let rest = innermost; rest !== undefined; rest = rest.parent) rest.parent = firstNotOver(rest.parent);
  return innermost;
}

function firstNotOver(scope: LockScope | undefined): LockScope | undefined {
  let rest = scope;
  while (rest?.over) rest = rest.parent;
  return rest;
}

/**
 * One store for every copy of this library in the process: an ESM and a CommonJS copy re-enter each other's scopes. The
 * number is the version of the scopes' format. It is raised with every change to what {@link LockScope}s, and the
 * leases in them, offer each other: two versions of the library in one process then have a store each, instead of
 * calling methods that the other one's scopes do not have.
 */
const STORE = Symbol.for('nestjs-redis-lock.scopes.4');
const shared = globalThis as { [STORE]?: AsyncLocalStorage<LockScope | undefined> };

shared[STORE] ??= new AsyncLocalStorage();

/**
 * The scope that each flow of control runs in. A scope is a function that runs: never use `enterWith`, which marks the
 * caller's flow, too.
 */
export const lockScopes = shared[STORE];

// Switches AsyncLocalStorage on when the library is loaded. Otherwise Node.js 20 and 22 would give work that was
// already waiting the scope of the first user. Running with `undefined` does not switch it on.
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
 * The lease of the innermost lock scope around the caller: of any lock, or of the lock `name`. `undefined` outside of a
 * scope, and after the scope has ended. A lease that was lost meanwhile is returned as well: its token keeps late
 * writes out.
 *
 * ```ts
 * @DistributedLock('order:#<args[0]>')
 * async pay(orderId: string) {
 *   await this.bank.charge(orderId, { fencingToken: currentLease()!.fencingToken, signal: currentLease()!.signal });
 * }
 * ```
 *
 * With several names, each has its own fencing token, and `fencingToken` throws if they differ: use `tokens.get(name)`.
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
