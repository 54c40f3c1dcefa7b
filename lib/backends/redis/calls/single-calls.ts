import { BackendError } from '../../lock-backend.js';
import { deadlineTimer, type Runtime } from '../../runtime.js';
import type { RedisConnection } from '../connection/redis-connection.js';
import { callError } from '../connection/redis-errors.js';
import type { ScriptCall } from '../connection/script-call.js';
import type { Script } from '../scripts.js';

export interface SingleReply {
  readonly reply: unknown;
  readonly call: ScriptCall;
}

/** Script calls that are too rare to travel in batches. Each is answered within the command time-out. */
export class SingleCalls {
  private readonly open = new Set<(error: BackendError) => void>();
  private closed = false;

  constructor(
    private readonly connection: RedisConnection,
    private readonly runtime: Runtime,
    private readonly commandTimeout: number,
  ) {}

  async call(script: Script, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return (await this.send(script, keys, args, false)).reply;
  }

  /** As {@link call}, for a script that takes something: its first argument is when it must not be executed any more. */
  callInTime(script: Script, keys: readonly string[], args: readonly string[]): Promise<SingleReply> {
    return this.send(script, keys, args, true);
  }

  private send(
    script: Script,
    keys: readonly string[],
    args: readonly string[],
    limited: boolean,
  ): Promise<SingleReply> {
    const { connection, runtime, commandTimeout } = this;
    return new Promise((resolve, reject) => {
      if (this.closed) return reject(closedError(connection));
      const end = () => {
        timer.cancel();
        this.open.delete(fail);
      };
      const fail = (error: BackendError) => {
        end();
        reject(error);
      };
      const timer = deadlineTimer(runtime, commandTimeout, () => {
        call.abandon();
        connection.overdue(call);
        const message = `${connection.description}: no answer within ${commandTimeout} ms`;
        const { validUntil } = call;
        fail(new BackendError(message, 'unavailable', call.written ? 'unknown' : 'refused', { validUntil }));
      });
      this.open.add(fail);
      const call = runtime.detached(() =>
        connection.run({
          script,
          keys,
          args,
          deadline: limited ? runtime.monotonic() + commandTimeout : undefined,
          divisible: false,
          done: (reply) => {
            end();
            resolve({ reply, call });
          },
          fail: (error) => fail(callError(error, call, connection.description, keys)),
        }),
      );
    });
  }

  /** Rejects what has no answer. */
  close(): void {
    this.closed = true;
    for (const fail of this.open) fail(closedError(this.connection));
  }
}

function closedError({ description }: RedisConnection): BackendError {
  return new BackendError(`${description}: the lock backend was closed`, 'unavailable', 'unknown');
}
