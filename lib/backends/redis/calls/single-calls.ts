import type { BackendError } from '../../lock-backend.js';
import { answerTimer, type Runtime, type Timer } from '../../runtime.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import type { ScriptCall } from '../connection/script-call.js';
import type { Script } from '../scripts.js';
import { BatchCall, type BatchCallOwner, BatchedRequest, Dispatch } from './batch-call.js';
import type { Batchable, BatchedScript, Subject } from './batched-script.js';
import { closedError } from './call-errors.js';
import { nextTick } from './end-of-tick.js';

export interface SingleReply {
  readonly reply: unknown;
  readonly call: ScriptCall;
}

/**
 * `in time`: the server executes the script within the command timeout, or not at all. A moment on the monotonic clock:
 * see {@link SingleCalls.callWithTime}.
 */
type Limit = 'in time' | 'any time' | number;

type SingleRequest = BatchedRequest<Batchable, SingleReply>;

/**
 * Script calls that are too rare to be sent in batches. Like batches, they are sent at the end of the tick and answered
 * within the command timeout. The time is counted from the end of the tick, so that a long tick shortens neither the
 * caller's wait nor the script's deadline.
 */
export class SingleCalls implements BatchCallOwner<Batchable, SingleReply> {
  /** The requests without an answer, each with its timer once it was sent. */
  private readonly pending = new Map<SingleRequest, Timer | undefined>();
  private closed = false;

  constructor(
    readonly connection: RedisConnection,
    private readonly runtime: Runtime,
    readonly commandTimeout: number,
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

  /**
   * Like {@link call}, for a script that is executed at any time, but receives as its first argument the server time at
   * `moment` of the monotonic clock, or a little earlier.
   */
  callWithTime(moment: number, script: Script, keys: readonly string[], args: readonly string[]): Promise<SingleReply> {
    return this.send(script, keys, args, moment);
  }

  /** Rejects all calls that have no answer. */
  close(): void {
    this.closed = true;
    for (const item of [...this.pending.keys()]) this.reject(item, closedError(this.connection));
  }

  resolve(item: SingleRequest, reply: SingleReply): void {
    this.settle(item);
    item.resolve(reply);
  }

  reject(item: SingleRequest, error: BackendError): void {
    if (item.settled) return;
    this.settle(item);
    item.reject(error);
  }

  /** Never called, because there is nothing to divide. */
  sendAlone(): void {}

  callEnded(): void {}

  private send(script: Script, keys: readonly string[], args: readonly string[], limit: Limit): Promise<SingleReply> {
    const { connection, runtime, commandTimeout } = this;
    return new Promise((resolve, reject) => {
      if (this.closed) return reject(closedError(connection));
      const item: SingleRequest = new BatchedRequest({ key: keys[0] }, resolve, reject);
      this.pending.set(item, undefined);
      const command = new SingleScript(script, keys, args, limit, this.subject);
      const send = () => {
        if (item.settled) return;
        item.deadline = runtime.monotonic() + commandTimeout;
        const call = new BatchCall(this, command, [item], new Dispatch());
        this.startTimer(item, call);
        call.send();
      };
      runtime.detached(() => nextTick(send));
    });
  }

  private startTimer(item: SingleRequest, call: BatchCall<Batchable, SingleReply>): void {
    const isDue = (moment: number) => {
      call.expire(moment);
      if (!item.settled) this.startTimer(item, call);
    };
    const timer = answerTimer(this.runtime, item.deadline, isDue, 'keep-alive');
    this.pending.set(item, timer);
  }

  private settle(item: SingleRequest): void {
    item.settled = true;
    this.pending.get(item)?.cancel();
    this.pending.delete(item);
  }
}

/** A call that is about one thing. */
class SingleScript implements BatchedScript<Batchable, SingleReply> {
  readonly unsentReply = undefined;

  constructor(
    readonly script: Script,
    readonly subjectKeys: readonly string[],
    private readonly values: readonly string[],
    private readonly limit: Limit,
    readonly subject: Subject,
  ) {}

  get limited(): boolean {
    return this.limit === 'in time';
  }

  get moment(): number | undefined {
    return typeof this.limit === 'number' ? this.limit : undefined;
  }

  alike(): boolean {
    return false;
  }

  keys(): readonly string[] {
    return this.subjectKeys;
  }

  args(): readonly string[] {
    return this.values;
  }

  read(reply: unknown, _index: number, _request: Batchable, call: ScriptCall): SingleReply {
    return { reply, call };
  }
}
