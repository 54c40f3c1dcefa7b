import { type BackendError, type LockBackend, noAnswer, withReason } from '../../backends/lock-backend.js';
import { isTicketOwner } from '../../backends/owner-ids.js';
import type { HolderClient } from '../describe-holder.js';
import { LockAbortedError, LockBusyError, LockKeyError, LockSupersededError, LockUnavailableError } from '../errors.js';
import type { EventHub } from '../events/event-hub.js';
import type { WaitTerms } from '../terms/wait-terms.js';
import type { Caller } from './caller.js';

/** The known details of a lock's current holder. */
export interface KnownHolder {
  readonly holder: string | undefined;
  /** Whether the holder is a caller of this process. */
  readonly here: boolean;
  /** Milliseconds until its lease ends unless it is renewed; −1 when unknown or unlimited. */
  readonly remaining: number;
  /** Whether the lease is known not to be renewed. */
  readonly fixed?: boolean;
  /** The holder's client. */
  readonly client?: HolderClient | undefined;
  /** What to call a holder that has no record. */
  readonly unrecorded?: string | undefined;
}

/** A caller that is refused. The words are those of a lock if they are left out. */
interface Refused {
  readonly name: string;
  readonly terms: Pick<WaitTerms, 'waitTime'> & { readonly dropsBusy?: boolean | undefined };
  readonly what?: string;
  readonly notServed?: string;
}

/** How a caller in a line is refused. */
export interface InLine {
  /** How the error about an outage begins, for example `The lock 'order:1' could not be acquired`. */
  readonly notServed: string;
  /** The error if the time was too short because others hold what the caller waits for. */
  busyError(holder: KnownHolder): LockBusyError;
  /** Emits an event about this error. */
  announceBusy?(error: LockBusyError, events: EventHub): void;
}

export function lockNotAcquired(name: string): string {
  return `The lock '${name}' could not be acquired`;
}

export function lockBusyError(
  { name, terms }: Refused,
  { holder, here, remaining, fixed, client, unrecorded }: KnownHolder,
): LockBusyError {
  const waited = terms.waitTime > 0 ? `: not free within ${terms.waitTime} ms` : '';
  const who = `${holder ?? 'another owner'}${here ? ' (this process)' : ofClient(client, unrecorded)}`;
  const detached = holder !== undefined && isTicketOwner(holder);
  // Nobody renews the lease of a detached lock.
  const lease =
    remaining >= 0 ? `, its lease ends in ${remaining} ms${fixed || detached ? '' : ' unless renewed'}` : '';
  const create = () =>
    new LockBusyError(
      `The lock '${name}' is busy${waited}; held by ${who}${detached ? ' (detached, waiting to be adopted)' : ''}${lease}`,
      name,
      remaining,
      holder,
      fixed,
      client,
    );
  return terms.dropsBusy ? withoutStack(create) : create();
}

/** Creates an error without a stack trace. Does nothing special where the limit of stack traces cannot be changed. */
function withoutStack<T extends Error>(create: () => T): T {
  const { stackTraceLimit } = Error;
  Reflect.set(Error, 'stackTraceLimit', 0);
  try {
    return create();
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  }
}

/** The error for a caller with `newest` whose place was taken by a later one. */
export function supersededError(
  name: string,
  remaining: number,
  holder: string | undefined,
  client: HolderClient | undefined,
): LockSupersededError {
  return new LockSupersededError(
    `The call was superseded: a later call waits for the lock '${name}' in its place (newest)`,
    name,
    remaining,
    holder,
    false,
    client,
  );
}

/** The message may reach a client of the application, so it names neither host nor method. */
export function ofClient(client: HolderClient | undefined, unrecorded: string | undefined): string {
  if (client !== undefined) return ` of '${client.application}'`;
  return unrecorded === undefined ? '' : ` of ${unrecorded}`;
}

/** @param failure the last failure; `undefined` if there was no answer */
export function unavailableError(waiter: Refused, backend: LockBackend, failure?: BackendError): LockUnavailableError {
  return notServedError(
    waiter,
    failure === undefined ? noAnswer(backend, waiter.terms.waitTime) : withReason(backend, failure),
  );
}

/** The error for a caller that gets no answer. */
export function notServedError(
  { name, notServed = lockNotAcquired(name) }: Pick<Refused, 'name' | 'notServed'>,
  cause: BackendError,
): LockUnavailableError {
  return new LockUnavailableError(`${notServed}: ${cause.message}`, name, { cause });
}

export function shutdownError(what: string, name: string): LockAbortedError {
  const message = `${what}: the lock service is shutting down and grants no more locks`;
  return new LockAbortedError(message, name, { byShutdown: true });
}

/** The error for a caller whose wait is ended by the shutdown. */
export function waitEndedError({ what, name }: Pick<Caller<never>, 'what' | 'name'>): LockAbortedError {
  return shutdownError(`Waiting for ${what} has ended`, name);
}

/** The error for a failure that another attempt cannot change. */
export function permanentError(waiter: Omit<Refused, 'terms'>, backend: LockBackend, cause: BackendError): Error {
  if (cause.kind !== 'key') return notServedError(waiter, withReason(backend, cause));
  const { name, what = `the lock '${name}'` } = waiter;
  return new LockKeyError(`${what.replace(/^the/, 'The')} cannot be used: ${cause.message}`, name, { cause });
}
