import type { LockType } from '../backends/lock-backend.js';
import type { Milliseconds } from './duration.js';
import {
  LockBusyError,
  LockConfigurationError,
  LockLostError,
  LockUnavailableError,
  LockUpgradeError,
} from './errors.js';
import type { HeldLock } from './held-lock.js';
import type { Lease } from './lease.js';
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
      held.key,
      held.owner,
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
      const shared = held.type === 'write' && terms.type === 'read' ? await downgrade(engine, held, terms) : held;
      return engine.lease([shared], terms, [gate]);
    }
    // The scope ended while this one waited in it: it is on its own now.
    const { type, waitTime, signal, onLost, fixed } = terms;
    const leaseTime = fixed ? terms.leaseTime : undefined;
    const lease = await engine.acquire(name, { type, waitTime, leaseTime, signal, onLost });
    gate.leave();
    return lease;
  } catch (error) {
    gate.leave();
    throw error;
  }
}

/**
 * A writer takes the read lock of the same name under its own owner, so that it goes on reading when the write lock is given
 * back: readers come in then, writers don't.
 */
async function downgrade(engine: LockEngine, held: HeldLock, terms: AcquisitionTerms): Promise<HeldLock> {
  for (let pending = held.downgrade; pending !== undefined; ) {
    const read = await pending.catch(() => undefined);
    if (read !== undefined && read.lost === undefined && !read.dropped) return read;
    if (held.downgrade === pending) break;
    pending = held.downgrade;
  }
  held.downgrade = readAsWriter(engine, held, terms);
  return held.downgrade;
}

async function readAsWriter(engine: LockEngine, held: HeldLock, terms: AcquisitionTerms): Promise<HeldLock> {
  const { backend, clock } = engine.parts;
  const { key, name, owner } = held;
  const { leaseTime } = terms;
  const sent = clock.now();
  const request = { key, type: 'read', owner, leaseTime, reserve: 0, placeTimeout: 0, preferWriters: false } as const;
  const reply = await backend.acquire(request).catch((cause) => {
    throw new LockUnavailableError(`The read lock '${name}' could not be acquired: ${cause.message}`, name, { cause });
  });
  if (!reply.acquired) {
    throw new LockLostError(
      `The write lock '${name}' was lost: it was not there any more when its read lock was asked for`,
      name,
    );
  }
  return engine.queue('read', key).fulfil(name, owner, terms, sent, reply.token);
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
