import { isReadWrite, type LockType } from '../../backends/lock-backend.js';
import { LockConfigurationError, LockUpgradeError } from '../errors.js';
import type { HeldLock } from '../lease/held-lock.js';
import type { Reentry } from './find-reentry.js';
import type { EnteredGate, ShareMode } from './share-gate.js';

/**
 * How a share of type `wanted` in a held lock goes together with its siblings.
 *
 * @throws LockUpgradeError when a reader asks for the write lock, LockConfigurationError for types that exclude each other
 */
export function shareMode(held: HeldLock, wanted: LockType): ShareMode {
  const { type, name } = held;
  if (type === 'read' && wanted === 'write') {
    throw new LockUpgradeError(
      `The write lock '${name}' was requested by code that holds its read lock: it would wait for itself. Release the read lock first, or take the write lock from the start`,
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

/**
 * The gates that are closed to other readers while a reader inside a writer writes: it has to be alone at all gates between itself and the
 * share that holds the write lock.
 *
 * @throws LockUpgradeError when another reader is inside as well: both could wait for each other
 */
export function closeGatesAbove({ scope, holder, held }: Reentry, wanted: LockType): readonly EnteredGate[] {
  const { key, name } = held;
  const closed: EnteredGate[] = [];
  for (let share = scope.lease.gates; wanted === 'write' && share !== holder.gates; ) {
    const gate = share.above(key);
    if (gate === undefined) break;
    const above = gate.closeToReaders();
    if (above === undefined) {
      for (const other of closed) other.leave();
      throw new LockUpgradeError(
        `The write lock '${name}' was requested by code that reads it, while another branch of the same writer reads it too. Ask for the write lock before the branches part`,
        name,
      );
    }
    closed.push(above);
    share = gate.share;
  }
  return closed;
}
