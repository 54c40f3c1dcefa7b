import type { Redis } from 'ioredis';
import type { Runtime } from '../../runtime.js';
import { SUBSCRIBER_OPTIONS } from '../client/client-options.js';
import type { ClusterNodes } from '../client/cluster-nodes.js';
import type { FailoverWatch } from '../client/failover-watch.js';
import type { SocketTimeout } from './socket-timeout.js';

/** Makes clients of ours to subscribe with. */
export class SubscriberClients {
  constructor(
    private readonly nodes: ClusterNodes,
    private readonly socketTimeout: SocketTimeout,
    private readonly watch: FailoverWatch | undefined,
    private readonly runtime: Runtime,
  ) {}

  /**
   * A client that is not connected yet; undefined when no node is known.
   *
   * @param slot of the channels, where they are sharded
   */
  create(slot: number | undefined): Redis | undefined {
    const node = this.nodes.master(slot, this.runtime.random());
    const client = node?.duplicate({ ...SUBSCRIBER_OPTIONS, ...this.socketTimeout.options });
    if (client === undefined) return undefined;
    this.watch?.follow(client);
    this.socketTimeout.suspend(client);
    return client;
  }
}
