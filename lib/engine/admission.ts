import { inScopeOf, noteCall } from './scope/lock-scope.js';
import { shutdownError } from './wait/wait-errors.js';

/** Which callers may still begin to acquire locks. `Shutdown` closes it. */
export class Admission {
  /** Only callers that run in a scope of this service are admitted. */
  isClosing = false;
  /** Nobody is admitted any more, not even bodies that are still running. */
  isClosed = false;

  constructor(private readonly service: object) {}

  /**
   * Whether the caller runs in a live scope of this service. Such a caller may acquire further locks during shutdown,
   * because it may need them to finish.
   *
   * @param hasScope whether the caller runs in a scope of any service, if that is known
   * @throws LockAbortedError for any other caller once shutdown has begun
   */
  admit(what: string, name: string, hasScope = true): boolean {
    if (hasScope) noteCall();
    const scoped = hasScope && inScopeOf(this.service);
    if (this.isClosing && (!scoped || this.isClosed)) throw shutdownError(what, name);
    return scoped;
  }
}
