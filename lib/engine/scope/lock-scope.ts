import { AsyncLocalStorage } from 'node:async_hooks';
import type { HeldLock } from '../hold/held-lock.js';
import type { Lease } from '../terms/lease.js';
import type { ShareGates } from './share-gate.js';

const NONE: readonly never[] = [];

/** A lease as seen by its scopes. */
export interface ScopedLease extends Lease {
  /** Identifies the service that created the lease. */
  readonly service: object;
  /** Whether the lease is neither released nor known to be lost. */
  readonly live: boolean;
  /** Whether its share was given back, or is being given back. */
  readonly released: boolean;
  /** Whether it was acquired with `reentry: false`. Its scopes then begin a new chain. */
  readonly isStranger: boolean;
  readonly locks: readonly HeldLock[];
  readonly gates: ShareGates;
}

/**
 * A body of code that runs while a lease is held. The scopes of one flow of control form a chain. Acquiring a lock that
 * a live lease of the chain holds is a re-entry.
 */
export class LockScope {
  /** The enclosing scope. */
  parent: LockScope | undefined;
  /** The number of the latest acquisition that code directly in this scope has begun: see {@link noteCall}. */
  lastCall = 0;
  /** The code inside has ended. */
  ended = false;
  /** The leases around a stranger's scope, which are no part of its chain: see {@link leasesWaitingFor}. */
  readonly outside: readonly ScopedLease[];

  /**
   * @param around see {@link scopeAround}
   * @param shown the lease that `currentLease()` returns. For a multi-lock it is not `lease`, because each member has
   *   its own scope
   */
  constructor(
    readonly lease: ScopedLease,
    around: LockScope | undefined,
    readonly shown: Lease & { readonly live: boolean } = lease,
  ) {
    this.parent = around === undefined ? undefined : withoutEnded(around);
    this.outside = lease.isStranger && around === undefined ? leasesOutside() : NONE;
  }

  /** A scope that has ended takes no new share. Work that leaked out of it acquires the lock again. */
  get live(): boolean {
    return !this.ended && this.lease.live;
  }

  /** The scope will never be live again, so it may be removed from the chain. */
  get over(): boolean {
    return this.ended || this.lease.released;
  }

  end(): void {
    this.ended = true;
  }
}

/**
 * Removes ended scopes from a chain. Without this, a task that starts its successor in its own scope would make the
 * chain grow forever.
 */
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
 * One store for every copy of this library in the process, so that an ESM and a CommonJS copy re-enter each other's
 * scopes. The number is the version of the scopes' format. Raise it with every change to the members of
 * {@link LockScope} or of the leases in it. Two versions of the library in one process then have separate stores,
 * instead of calling methods that the other version's scopes do not have.
 */
const STORE = Symbol.for('nestjs-redis-lock.scopes.7');
const shared = globalThis as { [STORE]?: AsyncLocalStorage<LockScope | undefined> };

shared[STORE] ??= new AsyncLocalStorage();

/**
 * The scope of each flow of control. A scope is a function that runs: never use `enterWith`, which would also mark the
 * caller's flow.
 */
export const lockScopes = shared[STORE];

// Switches AsyncLocalStorage on when the library is loaded. Otherwise Node.js 20 and 22 would run work that was already
// waiting in the scope of the first user. Running with `undefined` does not switch it on.
lockScopes.run({} as never, () => {});

/**
 * The scope around a new scope of this lease: the one in which the caller runs. A stranger's scopes see only scopes
 * that were opened inside them.
 */
export function scopeAround(lease: ScopedLease): LockScope | undefined {
  const around = lockScopes.getStore();
  return lease.isStranger && !isInside(around, lease) ? undefined : around;
}

function isInside(scope: LockScope | undefined, lease: ScopedLease): boolean {
  while (scope !== undefined && scope.lease !== lease) scope = scope.parent;
  return scope !== undefined;
}

let calls = 0;

/** Notes that the running flow begins an acquisition. What its scope started before this call runs beside it. */
export function noteCall(): void {
  const scope = lockScopes.getStore();
  if (scope !== undefined) scope.lastCall = ++calls;
}

/** The number of the latest call that {@link noteCall} has noted. */
export function latestCall(): number {
  return calls;
}

/** The innermost live scope of the running flow. */
export function currentScope(): LockScope | undefined {
  return liveFrom(lockScopes.getStore());
}

/** The first live scope of a chain. */
export function liveFrom(scope: LockScope | undefined): LockScope | undefined {
  while (scope !== undefined && !scope.live) scope = scope.parent;
  return scope;
}

/**
 * The leases of this service whose bodies do not end before the caller does: those around it, also around strangers, and
 * also if they were released or lost.
 */
export function leasesWaitingFor(service: object): ReadonlySet<ScopedLease> {
  const leases = new Set<ScopedLease>();
  for (let scope = lockScopes.getStore(); scope !== undefined; scope = scope.parent) {
    if (!scope.ended && scope.lease.service === service) leases.add(scope.lease);
    for (const lease of scope.outside) if (!lease.released && lease.service === service) leases.add(lease);
  }
  return leases;
}

/** A list and not a link, because a stranger that starts the next one would make a chain grow forever. */
function leasesOutside(): readonly ScopedLease[] {
  const leases = new Set<ScopedLease>();
  for (let scope = lockScopes.getStore(); scope !== undefined; scope = scope.parent) {
    if (!scope.over) leases.add(scope.lease);
    for (const lease of scope.outside) if (!lease.released) leases.add(lease);
  }
  return leases.size === 0 ? NONE : [...leases];
}

/** Whether the running flow is in a live scope of this service. */
export function inScopeOf(service: object): boolean {
  let scope = currentScope();
  while (scope !== undefined && scope.lease.service !== service) scope = liveFrom(scope.parent);
  return scope !== undefined;
}

/**
 * The lease of the innermost lock scope around the caller. With a name, the innermost one that holds this lock. Returns
 * `undefined` outside a scope, and after the scope has ended. A lease that was lost meanwhile is also returned, because
 * its token lets the resource reject late writes.
 *
 * ```ts
 * @DistributedLock('order:#<args[0]>')
 * async pay(orderId: string) {
 *   await this.bank.charge(orderId, { fencingToken: currentLease()!.fencingToken, signal: currentLease()!.signal });
 * }
 * ```
 *
 * With several names, each lock has its own fencing token, and `fencingToken` throws if they differ: use
 * `tokens.get(name)`.
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

/**
 * Runs `work` outside all locks, as if the caller held none. What `work` starts is outside, too: `currentLease()` is
 * undefined there, and acquiring a lock that the caller holds waits until it is free.
 *
 * Use it where work is started inside a lock but does not belong to it, because Node.js lets such work inherit the
 * lock: jobs for a queue that other callers fill as well, and listeners and timers that nobody awaits.
 *
 * ```ts
 * queue.add(() => outsideLocks(() => this.stock.decrement(sku)));
 * ```
 *
 * Do not await such work inside the lock if it acquires the same lock: both would wait forever.
 *
 * @returns what `work` returns
 * @see docs/queues-and-events.md
 * @publicApi
 */
export function outsideLocks<T>(work: () => T): T {
  return lockScopes.getStore() === undefined ? work() : lockScopes.exit(work);
}
