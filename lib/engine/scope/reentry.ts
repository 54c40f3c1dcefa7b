import type { LockType } from '../../backends/lock-backend.js';
import { listOf } from '../collections/list-of.js';
import type { Milliseconds } from '../duration.js';
import { LockBusyError, LockConfigurationError, LockUpgradeError } from '../errors.js';
import type { HeldLock } from '../lease/held-lock.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { LockEngine } from '../lock-engine.js';
import type { AcquisitionTerms } from '../lock-options.js';
import { Waiter } from '../waiting/waiter.js';
import { confirmLease } from './confirm-lease.js';
import { Downgrade } from './downgrade.js';
import { lockScopes, type Reentry } from './lock-scope.js';
import type { EnteredGate, ShareGate, ShareMode } from './share-gate.js';

/**
 * Gives a child of the share that holds the lock a share of its own: same owner, same token, same lease, no round trip. Its siblings on the
 * same lock go first, in the order of their arrival.
 *
 * @throws LockUpgradeError when a reader asks for the write lock
 */
export function reenter(
  engine: LockEngine,
  reentry: Reentry,
  name: string,
  terms: AcquisitionTerms,
): Promise<LockLease> {
  const { scope, held } = reentry;
  const mode = shareMode(held, terms.type);
  const gate = scope.lease.gate(held.key);
  const child = new Child(engine, reentry, gate, name);
  if (gate.open(mode)) {
    gate.enter(mode);
    return child.enter(terms);
  }
  if (terms.waitTime === 0) return Promise.reject(siblingError(engine, held, terms));
  return new Promise((resolve, reject) => {
    const waiter: Waiter = new Waiter(
      name,
      () => held.owner,
      terms,
      engine.context.runtime,
      () => resolve(child.enter(withWaitTime(terms, waiter.remainingWait))),
      reject,
    );
    gate.wait(waiter, mode, () => (waiter.settled ? gate.leave() : waiter.grant(held)));
    waiter.watch(() => {
      gate.abandon(waiter);
      return siblingError(engine, held, terms);
    });
  });
}

/** Whether what was found before a wait can still be shared; a lease that has ended by the clock is declared lost. */
export function isThere(engine: LockEngine, { scope, holder, held }: Reentry): boolean {
  return scope.live && holder.live && engine.context.watchdog.judge(held) !== 'lost';
}

/** A share to be, whose gate is entered when its turn comes. */
class Child {
  /** The flow that asked: its turn comes in that of a sibling. */
  private readonly caller = lockScopes.getStore();
  private inside = true;

  constructor(
    private readonly engine: LockEngine,
    private readonly reentry: Reentry,
    private readonly gate: ShareGate,
    private readonly name: string,
  ) {}

  /** The gate is entered: what the child gets depends on whether the lock is still held. */
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
    const { engine, reentry, gate } = this;
    const { held } = reentry;
    const { runtime, watchdog } = engine.context;
    if (isThere(engine, reentry) && watchdog.judge(held) === 'unsure') {
      const since = runtime.monotonic();
      await confirmLease(engine, held, terms);
      terms = withWaitTime(terms, terms.waitTime - (runtime.monotonic() - since));
    }
    if (!isThere(engine, reentry)) return this.acquireAnew(terms);
    if (held.type === 'write' && terms.type === 'read') return this.downgrade(terms);
    return engine.lease(listOf(held), terms, listOf(gate, ...gatesAbove(reentry, terms.type)));
  }

  /** The scope has ended, or the lock was lost: the child is on its own now. */
  private acquireAnew(terms: AcquisitionTerms): Promise<LockLease> {
    const { type, waitTime, signal, onLost, fixed } = terms;
    const leaseTime = fixed ? terms.leaseTime : undefined;
    const lease = lockScopes.run(this.caller, () =>
      this.engine.acquire(this.name, { type, waitTime, leaseTime, signal, onLost }),
    );
    this.leave(); // the next one is asked in after this one has asked: they keep their order
    return lease;
  }

  private downgrade(terms: AcquisitionTerms): Promise<LockLease> {
    const { engine, gate, name } = this;
    const { held } = this.reentry;
    engine.admit('acquire()', name);
    return new Promise((resolve, reject) => {
      const granted = (read: HeldLock | undefined) => {
        if (read !== undefined) resolve(engine.lease(listOf(read), terms, listOf(gate)));
        else resolve(this.acquireAnew(withWaitTime(terms, waiter.remainingWait)));
      };
      const { runtime } = engine.context;
      const waiter = new Waiter<HeldLock | undefined>(name, () => held.owner, terms, runtime, granted, reject);
      held.downgrade ??= new Downgrade(engine, held);
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

/**
 * Where a reader inside of a writer writes: it has to be alone at all gates between it and the share that holds the write lock.
 *
 * @throws LockUpgradeError when another reader is inside beside it: both could wait for each other
 */
export function gatesAbove({ scope, holder, held }: Reentry, wanted: LockType): readonly EnteredGate[] {
  const { key, name } = held;
  const closed: EnteredGate[] = [];
  for (let { lease } = scope; wanted === 'write' && lease !== holder; ) {
    const gate = lease.gateAbove(key);
    if (gate === undefined) break;
    const above = gate.closeToReaders();
    if (above === undefined) {
      for (const other of closed) other.leave();
      throw new LockUpgradeError(
        `The write lock '${name}' was asked for by code that reads it, while another branch of the same writer reads it too. Ask for the write lock before the branches part`,
        name,
      );
    }
    closed.push(above);
    lease = gate.share;
  }
  return closed;
}

/** What a share of type `wanted` in a held lock means to its siblings. */
export function shareMode(held: HeldLock, wanted: LockType): ShareMode {
  const { type, name } = held;
  if (type === 'read' && wanted === 'write') {
    throw new LockUpgradeError(
      `The write lock '${name}' was asked for by code that holds its read lock: it would wait for itself. Release the read lock first, or take the write lock from the start`,
      name,
    );
  }
  const both = isReadWrite(type) && isReadWrite(wanted);
  if (both) return wanted === 'read' ? 'shared' : 'exclusive';
  if (!isReadWrite(type) && !isReadWrite(wanted)) return 'exclusive';
  throw new LockConfigurationError(
    `The lock '${name}' is held by this code as type '${type}' and asked for as '${wanted}': it would wait for itself. Use one type for one name`,
  );
}

function isReadWrite(type: LockType): boolean {
  return type === 'read' || type === 'write';
}

function siblingError(engine: LockEngine, held: HeldLock, terms: AcquisitionTerms): LockBusyError {
  const remaining = Math.max(0, Math.round(held.validFor - engine.context.clock.age(held.confirmed)));
  const waited = terms.waitTime > 0 ? `, for over ${terms.waitTime} ms` : '';
  return new LockBusyError(
    `The lock '${held.name}' is busy: another branch of the code that holds it is inside${waited}`,
    held.name,
    remaining,
    held.owner,
  );
}
