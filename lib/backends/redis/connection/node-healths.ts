import { NodeHealth, type NodeWatch } from '../../node-health.js';
import { deadlineTimer } from '../../runtime.js';
import type { ClusterNodes } from '../client/cluster-nodes.js';
import type { ConnectionContext } from '../client/connection-context.js';
import { slotOf } from '../hash-slot.js';
import { callError, noteFailure } from './redis-errors.js';
import { ScriptCommand, sendOn } from './script-command.js';
import type { SocketTimeout } from './socket-timeout.js';

/** The health of each server of a connection: of one, or of the masters of a cluster. */
export class NodeHealths implements NodeWatch {
  /** By their names: see {@link ClusterNodes}. */
  private readonly healths = new Map<string, NodeHealth>();
  /** The nodes that have not answered a PING yet: it may wait for a connection. */
  private readonly pinging = new Set<string>();
  private listener: (node: NodeHealth) => void = () => {};

  constructor(
    private readonly description: string,
    private readonly isCluster: boolean,
    private readonly nodes: ClusterNodes,
    private readonly context: ConnectionContext,
    private readonly socketTimeout: SocketTimeout,
  ) {}

  /** @param key undefined: of no particular node */
  node(key: string | undefined): NodeHealth {
    return this.named(this.nameOf(key));
  }

  listen(listener: (node: NodeHealth) => void): void {
    this.listener = listener;
  }

  ping(keys: Iterable<string>): void {
    const asked = new Set<string>();
    for (const key of keys) {
      const name = this.nameOf(key);
      if (asked.has(name)) continue;
      asked.add(name);
      if (!this.pinging.has(name)) this.pingNode(name, key);
    }
  }

  private pingNode(name: string, key: string): void {
    const { context, description, nodes, pinging, socketTimeout } = this;
    const health = this.named(name);
    const client = nodes.master(this.isCluster ? slotOf(key) : undefined, 0);
    if (client === undefined) {
      nodes.refresh();
      return health.failed(false);
    }
    const command = new ScriptCommand('ping', []);
    const timer = deadlineTimer(context.runtime, context.commandTimeout, () => {
      health.failed(false);
      nodes.refresh(); // after a failover, another one has the slots
      socketTimeout.check(() => command);
    });
    const end = () => {
      timer.cancel();
      pinging.delete(name);
    };
    pinging.add(name);
    context.runtime
      .detached(() => sendOn(client, command))
      .then(
        () => {
          end();
          health.answered(false);
        },
        (error: unknown) => {
          end();
          nodes.refresh();
          const unsent = { written: false, resent: false, validUntil: undefined };
          noteFailure(health, callError(error, unsent, description), false);
        },
      );
  }

  private nameOf(key: string | undefined): string {
    return this.isCluster ? this.nodes.ofKey(key) : '';
  }

  private named(name: string): NodeHealth {
    let health = this.healths.get(name);
    if (health === undefined) {
      const description = name === '' ? this.description : `${this.description}, node ${name}`;
      health = new NodeHealth(description, this.context.runtime, (changed) => this.listener(changed));
      this.healths.set(name, health);
    }
    return health;
  }
}
