/**
 * Why a call to a backend failed.
 *
 * - `kind` `unavailable`: there was no answer, or an error that may pass (LOADING, READONLY, OOM, CLUSTERDOWN, …).
 *   `denied`: the server refuses this user or command. `key`: the key holds a value that is not a lock of this kind.
 *   `closed`: the client that sends the commands has ended and will not answer again.
 * - `outcome` `refused`: the call was certainly not executed. `unknown`: it may have been executed, or may still be
 *   executed.
 * - `validUntil`: the time on the backend's clock, in ms, after which a call of unknown outcome can no longer be
 *   executed. Until then, a release that finds nothing ({@link ReleaseReply.at}) proves nothing. Undefined: no copy of
 *   the call is under way.
 * - `spent`: the backend has already released the owner of the acquisition, so another attempt needs a new owner.
 *
 * @publicApi
 */
export class BackendError extends Error {
  override readonly name = 'BackendError';
  readonly validUntil: number | undefined;
  readonly spent: boolean;

  constructor(
    message: string,
    readonly kind: 'unavailable' | 'denied' | 'key' | 'closed',
    readonly outcome: 'refused' | 'unknown',
    options?: { cause?: unknown } & { readonly validUntil?: number; readonly spent?: boolean },
  ) {
    super(message, options);
    this.validUntil = outcome === 'unknown' ? options?.validUntil : undefined;
    this.spent = options?.spent ?? false;
  }
}

/** The parts of a backend that appear in error messages. */
interface BackendDescription {
  readonly description: string;
  readonly connectionError?: Error | undefined;
}

/**
 * The error of a call that was not answered in time. Its cause is the connection's last error, if known.
 *
 * @param time how long the caller waited for the answer, in milliseconds; `Infinity` if it is still waiting
 */
export function noAnswer(
  backend: BackendDescription,
  time: number,
  outcome: BackendError['outcome'] = 'unknown',
  validUntil?: number,
): BackendError {
  const within = Number.isFinite(time) ? `within ${time} ms` : 'yet';
  // Without a connection, nobody was asked.
  const lack = backend.connectionError === undefined ? 'no answer' : 'no connection';
  const message = `${backend.description}: ${lack} ${within}`;
  return withReason(backend, new BackendError(message, 'unavailable', outcome, { validUntil }));
}

/** Adds the connection's last error to a failure without a cause. */
export function withReason({ connectionError }: BackendDescription, failure: BackendError): BackendError {
  if (connectionError === undefined || failure.cause !== undefined || failure.kind !== 'unavailable') return failure;
  const { message, kind, outcome, validUntil, spent } = failure;
  return new BackendError(because(message, connectionError.message), kind, outcome, {
    cause: connectionError,
    validUntil,
    spent,
  });
}

/** A message with what explains it, if that is known: `redis 127.0.0.1:6379/0: no answer yet (connect ECONNREFUSED)`. */
export function because(message: string, reason: string | undefined): string {
  return reason === undefined ? message : `${message} (${reason})`;
}
