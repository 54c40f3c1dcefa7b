import type { Redis } from 'ioredis';
import { withoutSecrets } from '../../connection/redis-errors.js';
import type { ConnectionContext } from '../connection-context.js';
import type { TopologyEvents } from '../topology.js';
import { type Client, isCluster } from './client.js';
import type { ClientSource } from './client-source.js';
import type { FailoverWatch } from './failover-watch.js';
import { letProcessEnd } from './let-process-end.js';
import type { SocketTimeout } from './socket-timeout.js';

/** How long a socket may take to close before it is destroyed. A connection to a suspended server never closes. */
const SOCKET_CLOSE_TIMEOUT = 100;
const CLOSE_TIMEOUT = 1_000;

/** Connects, reconnects and closes a client of ours. A borrowed client is left as it is. */
export class ClientLifecycle {
  private readonly client: Client;
  private readonly owned: boolean;
  /** The last error of our own client since it was last ready. */
  private lastError: Error | undefined;
  private wasReady = false;

  constructor(
    source: ClientSource,
    private readonly context: ConnectionContext,
  ) {
    this.client = source.client;
    this.owned = source.owned;
  }

  /** Why there is no answer: undefined while the client is ready, as far as it knows. */
  get connectionError(): Error | undefined {
    const { status } = this.client;
    if (status === 'ready') return undefined;
    // ioredis reports no error when a server accepts a connection and closes it.
    const isRejected = this.owned && !this.wasReady && status === 'reconnecting';
    if (isRejected && this.lastError === undefined) return new Error('Connection is closed.');
    return this.lastError ?? new Error(`the connection is not ready: ioredis says '${status}'`);
  }

  connect({ ready, failed }: TopologyEvents, socketTimeout: SocketTimeout, watch: FailoverWatch | undefined): void {
    const { client, owned, context } = this;
    if (!owned) return;
    context.runtime.detached(() => {
      client.on('ready', () => {
        ready();
        this.lastError = undefined;
        this.wasReady = true;
      });
      client.on('error', (error: unknown) => {
        this.lastError = withoutSecrets(error);
        failed(this.lastError);
      });
      letProcessEnd(client);
      if (isCluster(client)) {
        client.on('+node', (node: Redis) => socketTimeout.suspend(node));
      } else {
        watch?.follow(client);
        socketTimeout.suspend(client);
      }
      client.connect().catch(() => {}); // reported by 'error'
    });
  }

  /** The error of every command after the client has ended. */
  endedError(): Error {
    const { owned, lastError } = this;
    return new Error(
      owned
        ? `ioredis has given up this connection, as its options say (retryStrategy, clusterRetryStrategy, sentinelRetryStrategy): let them return a number, or remove them (${lastError?.message ?? 'it was closed'})`
        : 'the ioredis client of the connection was closed by its owner (quit() or disconnect()): close the lock service first, or give it its own connection',
      { cause: lastError },
    );
  }

  /**
   * Reconnects after a READONLY error: the server became a replica, and ioredis looks for the master only when it
   * connects. A client that is already connecting is left alone: `disconnect()` would end it permanently.
   */
  leaveReplica(): void {
    const { client } = this;
    if (this.owned && !isCluster(client) && client.status === 'ready') client.disconnect(true);
  }

  /** Closes a client of ours; unanswered commands fail. Settles when its sockets are closed. */
  async close(): Promise<void> {
    const { client } = this;
    if (!this.owned || client.status === 'end') return;
    const hasSockets = ['connecting', 'connect', 'ready'].includes(client.status);
    await new Promise<void>((resolve) => {
      const { runtime } = this.context;
      const nodes = isCluster(client) ? client.nodes() : [client];
      const destroyTimer = runtime.timer(SOCKET_CLOSE_TIMEOUT, () => {
        for (const { stream } of nodes) stream?.destroy();
      });
      const closeTimer = runtime.timer(hasSockets ? CLOSE_TIMEOUT : 0, resolve, 'keep-alive');
      client.once('end', () => {
        destroyTimer.cancel();
        closeTimer.cancel();
        resolve();
      });
      client.disconnect();
    });
  }
}
