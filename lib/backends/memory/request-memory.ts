import { REQUEST_LIFETIME, type RequestId } from '../synchronizer-backend.js';
import { ExpiringMap, isPast } from './expiring-map.js';

/** The latest request of a session, with the answer that a repetition gets. */
interface LatestRequest {
  readonly sequence: number;
  readonly answer: unknown;
  readonly forgottenAt: number;
}

/** Remembers answered requests, so that a repeated one changes nothing. */
export class RequestMemory {
  private readonly latest = new ExpiringMap<LatestRequest>(({ forgottenAt }, now) => isPast(forgottenAt, now));

  /** Sessions that are remembered. */
  get size(): number {
    return this.latest.size;
  }

  /**
   * Executes a request, unless it was executed before: then it gets the answer of that time.
   *
   * @param unchanged the answer when nothing changed; it is not remembered, unless an earlier copy may still arrive
   * @param execute gives undefined when it changed nothing
   */
  once<T>(key: string, request: RequestId, now: number, unchanged: T, execute: () => T | undefined): T {
    const { session, sequence, repeated } = request;
    const id = `${session} ${key}`;
    const latest = this.latest.get(id, now);
    if (latest !== undefined && latest.sequence >= sequence) return latest.answer as T;
    const answer = execute() ?? (repeated ? unchanged : undefined);
    if (answer === undefined) return unchanged;
    this.latest.set(id, { sequence, answer, forgottenAt: now + REQUEST_LIFETIME }, now);
    return answer;
  }
}
