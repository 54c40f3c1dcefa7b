import type { OwnerRef, ReleaseReply } from '../lock-backend.js';
import { deadlineTimer, type Runtime } from '../runtime.js';
import type { RedisConnection } from './connection/redis-connection.js';
import { messageOf, ServerError, withoutSecrets } from './connection/redis-errors.js';
import type { ScriptCall } from './connection/script-call.js';

/** A run of a script. Its socket is that of the connection it was executed on. */
type ExecutedCall = Pick<ScriptCall, 'socket'>;

export interface ReplicaCheckOptions {
  /** The connection for acquisitions only, because WAIT blocks it. */
  readonly connection: RedisConnection;
  readonly runtime: Runtime;
  /** In milliseconds. It is also how long the replicas have. */
  readonly commandTimeout: number;
  readonly minReplicas: number;
  readonly release: (owner: OwnerRef) => Promise<ReleaseReply>;
}

/**
 * Makes acquisitions count only when enough replicas have them, so that they are not lost in a failover. WAIT must be
 * sent on the connection that wrote. One WAIT serves a whole batch.
 */
export class ReplicaCheck {
  private readonly waits = new WeakMap<ExecutedCall, Promise<number>>();

  constructor(private readonly options: ReplicaCheckOptions) {}

  /**
   * Resolves when enough replicas have what `call` wrote; releases it otherwise.
   *
   * @param owners what the call acquired
   * @throws BackendError when too few replicas have it in time, or the connection broke
   */
  async confirm(call: ExecutedCall, owners: readonly OwnerRef[]): Promise<void> {
    const { connection, minReplicas, commandTimeout, release } = this.options;
    let problem: string;
    let cause: unknown;
    try {
      const replicas = await this.waitOnce(call);
      if (replicas >= minReplicas) return;
      const required = minReplicas === 1 ? '1 required replica' : `${minReplicas} required replicas`;
      problem = `only ${replicas} of ${required} confirmed within ${commandTimeout} ms`;
    } catch (error) {
      problem = `the replicas could not be asked: ${messageOf(error)}`;
      cause = withoutSecrets(error);
    }
    const releases = await Promise.allSettled(owners.map(release));
    const isReleased = releases.every((release) => release.status === 'fulfilled' && !release.value.resent);
    const outcome = isReleased ? 'refused' : 'unknown';
    const names = owners.map(({ key }) => key).join(', ');
    throw new ServerError(connection.description, `gave up ${names} because ${problem}`, 'unavailable', outcome, {
      cause,
      spent: true,
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
    const { connection, runtime, commandTimeout, minReplicas } = this.options;
    return new Promise((resolve, reject) => {
      const timeout = 2 * commandTimeout;
      const giveUp = () => reject(new Error(`no answer within ${timeout} ms`));
      const timer = deadlineTimer(runtime, timeout, giveUp, 'keep-alive');
      const replicas = runtime.detached(() => connection.countReplicas(socket, minReplicas, commandTimeout));
      replicas.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}
