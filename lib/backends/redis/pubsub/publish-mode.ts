import { BackendError } from '../../lock-backend.js';
import type { SingleCalls } from '../calls/single-calls.js';
import { isLastingRefusal } from '../connection/redis-errors.js';
import { integerOf } from '../reply-shape.js';
import { scripts } from '../scripts.js';

export type PublishCommand = 'PUBLISH' | 'SPUBLISH';

/**
 * Whether messages are published to one shard of a cluster or to all of it. `auto` uses the same mode as Redisson, so
 * that both receive each other's messages: sharded if the servers of the cluster support it. One server is asked once.
 */
export class PublishMode {
  private found: PublishCommand | undefined;
  private asking: Promise<PublishCommand> | undefined;

  constructor(
    private readonly single: SingleCalls,
    setting: 'auto' | 'on' | 'off',
    isCluster: boolean,
    private readonly onError: (error: unknown) => void,
  ) {
    if (setting !== 'auto') this.found = setting === 'on' ? 'SPUBLISH' : 'PUBLISH';
    else if (!isCluster) this.found = 'PUBLISH';
  }

  /**
   * The command with which a script notifies waiters. On a cluster, the first call has to ask the server that has
   * `key`.
   */
  async command(key: string): Promise<PublishCommand> {
    return this.found ?? (await this.ask(key));
  }

  /** Undefined until a server has been asked. */
  get known(): PublishCommand | undefined {
    return this.found;
  }

  /**
   * Asks a server.
   *
   * @param key any key that this client uses; the server that has it is asked
   * @throws BackendError when no server answers; the next call asks again
   */
  ask(key: string): Promise<PublishCommand> {
    this.asking ??= this.supportsSharded(key).then(
      (sharded) => {
        this.found = sharded ? 'SPUBLISH' : 'PUBLISH';
        return this.found;
      },
      (error: unknown) => {
        this.asking = undefined;
        throw error;
      },
    );
    return this.asking;
  }

  /** If the server refuses the question, plain messages are used, so that nothing waits forever. */
  private async supportsSharded(key: string): Promise<boolean> {
    try {
      const reply = await this.single.call(scripts['knows-command-1'], [key], ['spublish']);
      return integerOf(reply, 'the cluster') === 1;
    } catch (error) {
      if (!(error instanceof BackendError) || !isLastingRefusal(error)) throw error;
      const message = `${error.message}. Messages are published to the whole cluster: set shardedPubSub to 'on' if others use sharded pub/sub`;
      this.onError(new BackendError(message, 'denied', 'refused', { cause: error }));
      return false;
    }
  }
}
