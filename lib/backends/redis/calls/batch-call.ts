import type { BackendError, NodeHealth } from '../../lock-backend.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { callError, mayConcernOneKey, noteFailure } from '../connection/redis-errors.js';
import type { ScriptCall, ScriptRequest } from '../connection/script-call.js';
import type { Script } from '../scripts.js';
import type { Batchable, BatchedScript } from './batched-script.js';
import { timeoutError } from './call-errors.js';

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

/** Script calls that were sent together. */
export class Dispatch {
  /** How many of the calls have no answer yet. */
  pending = 0;
}

/** What a {@link BatchCall} reports to its batch. */
export interface BatchCallOwner<Request extends Batchable, Reply> {
  readonly connection: RedisConnection;
  readonly commandTimeout: number;
  resolve(item: BatchedRequest<Request, Reply>, reply: Reply): void;
  /** Does nothing if the request is already settled. */
  reject(item: BatchedRequest<Request, Reply>, error: BackendError): void;
  /** Sends one request again, in a separate call. */
  sendAlone(dispatch: Dispatch, item: BatchedRequest<Request, Reply>): void;
  /** Called when all requests of a call are settled or have been sent again. May be called more than once. */
  callEnded(call: BatchCall<Request, Reply>): void;
}

/**
 * The life of one script call: for several requests that were sent together, or for a single one. It settles its
 * requests, and tells the health of its node how that went.
 */
export class BatchCall<Request extends Batchable, Reply> implements ScriptRequest {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  deadline: number | undefined;
  /** Until when its requests wait for a second try; 0: there is none. */
  extendedUntil = 0;
  private call!: ScriptCall;
  /**
   * Whether the call was abandoned. A cluster client then sends a PING to an arbitrary node instead, so the answer says
   * nothing about this node.
   */
  private givenUp = false;

  constructor(
    private readonly batch: BatchCallOwner<Request, Reply>,
    private readonly command: BatchedScript<Request, Reply>,
    readonly items: readonly BatchedRequest<Request, Reply>[],
    readonly dispatch: Dispatch,
  ) {
    const requests = items.map(({ request }) => request);
    this.script = command.script;
    this.keys = command.keys(requests);
    this.args = command.args(requests);
    // Requests are in the order of their deadlines.
    this.deadline = command.limited ? items[items.length - 1].deadline : undefined;
  }

  get moment(): number | undefined {
    return this.command.moment;
  }

  get divisible(): boolean {
    return this.items.length > 1;
  }

  get repeatable(): boolean {
    return this.deadline !== undefined && this.items.every(({ settled }) => !settled);
  }

  extend(deadline: number): void {
    this.deadline = this.extendedUntil = Math.max(deadline, this.deadline ?? 0);
    for (const item of this.items) item.deadline = Math.max(item.deadline, deadline);
  }

  send(): void {
    this.call = this.batch.connection.scripts.run(this);
  }

  done(reply: unknown): void {
    const { items, batch, command, call } = this;
    let failure: BackendError | undefined;
    let isAnswered = false;
    for (let index = 0; index < items.length; index++) {
      const item = items[index];
      if (item.settled) continue;
      try {
        batch.resolve(item, command.read(reply, index, item.request, call));
        isAnswered = true;
      } catch (error) {
        failure = error as BackendError;
        batch.reject(item, failure);
      }
    }
    if (this.givenUp) return batch.callEnded(this);
    if (failure === undefined || isAnswered)
      this.node.answered(command.subject !== 'notes' && this.deadline !== undefined);
    else this.noteFailure(failure, true);
    batch.callEnded(this);
  }

  fail(error: unknown): void {
    const { batch, call } = this;
    const pending = this.items.filter(({ settled }) => !settled);
    // The error may concern only one of the keys.
    if (this.divisible && mayConcernOneKey(error)) for (const item of pending) batch.sendAlone(this.dispatch, item);
    else {
      const failure = () => callError(error, call, batch.connection.description, this.command.subjectKeys);
      if (!this.givenUp) this.noteFailure(failure(), call.isAnswer(error));
      for (const item of pending) batch.reject(item, failure());
    }
    batch.callEnded(this);
  }

  /** Rejects requests whose deadline has passed. */
  expire(now: number): void {
    const { items, batch, call } = this;
    const overdue = items.filter((item) => item.isOverdue(now));
    if (overdue.length === 0) return;
    const { connection } = batch;
    const reason = connection.scripts.silenceAdvice(call);
    this.node.failed(false, reason);
    if (connection.scripts.overdue(call, this)) return;
    const isLast = items.every((item) => item.settled || item.isOverdue(now));
    this.givenUp = isLast;
    if (isLast) connection.scripts.giveUp(call);
    const outcome = isLast && !call.written ? 'refused' : 'unknown';
    const { validUntil, written } = call;
    const error = () => timeoutError(connection, batch.commandTimeout, outcome, reason, validUntil, written);
    for (const item of overdue) batch.reject(item, error());
    // The call may never be answered, so later requests must not wait for it.
    if (isLast) batch.callEnded(this);
  }

  private noteFailure(failure: BackendError, refused: boolean): void {
    if (refused && this.command.subject === 'notes') this.node.answered(false);
    else noteFailure(this.node, failure, refused);
  }

  private get node(): NodeHealth {
    return this.batch.connection.health.node(this.items[0].request.key);
  }
}
