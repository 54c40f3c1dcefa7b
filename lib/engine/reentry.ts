import type { LockType } from '../backends/lock-backend.js';
import { Downgrade } from './downgrade.js';
import type { Milliseconds } from './duration.js';
import { LockBusyError, LockConfigurationError, LockUpgradeError } from './errors.js';
import type { HeldLock } from './held-lock.js';
import type { Lease } from './lease.js';
import { listOf } from './list-of.js';
import type { LockEngine } from './lock-engine.js';
import type { AcquisitionTerms } from './lock-options.js';
import type { Reentry } from './lock-scope.js';
import type { ShareGate, ShareMode } from './share-gate.js';
import { Waiter } from './waiter.js';

/**
 * Gives a child of the scope that holds the lock a share of it: same owner, same token, no round trip. Its siblings on the same
 * lock go first, in the order of their arrival.
 *
 * @throws LockUpgradeError when a reader asks for the write lock
 */
export function reenter(engine: LockEngine, reentry: Reentry, name: string, terms: AcquisitionTerms): Promise<Lease> {
  const { scope, held } = reentry;
  const mode = shareMode(held, terms.type);
  const gate = scope.gate(held.key);
  if (gate.open(mode)) {
    gate.enter(mode);
    return enter(engine, reentry, gate, name, terms);
  }
  if (terms.waitTime === 0) return Promise.reject(siblingError(engine, held, terms));
  return new Promise((resolve, reject) => {
    const waiter: Waiter = new Waiter(
      name,
      () => held.owner,
      terms,
      engine.parts.runtime,
      () =>
        resolve(
          enter(engine, reentry, gate, name, { ...terms, waitTime: Math.max(0, waiter.patience) as Milliseconds }),
        ),
      reject,
    );
    gate.wait(waiter, mode, () => (waiter.settled ? gate.leave() : waiter.grant(held)));
    waiter.watch(() => {
      gate.abandon(waiter);
      return siblingError(engine, held, terms);
    });
  });
}

/** The gate is entered: what the child gets depends on whether the scope still holds the lock. */
async function enter(
  engine: LockEngine,
  { scope, held }: Reentry,
  gate: ShareGate,
  name: string,
  terms: AcquisitionTerms,
): Promise<Lease> {
  try {
    if (scope.live && held.lost === undefined) {
      if (held.type === 'write' && terms.type === 'read') return await downgrade(engine, held, gate, name, terms);
      return engine.lease(listOf(held), terms, listOf(gate));
    }
    return await acquireAnew(engine, gate, name, terms);
  } catch (error) {
    gate.leave();
    throw error;
  }
}

/** The scope ended while its child waited in it: the child is on its own now. */
async function acquireAnew(engine: LockEngine, gate: ShareGate, name: string, terms: AcquisitionTerms): Promise<Lease> {
  const { type, waitTime, signal, onLost, fixed } = terms;
  const leaseTime = fixed ? terms.leaseTime : undefined;
  const lease = await engine.acquire(name, { type, waitTime, leaseTime, signal, onLost });
  gate.leave();
  return lease;
}

function downgrade(
  engine: LockEngine,
  held: HeldLock,
  gate: ShareGate,
  name: string,
  terms: AcquisitionTerms,
): Promise<Lease> {
  engine.admit('acquire()', name);
  return new Promise((resolve, reject) => {
    const granted = (read: HeldLock | undefined) => {
      if (read !== undefined) return resolve(engine.lease(listOf(read), terms, listOf(gate)));
      const waitTime = Math.max(0, waiter.patience) as Milliseconds;
      resolve(acquireAnew(engine, gate, name, { ...terms, waitTime }));
    };
    const { runtime } = engine.parts;
    const waiter = new Waiter<HeldLock | undefined>(name, () => held.owner, terms, runtime, granted, reject);
    held.downgrade ??= new Downgrade(engine, held);
    held.downgrade.enqueue(waiter);
  });
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
  const remaining = Math.max(0, Math.round(held.validFor - engine.parts.clock.age(held.confirmed)));
  const waited = terms.waitTime > 0 ? `, for over ${terms.waitTime} ms` : '';
  return new LockBusyError(
    `The lock '${held.name}' is busy: another branch of the code that holds it is inside${waited}`,
    held.name,
    remaining,
    held.owner,
  );
}
