import { BackOff } from '../../back-off.js';
import type { ConnectionContext } from '../links/connection-context.js';
import type { Topology } from '../links/topology.js';

/** After this many ms without a READONLY error, the next one is the first of another failover. */
const CALM = 10_000;

/**
 * Leaves servers that say READONLY: they have become replicas, and the client looks for the master only when it
 * connects. Each connection is left once, however many answers say so. If the next connection leads to a replica as
 * well, it counts as a failed attempt to connect, so the pauses grow.
 *
 * A client of the application is left alone, although it stays on the replica: a reconnect would break its
 * transactions, blocking commands and subscriptions, of which this library knows nothing. The error says what its owner
 * can set.
 */
export class ReplicaExit {
  private readonly left = new WeakSet<object>();
  private readonly backOff: BackOff;
  private leftAt = Number.NEGATIVE_INFINITY;
  private pause = 0;

  constructor(
    private readonly topology: Pick<Topology, 'owned' | 'leaveReplica'>,
    private readonly context: Pick<ConnectionContext, 'runtime'>,
  ) {
    this.backOff = new BackOff(context.runtime);
  }

  /**
   * @param socket the connection with the answer
   * @returns whether later commands are written on another connection
   */
  leave(socket: object | undefined): boolean {
    const { topology, context, left, backOff } = this;
    if (!topology.owned || socket === undefined) return false;
    if (left.has(socket)) return true;
    const now = context.runtime.monotonic();
    const age = now - this.leftAt;
    if (age < this.pause) return false;
    if (age > CALM) backOff.reset();
    this.pause = backOff.next();
    this.leftAt = now;
    left.add(socket);
    topology.leaveReplica();
    return true;
  }
}
