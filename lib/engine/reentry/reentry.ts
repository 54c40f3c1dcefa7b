import { type HeldType, isReadWrite } from '../../backends/lock-backend.js';
import { listOf } from '../collections/list-of.js';
import { LockBusyError, LockConfigurationError, LockUpgradeError } from '../errors.js';
import { confirmLease } from '../hold/confirm-lease.js';
import type { HeldLock, LockWaiter } from '../hold/held-lock.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { LockTable } from '../lock-table.js';
import { currentScope, type LockScope, liveFrom, lockScopes, noteCall, type ScopedLease } from '../scope/lock-scope.js';
import type { EnteredGate, ShareGate, ShareMode } from '../scope/share-gate.js';
import type { Services } from '../services.js';
import type { Milliseconds } from '../terms/duration.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { abortedError } from '../wait/caller.js';
import { Waiter } from '../wait/waiter.js';
import { Downgrade } from './downgrade.js';

// ── Finding a re-entry ───────────────────────────────────────────────────────────────────────────────────────────────

/** A lock that the running flow of control holds already. */
export interface Reentry {
  /** The scope of the flow's innermost share in the lock. The new share becomes its child. */
  readonly scope: LockScope;
  /** The lease that holds the shared lock. */
  readonly holder: ScopedLease;
  readonly held: HeldLock;
}

/**
 * Searches the chain of scopes for a live lease of this service on `key`. A lease that has ended by the clock is
 * declared lost and does not count. A caller that wants to write becomes a child of the innermost share of that lock,
 * too, but shares the write lock of an outer scope if there is one. With `reentry: false`, the caller holds nothing.
 */
export function findReentry(services: Services, key: string, terms: AcquisitionTerms): Reentry | undefined {
  if (!terms.reentry) return undefined;
  let innermost: LockScope | undefined;
  let found: Omit<Reentry, 'scope'> | undefined;
  for (let scope = currentScope(); scope !== undefined; scope = liveFrom(scope.parent)) {
    const { lease } = scope;
    if (lease.service !== services) continue;
    const held = lease.locks.find((lock) => lock.key === key);
    if (held === undefined || services.watchdog.judge(held) === 'lost') continue;
    // If lease.run() of an outer lease is called inside an inner scope, the inner lease's share is found later.
    if (innermost === undefined || lease.gates.isBelow(innermost.lease.gates, key)) innermost = scope;
    const mayWrite = found?.held.type === 'read' && held.type !== 'read';
    if (found === undefined || (terms.type !== 'read' && mayWrite)) found = { holder: lease, held };
  }
  return innermost && found && { scope: innermost, ...found };
}

/** Whether a lock found before a wait can still be shared. A lease that has ended by the clock is declared lost. */
export function isStillShared({ watchdog }: Services, { scope, holder, held }: Reentry): boolean {
  return scope.live && holder.live && watchdog.judge(held) !== 'lost';
}

// ── Rules for sharing ────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Whether a share of type `wanted` in a held lock excludes its siblings.
 *
 * @throws LockUpgradeError when a reader asks for the write lock, LockConfigurationError for types that exclude each
 *   other
 */
export function shareMode(held: HeldLock, wanted: HeldType): ShareMode {
  const { type, name } = held;
  if (type === 'read' && wanted === 'write') {
    throw new LockUpgradeError(
      `The write lock '${name}' was requested by code that holds its read lock: it would wait for itself. Release the read lock first, or take the write lock from the start`,
      name,
    );
  }
  const both = isReadWrite(type) && isReadWrite(wanted);
  if (both) return wanted === 'read' ? 'shared' : 'exclusive';
  const unlike = (type === 'permits') !== (wanted === 'permits');
  if (!unlike && !isReadWrite(type) && !isReadWrite(wanted)) return 'exclusive';
  throw new LockConfigurationError(
    `The lock '${name}' is held by this code as type '${type}' and requested as '${wanted}', so it would wait for itself. Use one type for one name`,
  );
}

/**
 * Closes gates to other readers while a reader inside a writer writes. It has to be alone at all gates between itself
 * and the innermost share that writes. Returns the closed gates.
 *
 * @throws LockUpgradeError when another reader is inside as well, because both could wait for each other
 */
export function closeGatesAbove({ scope, held }: Reentry, wanted: HeldType): readonly EnteredGate[] {
  const { key, name } = held;
  const closed: EnteredGate[] = [];
  if (wanted !== 'write') return closed;
  for (let gate = scope.lease.gates.above(key); gate?.isShared; gate = gate.share.above(key)) {
    const above = gate.closeToReaders();
    if (above === undefined) {
      for (const other of closed) other.leave();
      throw new LockUpgradeError(
        `The write lock '${name}' was requested by code that holds its read lock, while another branch of the same writer holds the read lock, too. Request the write lock before the branches start`,
        name,
      );
    }
    closed.push(above);
  }
  return closed;
}

// ── Creating a share ─────────────────────────────────────────────────────────────────────────────────────────────────

