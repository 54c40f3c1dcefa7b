import { inScopeOf, noteCall } from './scope/lock-scope.js';
import { shutdownError } from './wait/wait-errors.js';

/** Which callers may still begin to acquire locks. `Shutdown` sets it. */
export class Admission {
  /** Shutdown has begun. Locks are granted as ever, but nobody stands for election any more. */
  isEnding = false;
  /** The service waits for the end of its work, so nothing is kept for a next caller. */
  isDraining = false;
  /** Nobody is admitted any more, not even bodies that are still running. */
  isClosed = false;

  constructor(private readonly service: object) {}

  /**
   * Whether the caller runs in a live scope of this service. Such a caller may wait for further locks during shutdown,
   * because it may need them to finish.
   *
   * @param hasScope whether the caller runs in a scope of any service, if that is known
   * @throws LockAbortedError when the service is closed
   */
  admit(what: string, name: string, hasScope = true): boolean {
    if (hasScope) noteCall();
    if (this.isClosed) throw shutdownError(what, name);
    return hasScope && inScopeOf(this.service);
  }
}
