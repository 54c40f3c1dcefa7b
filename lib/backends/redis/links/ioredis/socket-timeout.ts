import type { ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { LONGEST_TIMER } from '../../../runtime.js';
import type { ConnectionContext } from '../connection-context.js';
import type { ClientSource } from './client-source.js';

/** A `socketTimeout` that never ends. It cannot be removed, because ioredis may be about to start its timer again. */
const NEVER = LONGEST_TIMER;

/**
 * The method with which ioredis starts a timer and a listener for each command. A command without them takes a tenth
 * less CPU time.
 */
interface TimedClient {
  setSocketTimeout?: () => void;
}

/**
 * Replaces the `socketTimeout` of ioredis on our own clients. ioredis destroys a connection on which an answer is
 * overdue, but its timer fires before Node.js reads what has arrived. After the event loop was blocked, ioredis would
 * destroy a connection whose answers have arrived. So its timeout applies only while a client connects. Afterwards,
 * SilentConnections does the same, but reads first.
 *
 * If the user has set a `socketTimeout`, nothing is changed.
 */
export class SocketTimeout {
  /** The setting before it was suspended, for duplicates of the client; empty for a borrowed client. */
  readonly options: Pick<RedisOptions, 'socketTimeout'>;
  readonly isReplaced: boolean;

  constructor({ client, owned }: ClientSource, context: ConnectionContext) {
    const options: RedisOptions & ClusterOptions = client.options;
    this.options = owned ? { socketTimeout: (options.redisOptions ?? options).socketTimeout } : {};
    this.isReplaced = this.options.socketTimeout === context.commandTimeout;
  }

  /** Suspends the timeout of ioredis whenever this client is connected. */
  suspend(client: Redis): void {
    if (!this.isReplaced) return;
    const internals = client as unknown as TimedClient;
    client.on('ready', () => {
      client.options.socketTimeout = NEVER;
      internals.setSocketTimeout = () => {};
    });
    client.on('close', () => {
      Object.assign(client.options, this.options);
      delete internals.setSocketTimeout;
    });
  }
}
