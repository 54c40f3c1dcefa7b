import type { RequestId } from '../../backends/synchronizer-backend.js';

/** Numbers the requests of one service. Each session has at most one request under way for an object. */
export class RequestIds {
  private last = 0;

  constructor(private readonly clientId: string) {}

  next(session: string): RequestId {
    return { session: `${this.clientId}:${session}`, sequence: ++this.last };
  }
}
