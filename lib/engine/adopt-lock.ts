import { type AdoptReply, type BackendError } from '../backends/lock-backend.js';
import { ticketOwner } from '../backends/owner-ids.js';
import type { Granted } from './ask/attempt.js';
import type { LeaseTicket } from './detached/lease-ticket.js';
import { Transfer } from './detached/transfer-until-answered.js';
import { LockLostError, LockNotOwnedError } from './errors.js';
import { announceAcquired, startTime } from './events/lease-events.js';
import { lockLostError } from './hold/loss-reasons.js';
import type { LockLease } from './lease/lock-lease.js';
import type { LockTable } from './lock-table.js';
import type { LockQueue } from './queue/lock-queue.js';
import type { AcquisitionTerms } from './terms/lock-options.js';
import { permanentError, shutdownError, unavailableError } from './wait/wait-errors.js';

/**
 * Transfers a detached lock to this process. If there is no answer, the same transfer is requested again, until
 * `outageTimeout` ends.
 *
 * @param terms their type is the ticket's
 * @throws LockLostError when the lock is free, LockNotOwnedError when somebody else holds it, LockUnavailableError,
 *   LockAbortedError when the service is closed
 */
export async function adoptLock(
  table: LockTable,
  name: string,
  ticket: LeaseTicket,
  terms: AcquisitionTerms,
  what: string,
): Promise<LockLease> {
  const { services } = table;
  const { admission } = services;
  admission.admit(what, name);
  const started = startTime(services);
  const queue = table.queueOf(ticket.type, name, ticket.key) as LockQueue;
  await queue.awaitClaim();
  let granted: Granted<AdoptReply>;
  try {
    granted = await transferFrom(ticket, queue, services, terms, what);
  } catch (error) {
    queue.unclaim();
    throw error;
  }
  // A lease that was lost unnoticed would last beside the adopted lock until its next renewal.
  for (const former of queue.holders)
    former.lose(lockLostError(name, services.watchdog.explain(former, 'gone-at-adoption')));
  const held = queue.fulfil(granted, terms, granted.reply.token);
  const lease = table.createLease(held.alone, terms);
  announceAcquired(services, lease, started, ticketOwner(ticket.clientId, ticket.secret));
  // The service may have been closed meanwhile, so that nobody would renew this lease.
  if (!admission.isClosed) return lease;
  await lease.release();
  throw shutdownError(what, name);
}

/** Transfers the lock to a new owner of this process. */
async function transferFrom(
  { key, type, clientId, secret }: LeaseTicket,
  queue: LockQueue,
  services: LockTable['services'],
  terms: AcquisitionTerms,
  what: string,
): Promise<Granted<AdoptReply>> {
  const { admission, backend, runtime } = services;
  const { leaseTime, outageTimeout } = terms;
  const { name } = queue;
  const to = services.newOwner();
  const calledAt = runtime.monotonic();
  const transfer = new Transfer<AdoptReply>(services, key, type, to, leaseTime);
  const lost = (why: string) => new LockLostError(`The lock '${name}' cannot be adopted: ${why}`, name);
  /** The error for a failure after which the request is not repeated. */
  const finalError = (failure: BackendError): Error | undefined => {
    if (failure.kind !== 'unavailable') return permanentError({ name }, backend, failure);
    if (admission.isClosed) return shutdownError(what, name);
    const isOver = runtime.monotonic() - calledAt >= outageTimeout;
    // An owner id that the backend has released must not be sent again.
    return isOver || failure.spent ? unavailableError({ name, terms }, backend, failure) : undefined;
  };
  try {
    const outcome = await transfer.untilAnswered(
      () => backend.adopt!({ key, type, clientId, secret, to, leaseTime }), // checked by assertDetachable()
      ({ error, reply }) => {
        const final = reply === undefined ? finalError(error) : lost(error.message);
        if (final !== undefined) throw final;
        queue.claimFailed(error);
        return Number.POSITIVE_INFINITY;
      },
    );
    if (outcome.state === 'granted') return outcome;
    if (outcome.state !== 'busy') throw lost('it was force-released');
    const { holder } = outcome.reply;
    if (holder === undefined)
      throw lost('it is free, because its time is over, or it was already adopted and released');
    throw new LockNotOwnedError(
      `The lock '${name}' cannot be adopted: ${holder} holds it. Its ticket was used before, or its time is over`,
      name,
    );
  } catch (error) {
    transfer.undo();
    throw error;
  }
}
