import {
  type Acquired,
  BackendError,
  type DetachableType,
  type HeldType,
  isDetachable,
  withReason,
} from '../../backends/lock-backend.js';
import { ticketOwner } from '../../backends/owner-ids.js';
import { unusedOwner } from '../ask/unused-owner.js';
import { LockConfigurationError, LockLostError } from '../errors.js';
import type { HeldLock } from '../hold/held-lock.js';
import type { Services } from '../services.js';
import { assertDetachable } from '../terms/assert-supported.js';
import { type Milliseconds, toLeaseTime } from '../terms/duration.js';
import type { DetachOptions } from '../terms/lease.js';
import { CHECKED_LATER, checkOptions, type OptionTable } from '../terms/option-table.js';
import { type DetachedLock, newSecret, writeTicket } from './lease-ticket.js';
import { Transfer } from './transfer-until-answered.js';

const OPTIONS: OptionTable<DetachOptions> = { for: CHECKED_LATER };

const NOT_DETACHABLE: Readonly<Record<Exclude<HeldType, DetachableType>, string>> = {
  fair: "a lock of type 'fair' cannot be detached, because it goes to the head of its queue only",
  read: "a lock of type 'read' cannot be detached, because readers share it",
  permits: 'a lock with permits cannot be detached, because several hold it',
  flight: 'a single flight cannot be detached, because its callers wait for its result',
};

/** The services that are needed here. */
type DetachServices = Pick<
  Services,
  'backend' | 'backgroundReleases' | 'clientId' | 'clock' | 'pendingAttempts' | 'runtime'
>;

/** @throws LockConfigurationError naming the invalid option */
export function toDetachedTime(options: DetachOptions, name: string): Milliseconds {
  const what = `detach() of '${name}'`;
  if (typeof options !== 'object' || options === null)
    throw new LockConfigurationError(`${what}: say how long the lock waits to be adopted: detach({ for: '5m' })`);
  checkOptions(options, OPTIONS, what);
  return toLeaseTime(options.for, `${what}: for`);
}

/**
 * The lock of a lease that can be detached.
 *
 * @throws LockConfigurationError with the reason why the lease cannot be detached
 */
export function detachable({ backend }: DetachServices, name: string, locks: readonly HeldLock[]): HeldLock {
  const refuse = (why: string): never => {
    throw new LockConfigurationError(`detach() of '${name}': ${why}`);
  };
  const [held, ...others] = locks;
  if (others.length > 0) refuse('a lease of several locks cannot be detached. Acquire them one by one');
  assertDetachable(backend, `detach() of '${name}'`);
  if (!isDetachable(held.type)) refuse(NOT_DETACHABLE[held.type as keyof typeof NOT_DETACHABLE]);
  if (held.shares.length > 1)
    refuse(
      `${held.shares.length} leases share the lock by re-entry. Detach the outermost one, after the others were released`,
    );
  if (held.downgrade !== undefined)
    refuse('its holder has acquired the read lock of the same name, too, which would stay behind');
  return held;
}

/**
 * Transfers a lock to the owner of a new ticket (docs/internals/decisions/detached-locks.md). If there is no answer, it
 * requests the same transfer again, until the lease has ended.
 *
 * @throws LockLostError when the lock is gone, or when the backend has not confirmed the transfer. Both owners are then
 *   released in the background
 */
export async function detachLock(
  services: DetachServices,
  held: HeldLock,
  leaseTime: Milliseconds,
): Promise<DetachedLock> {
  const { backend, backgroundReleases, clientId, clock, runtime } = services;
  const { key, name, owner: from } = held;
  const type = held.type as DetachableType; // checked by detachable()
  const secret = newSecret(runtime);
  const owner = ticketOwner(clientId, secret);
  const settled = held.keeper.depart?.(held); // transferable locks have such a keeper
  const transfer = new Transfer<Acquired>(services, key, type, owner, leaseTime);
  /** Milliseconds for which the present owner certainly holds the lock. */
  const timeLeft = () => clock.left(held.confirmed, held.validFor);
  try {
    const { state } = await transfer.untilAnswered(
      () => backend.transfer({ key, type, from, to: owner, leaseTime, reserve: 0 }),
      ({ error }) => {
        const left = timeLeft();
        // An owner id that the backend has released must not be sent again.
        if (error.kind !== 'unavailable' || error.spent || left <= 0) throw withReason(backend, error);
        return left;
      },
    );
    if (state === 'removed') throw permanent('it was force-released');
    if (state !== 'granted')
      throw permanent(timeLeft() > 0 ? 'it no longer existed' : 'its lease ended before the backend answered');
    backgroundReleases.followUp(held);
    return { ticket: writeTicket({ key, type, clientId, secret }), owner, leaseTime };
  } catch (error) {
    // Whichever owner holds the lock
    backgroundReleases.release(unusedOwner(held));
    transfer.undo();
    const { message } = error as BackendError;
    throw new LockLostError(`The lock '${name}' was lost while it was being detached: ${message}`, name, {
      cause: error,
    });
  } finally {
    settled?.();
  }
}

/** An answer that another request cannot change. */
function permanent(message: string): BackendError {
  return new BackendError(message, 'key', 'refused');
}
