/**
 * Why a call to a backend failed.
 *
 * - `kind` `unavailable`: there was no answer, or an error that may pass (LOADING, READONLY, OOM, CLUSTERDOWN, …).
 *   `denied`: the server refuses this user or command. `key`: the key holds a value that is not a lock of this kind.
 *   `closed`: the client that sends the commands has ended and will not answer again.
 * - `outcome` `refused`: the call was certainly not executed. `unknown`: it may have been executed, or may still be.
 * - `validUntil`: the time on the backend's clock, in ms, after which a call of unknown outcome can no longer be
 *   executed. Until then, a release that finds nothing ({@link ReleaseReply.at}) proves nothing. Undefined: no copy of
 *   the call is under way.
 * - `spent`: the backend has released the owner of the acquisition again, so another attempt needs another owner.
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

/** The parts of a backend that its error messages mention. */
interface BackendDescription {
  readonly description: string;
  readonly connectionError?: Error | undefined;
}

/**
 * The error of a call that was not answered in time. Its cause is the connection's last error, if known.
 *
 * @param time how long the answer was awaited, in milliseconds; `Infinity`: the caller is still waiting
 */
export function noAnswer(
  backend: BackendDescription,
  time: number,
  outcome: BackendError['outcome'] = 'unknown',
  validUntil?: number,
): BackendError {
  const within = Number.isFinite(time) ? `within ${time} ms` : 'yet';
  const message = `${backend.description}: no answer ${within}`;
  return withReason(backend, new BackendError(message, 'unavailable', outcome, { validUntil }));
}

/** Adds the connection's last error to a failure without a cause. */
export function withReason({ connectionError }: BackendDescription, failure: BackendError): BackendError {
  if (connectionError === undefined || failure.cause !== undefined || failure.kind !== 'unavailable') return failure;
  const { message, kind, outcome, validUntil, spent } = failure;
  return new BackendError(`${message} (${connectionError.message})`, kind, outcome, {
    cause: connectionError,
    validUntil,
    spent,
  });
}
