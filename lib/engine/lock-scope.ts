import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockType } from '../backends/lock-backend.js';
import type { HeldLock } from './held-lock.js';
import type { Lease } from './lease.js';
import { ShareGate } from './share-gate.js';

/**
 * A body of code that runs while a lease is held, and the scope around it. The scopes of one flow of control form a chain;
 * acquiring a lock that a live lease of the chain holds is re-entry.
 */
export class LockScope {
  /** The scope around it. */
  parent: LockScope | undefined;
  /**
   * A mark that stood in the way to `parent`, its lease still awaited. Who goes on meanwhile is another branch of the same caller
   * (`Promise.all`): it must not re-enter what the first one gets.
   */
  readonly beside: LockScope | undefined;
  private ended = false;
  private gates: Map<string, ShareGate> | undefined;

  /**
   * @param lease what the body holds; a handle's `lock()` marks its flow first and gets the lease later
   * @param around the scope that the caller runs in
   * @param mark what several scopes have in common that one `lock()` made
   */
  constructor(
    public lease: Lease | undefined,
    around: LockScope | undefined,
    private readonly mark?: object,
  ) {
    this.beside = this.isBeside(around) ? around : undefined;
    let parent = around;
    while (this.isBeside(parent)) parent = parent?.parent;
    this.parent = withoutOver(parent);
  }

  private isBeside(scope: LockScope | undefined): boolean {
    return scope?.pending === true && (this.mark === undefined || scope.mark !== this.mark);
  }

  private get pending(): boolean {
    return this.lease === undefined && !this.ended;
  }

  /** A scope that has ended takes no new share: work that leaked out of it acquires anew. */
  get live(): boolean {
    return !this.ended && this.lease?.live === true;
  }

  /** It will never be live again, and nobody asks for it: it may be left out of the chain. */
  get over(): boolean {
    return this.ended || this.lease?.released === true;
  }

  end(): void {
    this.ended = true;
  }

  /** Children of one scope on the same lock exclude each other, in here. */
  gate(key: string): ShareGate {
    this.gates ??= new Map();
    let gate = this.gates.get(key);
    if (gate === undefined) {
      gate = new ShareGate(() => this.gates?.delete(key));
      this.gates.set(key, gate);
    }
    return gate;
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

/** A lock that the running flow of control holds already, with the innermost scope that holds it. */
export interface Reentry {
  readonly scope: LockScope;
  readonly held: HeldLock;
}

// One store for every copy of this library in the process: an ESM and a CommonJS copy re-enter each other's scopes.
const STORE = Symbol.for('nestjs-redis-lock.scopes');
const shared = globalThis as { [STORE]?: AsyncLocalStorage<LockScope | undefined> };

shared[STORE] ??= new AsyncLocalStorage();

/** The scope that each flow of control runs in. */
export const lockScopes = shared[STORE];

/** The innermost live scope of the running flow. */
export function currentScope(): LiveScope | undefined {
  return liveFrom(lockScopes.getStore());
}

/** A scope whose lease is there. */
export type LiveScope = LockScope & { readonly lease: Lease };

/** The first live scope of a chain. */
export function liveFrom(scope: LockScope | undefined): LiveScope | undefined {
  while (scope !== undefined && !scope.live) scope = scope.parent;
  return scope as LiveScope | undefined;
}

/** Whether the running flow is in a live scope of this service. */
export function inScopeOf(service: object): boolean {
  let scope = currentScope();
  while (scope !== undefined && scope.lease.service !== service) scope = liveFrom(scope.parent);
  return scope !== undefined;
}

/**
 * Looks through the chain for a live lease of this service on `key`. Who wants to write is a child of the innermost scope on
 * that lock all the same, but shares the write lock that an outer one holds, if there is one.
 */
export function findReentry(service: object, key: string, wanted: LockType): Reentry | undefined {
  let innermost: Reentry | undefined;
  for (let scope = currentScope(); scope !== undefined; scope = liveFrom(scope.parent)) {
    if (scope.lease.service !== service) continue;
    const held = scope.lease.locks.find((lock) => lock.key === key && lock.lost === undefined);
    if (held === undefined) continue;
    if (held.type !== 'read' || wanted === 'read') return { scope: innermost?.scope ?? scope, held };
    innermost ??= { scope, held };
  }
  return innermost;
}

/**
 * The lease of the innermost lock scope around the caller: of any lock, or of the lock `name`. `undefined` outside of one,
 * and after the scope has ended.
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
  let scope = currentScope();
  while (scope !== undefined && name !== undefined && !scope.lease.names.includes(name)) scope = liveFrom(scope.parent);
  return scope?.lease;
}
