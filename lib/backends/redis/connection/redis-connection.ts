import { LONGEST_TIMER, type Timer } from '../../runtime.js';
import { slotOf } from '../hash-slot.js';
import { openTopology } from '../links/choose-client.js';
import type { Connection } from '../links/connection.js';
import type { ConnectionContext } from '../links/connection-context.js';
import { type Topology, TopologyFactory } from '../links/topology.js';
import { serverName, warnOfEviction } from './check-server.js';
import { IdlePings } from './idle-pings.js';
import { OTHER_KEYS_REMEDY, otherKeysIn } from './other-keys.js';
import { errorCode, messageOf } from './redis-errors.js';
import { RedisNodeWatch } from './redis-node-watch.js';
import { ScriptRunner } from './script-runner.js';
import { ServerClocks } from './server-clocks.js';
import { SilentConnections } from './silent-connections.js';

/** When the rights of the user of a lent client are checked, in milliseconds. */
const FIRST_LOOK = 1_000;

interface ConnectionExtras {
  /** The state of the connection that this one duplicates. */
  readonly health?: RedisNodeWatch;
  /** Called once with the reply to INFO, when a server has answered for the first time. */
  readonly onFirstAnswer?: (info: string) => void;
}

/**
 * The connection on which scripts run. All calls to the servers of one {@link Topology} share it.
 *
 * Sockets and pauses between attempts to connect do not keep the process alive: an application that fails to start
 * closes nothing. The timers of unanswered requests do, and after {@link keepAlive} this connection does.
 */
export class RedisConnection {
  readonly health: RedisNodeWatch;
  readonly scripts: ScriptRunner;
  private readonly clocks: ServerClocks;
  private readonly pings: IdlePings;
  private pending = 0;
  private keptAlive: Timer | undefined;
  private closed = false;
  private hasCheckedUser = false;
  private firstLook: Timer | undefined;

  /** @throws ConnectionError when `connection` cannot be used */
  static open(connection: Connection | TopologyFactory, context: ConnectionContext): RedisConnection {
    const topology =
      connection instanceof TopologyFactory ? connection.open(context) : openTopology(connection, context);
    const onFirstAnswer = (info: string) => {
      context.onConnected?.(`${serverName(info)} by ${topology.library}`);
      warnOfEviction(info, topology.description, context.onWarning);
      void warnOfOtherKeys(info, topology, context);
    };
    return new RedisConnection(topology, context, { onFirstAnswer });
  }

  private constructor(
    readonly topology: Topology,
    private readonly context: ConnectionContext,
    { health, onFirstAnswer = () => {} }: ConnectionExtras,
  ) {
    const silent = new SilentConnections(topology.replacesSilentConnections, context);
    this.health = health ?? new RedisNodeWatch(topology, context, silent);
    const clocks = new ServerClocks(topology, context.runtime, onFirstAnswer);
    this.clocks = clocks;
    this.scripts = new ScriptRunner(topology, context, clocks, silent);
    const ready = () => {
      clocks.forget();
      this.learnTime();
    };
    this.pings = new IdlePings(topology, context, silent);
    this.pings.start();
    topology.connect({ ready, failed: (error) => context.onError(error) });
    if (!topology.owned) this.lookAtLentClient();
  }

  /** A client of the application reports nothing, and must not be connected by a command of ours. */
  private lookAtLentClient(): void {
    this.firstLook = this.context.runtime.timer(FIRST_LOOK, () => {
      if (this.topology.connectionError === undefined && !this.topology.ended) this.learnTime();
    });
  }

  /** Asks the server for its time, before the first request needs it. */
  private learnTime(): void {
    this.clocks.synchronize([]).then(
      () => this.checkUser(),
      (error: unknown) => {
        if (errorCode(messageOf(error)) === 'NOPERM') this.mayLackRights();
      },
    );
  }

  /** The user `default` has all rights, unless somebody has taken care of them. */
  private checkUser(): void {
    const { user = 'default' } = this.topology;
    if (user !== 'default') this.mayLackRights();
  }

  private mayLackRights(): void {
    if (this.hasCheckedUser || this.closed) return;
    this.hasCheckedUser = true;
    this.context.onLimitedUser?.();
  }

  get description(): string {
    return this.topology.description;
  }

  get isCluster(): boolean {
    return this.topology.isCluster;
  }

  /** The name of the node that has a key; '' when it is not known, and outside of a cluster. */
  nodeOfKey(key: string): string {
    const { topology } = this;
    return topology.isCluster ? topology.nodeOfSlot(slotOf(key)) : '';
  }

  /** Why there is no answer. Undefined while the client is ready, as far as it knows. */
  get connectionError(): Error | undefined {
    return this.topology.connectionError;
  }

  /** Whether a server has answered and is usable. */
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

  /**
   * Counts the replicas that have everything that was written on a connection. Resolves once `enough` of them have it,
   * or after `timeout` ms.
   *
   * @throws Error when that connection no longer exists
   */
  async countReplicas(socket: object | undefined, enough: number, timeout: number): Promise<number> {
    const command = this.topology.masterOn(socket)?.send('wait', [String(enough), String(timeout)]);
    const replicas = Number((await command?.reply) ?? 0);
    if (command?.socket !== socket || command?.resent) throw new Error('the connection broke');
    return replicas;
  }

  /** Opens another connection to the same servers, for commands that block it. */
  duplicate(context: ConnectionContext): RedisConnection {
    return new RedisConnection(this.topology.duplicate(), context, { health: this.health });
  }

  /** Keeps the process alive until it is closed. */
  keepAlive(): void {
    if (this.closed) return;
    this.keptAlive = this.context.runtime.timer(LONGEST_TIMER, () => this.keepAlive(), 'keep-alive');
  }

  /** Closes our own connections; unanswered commands fail. Settles when the connections are closed. */
  close(): Promise<void> {
    this.closed = true;
    this.firstLook?.cancel();
    this.keptAlive?.cancel();
    this.pings.close();
    return this.topology.close();
  }
}

/** Never rejects. */
async function warnOfOtherKeys(info: string, topology: Topology, { keyPrefix, onWarning }: ConnectionContext) {
  if (keyPrefix === undefined) return;
  const ask = (name: string, args: readonly string[]) => topology.send(name, args).reply;
  const found = await otherKeysIn(info, topology.database, keyPrefix, ask);
  if (found !== undefined) onWarning(`${topology.description}: ${found}. So ${OTHER_KEYS_REMEDY}. This is logged once`);
}