/** Acquires the lock for a caller that turns out not to hold it any more. */
type AcquireAgain = (terms: AcquisitionTerms) => Promise<LockLease>;

/**
 * Gives a child of the share that holds the lock its own share, with the same owner, token and lease, and without a
 * round trip. Siblings that requested the lock earlier go first.
 *
 * @throws LockUpgradeError when a reader asks for the write lock, LockAbortedError when the caller's signal was aborted
 *   before
 */
export function reenter(
  table: LockTable,
  reentry: Reentry,
  name: string,
  terms: AcquisitionTerms,
  acquireAgain: AcquireAgain,
): Promise<LockLease> {
  if (terms.signal?.aborted) throw abortedError({ what: `the lock '${name}'`, name }, terms.signal);
  noteCall();
  const { services } = table;
  const { scope, held } = reentry;
  const mode = shareMode(held, terms.type);
  const gate = scope.lease.gates.gate(held.key);
  const child = new Child(table, reentry, gate, name, acquireAgain);
  if (gate.open(mode)) {
    gate.enter(mode);
    return child.enter(terms);
  }
  const siblingError = () => busySiblingError(services, held, terms);
  if (terms.waitTime === 0) return Promise.reject(siblingError());
  return new Promise((resolve, reject) => {
    const granted = () => resolve(child.enter(withWaitTime(terms, waiter.remainingWait)));
    const waiter: LockWaiter = new Waiter(name, () => held.owner, terms, services.runtime, granted, reject);
    gate.wait(waiter, mode, () => waiter.grant(held), siblingError);
    services.deadlocks.add(waiter, gate);
  });
}

/** A share that is about to be created, and has entered its gate or waits there. */
class Child {
  /** The caller's flow of control. It has to be kept, because the child is admitted in the flow of a sibling. */
  private readonly caller = lockScopes.getStore();
  private inside = true;

  constructor(
    private readonly table: LockTable,
    private readonly reentry: Reentry,
    private readonly gate: ShareGate,
    private readonly name: string,
    private readonly again: AcquireAgain,
  ) {}

  /** Called when the gate is entered. What the child gets depends on whether the lock is still held. */
  enter(terms: AcquisitionTerms): Promise<LockLease> {
    return lockScopes.run(this.caller, async () => {
      try {
        return await this.take(terms);
      } catch (error) {
        this.leave();
        throw error;
      }
    });
  }

  private async take(terms: AcquisitionTerms): Promise<LockLease> {
    const { table, reentry, gate } = this;
    const { services } = table;
    const { held } = reentry;
    if (isStillShared(services, reentry) && services.watchdog.judge(held) === 'unsure') {
      const since = services.runtime.monotonic();
      await confirmLease(services, held, terms);
      terms = withWaitTime(terms, terms.waitTime - (services.runtime.monotonic() - since));
    }
    if (!isStillShared(services, reentry)) return this.acquireAgain(terms);
    if (held.type === 'write' && terms.type === 'read') return this.downgrade(terms);
    return table.createLease(listOf(held), terms, listOf(gate, ...closeGatesAbove(reentry, terms.type)));
  }

  /** Acquires the lock without the parent, because its scope has ended or the lock was lost. */
  private acquireAgain(terms: AcquisitionTerms): Promise<LockLease> {
    const lease = lockScopes.run(this.caller, async () => this.again(terms));
    this.leave(); // not earlier, so that the next sibling asks after this one and they keep their order
    return lease;
  }

  private downgrade(terms: AcquisitionTerms): Promise<LockLease> {
    const { table, gate, name } = this;
    const { services } = table;
    const { held } = this.reentry;
    services.admission.admit('acquire()', name);
    return new Promise((resolve, reject) => {
      const granted = (read: HeldLock | undefined) => {
        if (read !== undefined) resolve(table.createLease(listOf(read), terms, listOf(gate)));
        else resolve(this.acquireAgain(withWaitTime(terms, waiter.remainingWait)));
      };
      const { runtime } = services;
      const waiter = new Waiter<HeldLock | undefined>(name, () => held.owner, terms, runtime, granted, reject);
      held.downgrade ??= new Downgrade(table, held);
      held.downgrade.enqueue(waiter);
    });
  }

  private leave(): void {
    if (this.inside) this.gate.leave();
    this.inside = false;
  }
}

function withWaitTime(terms: AcquisitionTerms, waitTime: number): AcquisitionTerms {
  return { ...terms, waitTime: Math.max(0, waitTime) as Milliseconds };
}

function busySiblingError(services: Services, held: HeldLock, { waitTime }: AcquisitionTerms): LockBusyError {
  const remaining = Math.max(0, Math.round(held.validFor - services.clock.age(held.confirmed)));
  const waited = waitTime > 0 ? `, for over ${waitTime} ms` : '';
  return new LockBusyError(
    `The lock '${held.name}' is busy: another branch of the code that holds it is using it${waited}`,
    held.name,
    remaining,
    held.owner,
    false,
    services.holders.own(held),
  );
}
