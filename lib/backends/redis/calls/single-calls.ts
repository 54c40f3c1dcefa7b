import type { BackendError, NodeHealth } from '../../lock-backend.js';
import { answerTimer, type Runtime, type Timer } from '../../runtime.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { callError, noteFailure } from '../connection/redis-errors.js';
import type { ScriptCall, ScriptRequest } from '../connection/script-call.js';
import type { Script } from '../scripts.js';
import { closedError, timeoutError } from './call-errors.js';

export interface SingleReply {
  readonly reply: unknown;
  readonly call: ScriptCall;
}

/** Whether the server executes a script in time or not at all. */
type Limit = 'in time' | 'any time';

/**
 * What calls say about their node. `locks`: they ask for a lock, or for what belongs to it, so a refusal means that the
 * node does not grant locks. `notes`: they concern what clients write about themselves and for each other. A refusal,
 * for example by a Redis that is full, says nothing about locks. Only silence does.
 */
export type Subject = 'locks' | 'notes';

/**
 * Script calls that are too rare to be sent in batches. Like batches, they are sent at the end of the tick and answered
 * within the command timeout. The time is counted from the end of the tick, so that a long tick shortens neither the
 * caller's wait nor the script's deadline.
 */
export class SingleCalls {
  private readonly pending = new Set<SingleCall>();
  private closed = false;

  constructor(
    private readonly connection: RedisConnection,
    private readonly runtime: Runtime,
    private readonly commandTimeout: number,
    private readonly subject: Subject = 'locks',
  ) {}

  async call(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return (await this.send(script, keys, args, 'any time')).reply;
  }

  /**
   * Like {@link call}, for a script that takes something: its first argument is the server time after which it must not
   * be executed.
   */
  callInTime(script: Script, keys: readonly string[], args: readonly string[]): Promise<SingleReply> {
    return this.send(script, keys, args, 'in time');
  }

  /** Like {@link call}, but also returns how the script was sent. */
  callAnyTime(script: Script, keys: readonly string[], args: readonly string[]): Promise<SingleReply> {
    return this.send(script, keys, args, 'any time');
  }

  /** Rejects all calls that have no answer. */
  close(): void {
    this.closed = true;
    for (const call of this.pending) call.close();
  }

  private send(script: Script, keys: readonly string[], args: readonly string[], limit: Limit): Promise<SingleReply> {
    const { connection, runtime, commandTimeout, pending, subject } = this;
    return new Promise((resolve, reject) => {
      if (this.closed) return reject(closedError(connection));
      const end = () => pending.delete(call);
      const call = new SingleCall(script, keys, args, limit, subject, connection, resolve, reject, end);
      pending.add(call);
      runtime.detached(() => process.nextTick(() => call.send(runtime, commandTimeout)));
    });
  }
}

class SingleCall implements ScriptRequest {
  readonly divisible = false;
  deadline: number | undefined;
  private call!: ScriptCall;
  private timer: Timer | undefined;
  private due = 0;
  private ended = false;
  /** Whether the call was abandoned. A late answer then says nothing about the node: see batch-call.ts. */
  private givenUp = false;

  constructor(
    readonly script: Script,
    readonly keys: readonly string[],
    readonly args: readonly string[],
    private readonly limit: Limit,
    private readonly subject: Subject,
    private readonly connection: RedisConnection,
    private readonly resolve: (reply: SingleReply) => void,
    private readonly reject: (error: BackendError) => void,
    private readonly onEnd: () => void,
  ) {}

  send(runtime: Runtime, commandTimeout: number): void {
    if (this.ended) return;
    this.due = runtime.monotonic() + commandTimeout;
    if (this.limit === 'in time') this.deadline = this.due;
    this.startTimer(runtime, commandTimeout);
    this.call = this.connection.run(this);
  }

  get repeatable(): boolean {
    return this.deadline !== undefined && !this.ended;
  }

  extend(deadline: number): void {
    this.deadline = this.due = Math.max(deadline, this.due);
  }

  done(reply: unknown): void {
    if (!this.givenUp) this.node.answered(this.subject === 'locks' && this.deadline !== undefined);
    this.end();
    this.resolve({ reply, call: this.call });
  }

  fail(error: unknown): void {
    const failure = callError(error, this.call, this.connection.description, this.keys);
    if (!this.givenUp) this.noteFailure(failure, this.call.isAnswer(error));
    this.end();
    this.reject(failure);
  }

  close(): void {
    this.end();
    this.reject(closedError(this.connection));
  }

  private startTimer(runtime: Runtime, commandTimeout: number): void {
    this.timer = answerTimer(runtime, this.due, (moment) => {
      if (this.due <= moment) this.expire(commandTimeout);
      if (!this.ended) this.startTimer(runtime, commandTimeout);
    });
  }

  private expire(commandTimeout: number): void {
    const { connection, call } = this;
    if (connection.overdue(call, this)) return this.node.failed(false);
    connection.giveUp(call);
    this.fail(timeoutError(connection, commandTimeout, call.written ? 'unknown' : 'refused', call.validUntil));
    this.givenUp = true;
  }

  private noteFailure(failure: BackendError, refused: boolean): void {
    if (refused && this.subject === 'notes') this.node.answered(false);
    else noteFailure(this.node, failure, refused);
  }

  private get node(): NodeHealth {
    return this.connection.health.node(this.keys[0]);
  }

  private end(): void {
    this.ended = true;
    this.timer?.cancel();
    this.onEnd();
  }
}
