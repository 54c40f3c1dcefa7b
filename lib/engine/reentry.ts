import type { LockType } from '../backends/lock-backend.js';
import { LockAbortedError, LockBusyError, LockConfigurationError, LockUpgradeError } from './errors.js';
import type { HeldLock } from './held-lock.js';
import type { Lease } from './lease.js';
import type { LockEngine } from './lock-engine.js';
import type { AcquisitionTerms } from './lock-options.js';
import type { Reentry } from './lock-scope.js';
import type { ShareMode } from './share-gate.js';
import { Waiter } from './waiter.js';

/**
 * Gives a child of the scope that holds the lock a share of it: same owner, same token, no round trip. Its siblings on the same
 * lock go first, in the order of their arrival.
 *
 * @throws LockUpgradeError when a reader asks for the write lock
 */
export function reenter(
  engine: LockEngine,
  { scope, held }: Reentry,
  name: string,
  terms: AcquisitionTerms,
): Promise<Lease> {
  const mode = shareMode(held, terms.type);
  const gate = scope.gate(held.key);
  if (gate.open(mode)) {
    gate.enter(mode);
    return Promise.resolve(engine.lease([held], terms, [gate]));
  }
  if (terms.waitTime === 0) return Promise.reject(siblingError(engine, held, terms));
  return new Promise((resolve, reject) => {
    const { runtime } = engine.parts;
    const waiter = new Waiter<Lease>(name, held.key, held.owner, terms, runtime, resolve, reject);
    const turn = () => {
      if (waiter.settled) return gate.leave();
      if (scope.live && held.lost === undefined) return waiter.grant(engine.lease([held], terms, [gate]));
      // The scope ended while this one waited in it: it is on its own now.
      gate.leave();
      engine.acquire(name, terms).then(
        (lease) => waiter.grant(lease),
        (error) => waiter.refuse(error),
      );
    };
    gate.wait(waiter as unknown as Waiter, mode, turn);
    waiter.watch((departure) => {
      gate.abandon(waiter as unknown as Waiter);
      return departure === 'abort' ? new LockAbortedError(name, name) : siblingError(engine, held, terms);
    });
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
  if (type === 'read') {
    if (wanted === 'read') return 'shared';
  } else if (type === 'write') {
    if (wanted === 'read') return 'shared';
    if (wanted === 'write') return 'exclusive';
  } else if (wanted !== 'read' && wanted !== 'write') return 'exclusive';
  throw new LockConfigurationError(
    `The lock '${name}' is held by this code as type '${type}' and asked for as '${wanted}': it would wait for itself. Use one type for one name`,
  );
}

function siblingError(engine: LockEngine, held: HeldLock, terms: AcquisitionTerms): LockBusyError {
  const remaining = Math.max(0, Math.round(held.validFor - engine.parts.clock.age(held.confirmed)));
  return new LockBusyError(
    `The lock '${held.name}' is busy: another branch of the code that holds it is inside${terms.waitTime > 0 ? `, for over ${terms.waitTime} ms` : ''}`,
    held.name,
    remaining,
    held.owner,
  );
}
