import { BackOff } from '../../backends/back-off.js';
import { type Acquired, BackendError } from '../../backends/lock-backend.js';
import { ticketOwner } from '../../backends/owner-ids.js';
import { Attempt } from '../attempt.js';
import { type LockError, LockLostError, LockNotOwnedError } from '../errors.js';
import { announceAcquired, startTime } from '../lease/lease-events.js';
import type { LockLease } from '../lease/lock-lease.js';
import type { LockTable } from '../lock-table.js';
import type { LockQueue } from '../queue/lock-queue.js';
import type { AcquisitionTerms } from '../terms/lock-options.js';
import { InterruptibleSleep } from '../waiting/interruptible-sleep.js';
import { permanentError, shutdownError, unavailableError } from '../waiting/wait-errors.js';
import type { LeaseTicket } from './lease-ticket.js';

/**
 * Transfers a detached lock to this process. If there is no answer, the same transfer is requested again, until
 * `outageTimeout` ends.
 *
 * @param terms their type is the ticket's
 * @throws LockLostError when the lock is free, LockNotOwnedError when somebody else holds it, LockUnavailableError,
 *   LockAbortedError when shutdown has begun
 */
export async function adoptLock(
  table: LockTable,
  name: string,
  ticket: LeaseTicket,
  terms: AcquisitionTerms,
  what: string,
): Promise<LockLease> {
  const { services } = table;
  const scoped = services.admission.admit(what, name);
  const started = startTime(services);
  const queue = table.queueOf(ticket.type, name, ticket.key) as LockQueue;
  await queue.awaitClaim();
  const adoption = new Adoption(services, name, ticket, terms, what, queue);
  let token: number;
  try {
    ({ token } = await adoption.run());
  } catch (error) {
    queue.unclaim();
    throw error;
  }
  const held = queue.fulfil(adoption.attempt, terms, token);
  const lease = table.createLease(held.alone, terms);
  announceAcquired(services, lease, started, adoption.from);
  // Shutdown may have begun meanwhile, and would not wait for this lease.
  if (!services.admission.isClosing || scoped) return lease;
  await lease.release();
  throw shutdownError(what, name);
}

class Adoption {
  /** The latest request. */
  attempt!: Attempt;
  readonly from: string;
  private readonly to: string;
  private readonly calledAt: number;
  /** Whether one of the requests may have transferred the lock, or may still do so until {@link lateCopiesUntil}. */
  private inDoubt = false;
  private lateCopiesUntil: number | undefined;

  constructor(
    private readonly services: LockTable['services'],
    private readonly name: string,
    private readonly ticket: LeaseTicket,
    private readonly terms: AcquisitionTerms,
    private readonly what: string,
    private readonly queue: LockQueue,
  ) {
    this.to = services.newOwner();
    this.from = ticketOwner(ticket.clientId, ticket.secret);
    this.calledAt = services.runtime.monotonic();
  }

  async run(): Promise<Acquired> {
    const { runtime } = this.services;
    const backOff = new BackOff(runtime);
    const pause = new InterruptibleSleep(runtime);
    for (;;) {
      const answer = await this.ask();
      if (!(answer instanceof Error)) return answer;
      const final = answer instanceof BackendError ? this.finalError(answer) : answer;
      if (final !== undefined) {
        this.undo();
        throw final;
      }
      this.queue.claimFailed(answer as BackendError);
      await pause.sleep(backOff.next());
    }
  }

  private async ask(): Promise<Acquired | BackendError | LockError> {
    const { backend } = this.services;
    const { key, type, clientId, secret } = this.ticket;
    const { to, terms } = this;
    const attempt = new Attempt(this.services, key, to, { type, leaseTime: terms.leaseTime });
    this.attempt = attempt;
    try {
      // Checked by assertDetachable().
      const reply = await backend.adopt!({ key, type, clientId, secret, to, leaseTime: terms.leaseTime });
      const state = attempt.answered(reply);
      this.note(attempt);
      if (!reply.acquired) return this.refusal(reply.holder);
      if (state === 'granted') return reply;
      return this.lost(attempt.error?.message ?? 'it was force-released');
    } catch (error) {
      attempt.failed(error as BackendError);
      this.note(attempt);
      return error as BackendError;
    }
  }

  private note({ inDoubt, lateCopiesUntil }: Attempt): void {
    this.inDoubt ||= inDoubt;
    if (lateCopiesUntil !== undefined) this.lateCopiesUntil = Math.max(this.lateCopiesUntil ?? 0, lateCopiesUntil);
  }

  /** Releases the lock if one of the requests may have transferred it. */
  private undo(): void {
    if (!this.inDoubt) return;
    const { ticket, to, terms, lateCopiesUntil } = this;
    const { key, type } = ticket;
    const { leaseTime } = terms;
    this.services.backgroundReleases.release({ key, type, owner: to, leaseTime, validUntil: lateCopiesUntil });
  }

  /** The error for a failure after which the request is not repeated. */
  private finalError(failure: BackendError): Error | undefined {
    const { services, name, terms } = this;
    const { backend, runtime, admission } = services;
    if (failure.kind !== 'unavailable') return permanentError({ name, terms }, backend, failure);
    if (admission.isClosing) return shutdownError(this.what, name);
    const isOver = runtime.monotonic() - this.calledAt >= terms.outageTimeout;
    // An owner id that the backend has released must not be sent again.
    return isOver || failure.spent ? unavailableError({ name, terms }, backend, failure) : undefined;
  }

  private refusal(holder: string | undefined): LockError {
    const { name } = this;
    if (holder === undefined)
      return this.lost('it is free, because its time is over, or it was already adopted and released');
    return new LockNotOwnedError(
      `The lock '${name}' cannot be adopted: ${holder} holds it. Its ticket was used before, or its time is over`,
      name,
    );
  }

  private lost(why: string): LockLostError {
    return new LockLostError(`The lock '${this.name}' cannot be adopted: ${why}`, this.name);
  }
}
