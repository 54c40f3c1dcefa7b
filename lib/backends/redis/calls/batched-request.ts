import type { BackendError } from '../../lock-backend.js';

/**
 * One request of a batch, with the promise of its caller. This is a class for the reason given in
 * engine/collections/list-of.ts.
 */
export class BatchedRequest<Request, Reply> {
  /** On the monotonic clock; set at the end of the tick in which the request was made. */
  deadline = Number.POSITIVE_INFINITY;
  settled = false;

  constructor(
    readonly request: Request,
    readonly resolve: (reply: Reply) => void,
    readonly reject: (error: BackendError) => void,
  ) {}

  isOverdue(now: number): boolean {
    return !this.settled && this.deadline <= now;
  }
}
