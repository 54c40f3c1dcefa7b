import { type AcquireReply, type AcquireRequest, BackendError, type OwnerRef } from '../lock-backend.js';
import { deadlineTimer, type Runtime } from '../runtime.js';
import type { BatchedScript } from './calls/batched-script.js';
import type { AcquireBatch } from './commands/acquire.js';
import type { RedisConnection } from './connection/redis-connection.js';
import { messageOf, withoutSecrets } from './connection/redis-errors.js';
import type { ScriptCall } from './connection/script-call.js';

/** A run of a script, by the connection that it was executed on. */
export type ExecutedCall = Pick<ScriptCall, 'socket'>;

export interface ReplicaCheckOptions {
  /** The one that acquisitions run on, and nothing else: WAIT blocks it. */
  readonly connection: RedisConnection;
  readonly runtime: Runtime;
  readonly commandTimeout: number;
  readonly minReplicas: number;
  readonly replicaTimeout: number;
  readonly giveBack: (holding: OwnerRef) => Promise<unknown>;
}

/**
 * Makes acquisitions count only when enough replicas have them, so that a failover does not forget them. WAIT must follow on the
 * connection that wrote; one serves a whole batch.
 */
export class ReplicaCheck {
  private readonly waits = new WeakMap<ExecutedCall, Promise<number>>();

  constructor(private readonly options: ReplicaCheckOptions) {}

  /**
   * Settles when enough replicas have what `call` wrote.
   *
   * @param holdings what it acquired, and what is given back otherwise
   * @throws BackendError when there are too few in time, or the connection broke
   */
  async confirm(call: ExecutedCall, holdings: readonly OwnerRef[]): Promise<void> {
    const { connection, minReplicas, replicaTimeout, giveBack } = this.options;
    let problem: string;
    let cause: unknown;
    try {
      const replicas = await this.waitOnce(call);
      if (replicas >= minReplicas) return;
      problem = `${replicas} replicas had it within ${replicaTimeout} ms, and minReplicas asks for ${minReplicas}`;
    } catch (error) {
      problem = `whether replicas have it could not be asked: ${messageOf(error)}`;
      cause = withoutSecrets(error);
    }
    const returns = await Promise.allSettled(holdings.map(giveBack));
    const outcome = returns.every(({ status }) => status === 'fulfilled') ? 'refused' : 'unknown';
    const names = holdings.map(({ key }) => key).join(', ');
    throw new BackendError(`${connection.description}: ${names} was given back: ${problem}`, 'unavailable', outcome, {
      cause,
    });
  }

  private waitOnce(call: ExecutedCall): Promise<number> {
    let wait = this.waits.get(call);
    if (wait === undefined) {
      wait = this.wait(call);
      this.waits.set(call, wait);
    }
    return wait;
  }

  private wait({ socket }: ExecutedCall): Promise<number> {
    const { connection, runtime, commandTimeout, minReplicas, replicaTimeout } = this.options;
    return new Promise((resolve, reject) => {
      const timeout = commandTimeout + replicaTimeout;
      const timer = deadlineTimer(runtime, timeout, () => reject(new Error(`no answer within ${timeout} ms`)));
      const replicas = runtime.detached(() => connection.countReplicas(socket, minReplicas, replicaTimeout));
      replicas.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}

/** What an acquisition was answered, and by which call. */
export interface TracedReply {
  readonly reply: AcquireReply;
  readonly call: ExecutedCall;
}

/** Acquisitions that tell by which call they came. */
export class TracedBatch implements BatchedScript<AcquireRequest, TracedReply> {
  readonly script;
  readonly limited = true;

  constructor(private readonly batch: AcquireBatch) {
    this.script = batch.script;
  }

  alike(one: AcquireRequest, other: AcquireRequest): boolean {
    return this.batch.alike(one, other);
  }

  keys(requests: readonly AcquireRequest[]): string[] {
    return this.batch.keys(requests);
  }

  args(requests: readonly AcquireRequest[]): string[] {
    return this.batch.args(requests);
  }

  read(reply: unknown, index: number, request: AcquireRequest, call: ScriptCall): TracedReply {
    return { reply: this.batch.read(reply, index, request, call), call };
  }
}
