import { NodeHealth, type NodeWatch } from '../../node-outage.js';
import { answerTimer } from '../../runtime.js';
import { slotOf } from '../hash-slot.js';
import type { ConnectionContext } from '../links/connection-context.js';
import type { Topology } from '../links/topology.js';
import { silenceAdvice } from './connection-advice.js';
import { callError, noteFailure } from './redis-errors.js';
import type { SilentConnections } from './silent-connections.js';

/** The outages of each server of a connection: of the only one, or of each master of a cluster. */
export class RedisNodeWatch implements NodeWatch {
  /** By their names: see {@link Topology.nodeOfSlot}. */
  private readonly healths = new Map<string, NodeHealth>();
  /** The nodes that have not answered a PING yet, which may still be waiting for a connection. */
  private readonly pinging = new Set<string>();
  private listener: (node: NodeHealth) => void = () => {};

  constructor(
    private readonly topology: Topology,
    private readonly context: ConnectionContext,
    private readonly silent: SilentConnections,
  ) {}

  /** @param key undefined if no particular node is meant */
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
    const { context, topology, pinging, silent } = this;
    const health = this.named(name);
    const link = topology.master(topology.isCluster ? slotOf(key) : undefined, 0);
    if (link === undefined) {
      topology.refresh();
      return health.failed(false);
    }
    const command = context.runtime.detached(() => link.send('ping', []));
    const timer = answerTimer(context.runtime, context.runtime.monotonic() + context.commandTimeout, () => {
      health.failed(false, silenceAdvice(topology, command));
      topology.refresh(); // after a failover, another node has the slots
      silent.check(() => command);
    });
    const end = () => {
      timer.cancel();
      pinging.delete(name);
    };
    pinging.add(name);
    command.reply.then(
      () => {
        end();
        health.answered(false);
      },
      (error: unknown) => {
        end();
        topology.refresh();
        const unsent = {
          written: false,
          resent: false,
          validUntil: undefined,
          wasServed: true,
          isBorrowed: !topology.owned,
          silenceAdvice: silenceAdvice(topology, command),
          isAnswer: () => false,
        };
        noteFailure(health, callError(error, unsent, topology.description), false);
      },
    );
  }

  private nameOf(key: string | undefined): string {
    const { topology } = this;
    return topology.isCluster && key !== undefined ? topology.nodeOfSlot(slotOf(key)) : '';
  }

  private named(name: string): NodeHealth {
    let health = this.healths.get(name);
    if (health === undefined) {
      const { description: all } = this.topology;
      const description = name === '' ? all : `${all}, node ${name}`;
      health = new NodeHealth(description, this.context.runtime, (changed) => this.listener(changed));
      this.healths.set(name, health);
    }
    return health;
  }
}
