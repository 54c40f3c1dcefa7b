import { BackOff } from '../../backends/back-off.js';
import {
  type Acquired,
  BackendError,
  type HeldType,
  isTransferable,
  type TransferableType,
  withReason,
} from '../../backends/lock-backend.js';
import { ticketOwner } from '../../backends/owner-ids.js';
import { Attempt } from '../attempt.js';
import { LockConfigurationError, LockLostError } from '../errors.js';
import type { HeldLock } from '../lease/held-lock.js';
import type { DetachOptions } from '../lease/lease.js';
import { validity } from '../lease/lease-clock.js';
import { unusedOwner } from '../lease/unused-owner.js';
import type { Services } from '../services.js';
import { assertDetachable } from '../terms/assert-supported.js';
import { type Milliseconds, toLeaseTime } from '../terms/duration.js';
import { InterruptibleSleep } from '../waiting/interruptible-sleep.js';
import { type DetachedLock, newSecret, writeTicket } from './lease-ticket.js';

const OPTION_NAMES: readonly string[] = ['for'] satisfies (keyof DetachOptions)[];

const NOT_TRANSFERABLE: Readonly<Record<Exclude<HeldType, TransferableType>, string>> = {
  fair: "a lock of type 'fair' cannot be detached, because it goes to the head of its queue only",
  read: "a lock of type 'read' cannot be detached, because readers share it",
  flight: 'a single flight cannot be detached, because its callers wait for its result',
};

/** @throws LockConfigurationError naming the invalid option */
export function toDetachedTime(options: DetachOptions, name: string): Milliseconds {
  const what = `detach() of '${name}'`;
  if (typeof options !== 'object' || options === null)
    throw new LockConfigurationError(`${what}: say how long the lock waits to be adopted: detach({ for: '5m' })`);
  const unknown = Object.keys(options).find((option) => !OPTION_NAMES.includes(option));
  if (unknown !== undefined)
    throw new LockConfigurationError(`${what}: there is no option '${unknown}'; there is only 'for'`);
  return toLeaseTime(options.for, `${what}: for`);
}

/**
 * The lock of a lease that can be detached.
 *
 * @throws LockConfigurationError with the reason why the lease cannot be detached
 */
export function detachable({ backend }: Services, name: string, locks: readonly HeldLock[]): HeldLock {
  const refuse = (why: string): never => {
    throw new LockConfigurationError(`detach() of '${name}': ${why}`);
  };
  const [held, ...others] = locks;
  if (others.length > 0) refuse('a lease of several locks cannot be detached. Acquire them one by one');
  assertDetachable(backend, `detach() of '${name}'`);
  if (!isTransferable(held.type)) refuse(NOT_TRANSFERABLE[held.type as keyof typeof NOT_TRANSFERABLE]);
  if (held.shares.length > 1)
    refuse(
      `${held.shares.length} leases share the lock by re-entry. Detach the outermost one, after the others were released`,
    );
  if (held.downgrade !== undefined)
    refuse('its holder has acquired the read lock of the same name, too, which would stay behind');
  return held;
}

/**
 * Transfers a lock to the owner of a new ticket (docs/decisions/detached-locks.md). If there is no answer, it requests
 * the same transfer again, until the lease has ended.
 *
 * @throws LockLostError when the lock is gone, or when the backend has not confirmed the transfer. Both owners are then
 *   released in the background
 */
export async function detachLock(services: Services, held: HeldLock, leaseTime: Milliseconds): Promise<DetachedLock> {
  const { backgroundReleases, clientId, runtime } = services;
  const { key, name } = held;
  const type = held.type as TransferableType; // checked by detachable()
  const secret = newSecret(runtime);
  const owner = ticketOwner(clientId, secret);
  const settled = held.keeper.depart?.(held); // transferable locks have such a keeper
  const transfer = new TicketTransfer(services, held, type, owner, leaseTime);
  try {
    await transfer.run();
    backgroundReleases.followUp(held);
    return { ticket: writeTicket({ key, type, clientId, secret }), owner, leaseTime };
  } catch (error) {
    transfer.undo();
    const { message } = error as BackendError;
    throw new LockLostError(`The lock '${name}' was lost while it was being detached: ${message}`, name, {
      cause: error,
    });
  } finally {
    settled?.();
  }
}

class TicketTransfer {
  /** Copies of the requests may be executed until the backend's clock shows this time. */
  private lateCopiesUntil: number | undefined;

  constructor(
    private readonly services: Services,
    private readonly held: HeldLock,
    private readonly type: TransferableType,
    private readonly to: string,
    private readonly leaseTime: Milliseconds,
  ) {}

  /** @throws BackendError */
  async run(): Promise<Acquired> {
    const { services } = this;
    const backOff = new BackOff(services.runtime);
    const pause = new InterruptibleSleep(services.runtime);
    for (;;) {
      const reply = await this.ask();
      if (!(reply instanceof BackendError)) return reply;
      const left = this.timeLeft;
      // An owner id that the backend has released must not be sent again.
      if (reply.kind !== 'unavailable' || reply.spent || left <= 0) throw withReason(services.backend, reply);
      await pause.sleep(Math.min(left, backOff.next()));
    }
  }

  /** Releases whichever owner holds the lock. */
  undo(): void {
    const { held, type, to, leaseTime, lateCopiesUntil } = this;
    const { backgroundReleases } = this.services;
    backgroundReleases.release({ ...unusedOwner(held), leaseTime: held.validFor });
    backgroundReleases.release({ key: held.key, type, owner: to, leaseTime, validUntil: lateCopiesUntil });
  }

  private async ask(): Promise<Acquired | BackendError> {
    const { services, held, type, to, leaseTime } = this;
    const { key, owner: from } = held;
    const attempt = new Attempt(services, key, to, { type, leaseTime });
    try {
      const reply = await services.backend.transfer({ key, type, from, to, leaseTime, reserve: 0 });
      const state = attempt.answered(reply);
      this.noteLateCopies(attempt);
      if (reply === undefined)
        return permanent(this.timeLeft > 0 ? 'it no longer existed' : 'its lease ended before the backend answered');
      if (state === 'granted') return reply;
      return attempt.error ?? permanent('it was force-released');
    } catch (error) {
      attempt.failed(error as BackendError);
      this.noteLateCopies(attempt);
      return error as BackendError;
    }
  }

  private noteLateCopies({ lateCopiesUntil = 0 }: Attempt): void {
    if (lateCopiesUntil > 0) this.lateCopiesUntil = Math.max(this.lateCopiesUntil ?? 0, lateCopiesUntil);
  }

  /** Milliseconds for which the present owner certainly holds the lock. */
  private get timeLeft(): number {
    const { validFor, confirmed } = this.held;
    return validity(validFor) - this.services.clock.age(confirmed);
  }
}

/** An answer that another attempt cannot change. */
function permanent(message: string): BackendError {
  return new BackendError(message, 'key', 'refused');
}
