import { type Client, isCluster } from '../client/client.js';
import { clientDefaults } from '../client/client-options.js';
import { type ClientSource, toClientSource } from '../client/client-source.js';
import { ClusterNodes } from '../client/cluster-nodes.js';
import type { Connection } from '../client/connection.js';
import type { ConnectionContext } from '../client/connection-context.js';
import { FailoverWatch } from '../client/failover-watch.js';
import { serverName } from './check-version.js';
import { ClientLifecycle } from './client-lifecycle.js';
import { warnOfEviction } from './eviction-warning.js';
import { NodeHealths } from './node-healths.js';
import type { ScriptCall, ScriptRequest } from './script-call.js';
import { ScriptCommand, sendOn } from './script-command.js';
import { ScriptRunner } from './script-runner.js';
import { ServerClocks } from './server-clocks.js';
import { SocketTimeout } from './socket-timeout.js';
import { SubscriberClients } from './subscriber-clients.js';

interface ConnectionExtras {
  /** Watches for failovers on behalf of another connection, which closes it. */
  readonly watch?: FailoverWatch | undefined;
  /** Of the connection that this is a copy of. */
  readonly health?: NodeHealths;
  /** Called once, when a server has answered for the first time, with what INFO says. */
  readonly onFirstAnswer?: (info: string) => void;
}

/**
 * The connection that the scripts run on: a client of ours, or one borrowed from the user, which is never closed, reconnected, listened to
 * or changed.
 */
export class RedisConnection {
  readonly description: string;
  readonly isCluster: boolean;
  readonly nodes: ClusterNodes;
  readonly subscribers: SubscriberClients;
  readonly health: NodeHealths;
  private readonly client: Client;
  private readonly lifecycle: ClientLifecycle;
  private readonly runner: ScriptRunner;
  private readonly clocks: ServerClocks;
  private readonly ownWatch: FailoverWatch | undefined;
  private readonly watch: FailoverWatch | undefined;
  private pending = 0;

  /** @throws ConnectionError when `connection` cannot be used */
  static open(connection: Connection, context: ConnectionContext): RedisConnection {
    const source = context.runtime.detached(() => toClientSource(connection, clientDefaults(context)));
    const onFirstAnswer = (info: string) => {
      context.onConnected?.(serverName(info));
      warnOfEviction(info, source.description, context.onWarning);
    };
    return new RedisConnection(source, context, { onFirstAnswer });
  }

  private constructor(
    source: ClientSource,
    context: ConnectionContext,
    { watch, health, onFirstAnswer = () => {} }: ConnectionExtras,
  ) {
    const { client, description } = source;
    this.client = client;
    this.description = description;
    this.isCluster = isCluster(client);
    this.nodes = new ClusterNodes(client);
    if (source.needsFailoverWatch) {
      this.ownWatch = context.runtime.detached(() => new FailoverWatch(client.options));
    }
    this.watch = this.ownWatch ?? watch;
    this.lifecycle = new ClientLifecycle(source, context);
    const socketTimeout = new SocketTimeout(source, context);
    this.health = health ?? new NodeHealths(description, this.isCluster, this.nodes, context, socketTimeout);
    const clocks = new ServerClocks(source, this.nodes, onFirstAnswer);
    this.clocks = clocks;
    this.runner = new ScriptRunner(client, context, clocks, this.lifecycle, socketTimeout);
    this.subscribers = new SubscriberClients(this.nodes, socketTimeout, this.watch, context.runtime);
    const onReady = () => {
      clocks.forget();
      clocks.refresh([]);
    };
    this.lifecycle.connect(onReady, socketTimeout, this.watch);
  }

  /** Why there is no answer: undefined while the client is ready, as far as it knows. */
  get connectionError(): Error | undefined {
    return this.lifecycle.connectionError;
  }

  /** A server has answered, and is one that can be used. */
  get hasAnswered(): boolean {
    return this.clocks.hasAnswered;
  }

  /** How many requests, of all batches, have no answer yet. */
  get pendingRequests(): number {
    return this.pending;
  }

  requestAdded(): void {
    this.pending++;
  }

  requestSettled(): void {
    this.pending--;
  }

  /** Runs a script, once the clock of its server is known. */
  run(request: ScriptRequest): ScriptCall {
    return this.runner.run(request);
  }

  /** Notes the server time that a script returned. */
  sampleClock(call: ScriptCall, keys: readonly string[], time: number): void {
    this.runner.sampleClock(call, keys, time);
  }

  /** Takes back a call that got no answer in time, as far as it can be, and replaces its connection if that has gone silent. */
  giveUp(call: ScriptCall): void {
    this.runner.giveUp(call);
  }

  /**
   * How many replicas have everything that was written on a connection: returns once `enough` have it, or after `timeout` ms.
   *
   * @throws Error when that connection is gone
   */
  async countReplicas(socket: object | undefined, enough: number, timeout: number): Promise<number> {
    const node = this.nodes.masterOn(socket);
    const command = new ScriptCommand('wait', [String(enough), String(timeout)]);
    const replicas = node === undefined ? 0 : Number(await sendOn(node, command));
    if (command.socket !== socket || command.resent) throw new Error('the connection broke');
    return replicas;
  }

  /** A connection of ours to the same place, for commands that block it. */
  duplicate(context: ConnectionContext): RedisConnection {
    const { client, description, watch, health } = this;
    const copy = context.runtime.detached(() =>
      isCluster(client)
        ? client.duplicate([], { lazyConnect: true })
        : client.duplicate({ ...clientDefaults(context), lazyConnect: true }),
    );
    return new RedisConnection({ client: copy, owned: true, description }, context, { watch, health });
  }

  /** Reconnects to the master, after a server has said that it is a replica. */
  leaveReplica(): void {
    this.lifecycle.leaveReplica();
  }

  /** Closes a client of ours; unanswered commands fail. Settles when its sockets are closed. */
  async close(): Promise<void> {
    this.ownWatch?.close();
    await this.lifecycle.close();
  }
}
