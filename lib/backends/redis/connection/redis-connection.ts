import type { Cluster, ClusterNode, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { deadlineTimer, type Runtime } from '../../runtime.js';
import { type Client, type ClientSource, clientOf, isCluster } from './client-source.js';
import { warnOfEviction } from './eviction-warning.js';
import { FailoverWatch } from './failover-watch.js';
import { EndedError, ExpiredError, errorCode, messageOf, withoutSecrets } from './redis-errors.js';
import { ScriptCall, type ScriptRequest } from './script-call.js';
import { ScriptCommand, sendOn } from './script-command.js';
import type { ServerClock } from './server-clock.js';
import { ServerClocks } from './server-clocks.js';

/** A cluster by its nodes. @publicApi */
export interface ClusterConnection {
  readonly nodes: readonly ClusterNode[];
  readonly options?: ClusterOptions;
}

/**
 * Where Redis is: a URL, ioredis options (single server or Sentinel), cluster nodes, a ready-made ioredis client, or a
 * function that makes or finds one. Clients that you made are never closed or reconfigured here.
 *
 * @publicApi
 */
export type Connection = string | RedisOptions | ClusterConnection | Redis | Cluster | (() => Redis | Cluster);

export interface ConnectionContext {
  readonly runtime: Runtime;
  /** Milliseconds. */
  readonly commandTimeout: number;
  /** Errors of our own clients, without secrets. */
  readonly onError: (error: unknown) => void;
  /** Is told of a set-up that makes locks unsafe. */
  readonly onWarning: (message: string) => void;
}

/** After a short outage a lock should not wait for seconds: ioredis alone would go up to five. */
const LONGEST_RETRY_DELAY = 1_000;

/** A subscriber that loses its connection is replaced as a whole. */
const SUBSCRIBER_OPTIONS: RedisOptions = {
  lazyConnect: true,
  autoResubscribe: false,
  enableOfflineQueue: true,
  readOnly: false,
  retryStrategy: () => null,
  disconnectTimeout: 100, // there is nothing to flush
};

/** A `socketTimeout` that is never over. */
const NEVER = 2 ** 31 - 1;

/** How long a socket may take to say good-bye: a server that is stopped does not. Then it is destroyed. */
const GOOD_BYE = 100;
const CLOSE_TIMEOUT = 1_000;

/**
 * The connection that the scripts run on. It is ours, or borrowed from the user: then it is never closed, reconnected,
 * listened to or changed.
 */
export class RedisConnection {
  readonly description: string;
  readonly isCluster: boolean;
  /** Requests of all batches that have no answer yet. */
  underWay = 0;
  private readonly client: Client;
  private readonly owned: boolean;
  /** Of a client of ours, since it was last ready. */
  private lastError: Error | undefined;
  /** As it was before {@link judgeSilence} set it aside; empty: the client is not ours. */
  private readonly ownTimeout: Pick<RedisOptions, 'socketTimeout'>;
  private readonly ownWatch: FailoverWatch | undefined;
  private readonly watch: FailoverWatch | undefined;
  private readonly clocks: ServerClocks;
  /** Looks at the server's set-up, once; undefined: somebody else does, or it is done. */
  private inspection: (() => void) | undefined;

  /** @throws ConnectionError when `connection` cannot be used */
  static open(connection: Connection, context: ConnectionContext): RedisConnection {
    const source = context.runtime.detached(() => clientOf(connection, defaults(context)));
    const opened = new RedisConnection(source, context);
    opened.inspection = () => warnOfEviction(opened.client, opened.description, context.onWarning);
    return opened;
  }

  private constructor(
    source: ClientSource,
    private readonly context: ConnectionContext,
    sharedWatch?: FailoverWatch,
  ) {
    this.client = source.client;
    this.owned = source.owned;
    this.description = source.description;
    this.isCluster = isCluster(source.client);
    const options: RedisOptions & ClusterOptions = source.client.options;
    this.ownTimeout = source.owned ? { socketTimeout: (options.redisOptions ?? options).socketTimeout } : {};
    if (source.failovers === 'unwatched') this.ownWatch = this.watchFailovers(source.client);
    this.watch = this.ownWatch ?? sharedWatch;
    this.clocks = new ServerClocks(this.client, this.owned, this.description, () => this.greeted());
    if (this.owned) this.connect();
  }

  /** Why there is no answer: undefined while the client is ready, as far as it knows. */
  get connectionError(): Error | undefined {
    const { status } = this.client;
    if (status === 'ready') return undefined;
    return this.lastError ?? new Error(`the connection is not ready: ioredis says '${status}'`);
  }

  /** Runs a script, as soon as the server is known: its clock, and that it is the right database. */
  run(request: ScriptRequest): ScriptCall {
    const call = new ScriptCall(this.client, request);
    const clock = this.clocks.of(request.keys);
    if (clock.known || request.keys.length === 0) this.send(call, request, clock);
    else
      this.clocks.learn(request.keys).then(
        (learned) => this.send(call, request, learned),
        (error) => this.failed(call, request, error),
      );
    return call;
  }

  /** Notes what time a script has told. */
  sampleClock(call: ScriptCall, keys: readonly string[], time: number): void {
    this.clocks.of(keys).sample(time, call.writtenAt, this.context.runtime.monotonic(), call.socket);
  }

  /**
   * A call had no answer in time. A half-open connection says nothing by itself: one of ours on which nothing came for the command
   * time-out is made anew.
   */
  overdue(call: ScriptCall): void {
    const { runtime, commandTimeout } = this.context;
    const command = call.latest ?? this.clocks.question;
    const silence = command?.silence;
    if (silence === undefined || !this.judgesSilence) return;
    if (silence >= commandTimeout)
      command?.hangUp(new Error(`nothing came from the server within ${commandTimeout} ms`));
    else deadlineTimer(runtime, commandTimeout - silence, () => this.overdue(call));
  }

  /** The node that has this slot, as far as the client knows; one name for all when it is no cluster. */
  nodeOf(slot: number | undefined): string {
    return slot !== undefined && isCluster(this.client) ? (this.client.slots[slot]?.[0] ?? '') : '';
  }

  /** False: the cluster does not have this `host:port`, or not any more; or the client has ended, and who listens must learn of it. */
  hasNode(address: string): boolean {
    const { client } = this;
    if (client.status === 'end') return false;
    return !isCluster(client) || client.nodes().some(({ options }) => `${options.host}:${options.port}` === address);
  }

  /** The cluster is not as it was thought to be. */
  refreshNodes(): void {
    if (isCluster(this.client)) this.client.refreshSlotsCache();
  }

  /** A client of ours to subscribe with, not connected yet: to the node of a slot, where it matters. Undefined: no node is known. */
  subscriberClient(slot: number | undefined): Redis | undefined {
    const node = isCluster(this.client) ? this.subscriberNode(this.client, slot) : this.client;
    const client = node?.duplicate({ ...SUBSCRIBER_OPTIONS, ...this.ownTimeout });
    if (client === undefined) return undefined;
    this.watch?.follow(client);
    if (this.judgesSilence) this.judgeSilence(client);
    return client;
  }

  /**
   * How many replicas have all that was written on a connection, once `enough` do or `timeout` ms are over.
   *
   * @throws Error when that connection is not there any more
   */
  async countReplicas(socket: object | undefined, enough: number, timeout: number): Promise<number> {
    const { client } = this;
    const node = isCluster(client) ? client.nodes('master').find(({ stream }) => stream === socket) : client;
    const command = new ScriptCommand('wait', [String(enough), String(timeout)]);
    const replicas = node === undefined ? 0 : Number(await sendOn(node, command));
    if (command.socket !== socket || command.resent) throw new Error('the connection broke');
    return replicas;
  }

  /** A connection of ours to the same place, for commands that block it. */
  duplicate(context: ConnectionContext): RedisConnection {
    const client = context.runtime.detached(() => this.duplicateClient(context));
    return new RedisConnection({ client, owned: true, description: this.description }, context, this.watch);
  }

  /**
   * A server of the past: it became a replica, and ioredis looks for the master only when it connects. While it does so it must not
   * be disturbed: it would end for good.
   */
  leaveReplica(): void {
    const { client } = this;
    if (this.owned && !isCluster(client) && client.status === 'ready') client.disconnect(true);
  }

  /** Closes our own client; what was not answered on it fails. Settles when its sockets are closed, as far as it has any. */
  async close(): Promise<void> {
    const { client } = this;
    this.ownWatch?.close();
    if (!this.owned || client.status === 'end') return;
    const hasSockets = ['connecting', 'connect', 'ready'].includes(client.status);
    await new Promise<void>((resolve) => {
      const { runtime } = this.context;
      const nodes = isCluster(client) ? client.nodes() : [client];
      const goodBye = runtime.timer(GOOD_BYE, () => {
        for (const { stream } of nodes) stream?.destroy();
      });
      const timer = runtime.timer(hasSockets ? CLOSE_TIMEOUT : 0, resolve, 'keep-alive');
      client.once('end', () => {
        goodBye.cancel();
        timer.cancel();
        resolve();
      });
      client.disconnect();
    });
  }

  private send(call: ScriptCall, request: ScriptRequest, clock: ServerClock, isSecond = false): void {
    const { deadline, done } = request;
    const limit = deadline === undefined ? undefined : clock.limit(deadline);
    const answered = (reply: unknown) => {
      if (!isExpired(reply)) return done(reply);
      // The server's clock was set, or this machine slept. But what was long under way is not wanted any more.
      const now = this.context.runtime.monotonic();
      if (now - call.writtenAt < this.context.commandTimeout / 2) clock.forget();
      clock.sample(Number(reply[1]), call.writtenAt, now, call.socket);
      if (isSecond || now >= (deadline as number)) request.fail(new ExpiredError());
      else this.send(call, request, clock, true);
    };
    call.send(limit, answered, (error) => this.failed(call, request, error));
    if (clock.isStale(call.writtenAt)) this.clocks.refresh(request.keys);
  }

  private failed(call: ScriptCall, request: ScriptRequest, error: unknown): void {
    // What failed by a `commandTimeout` of ioredis stays in its queue, and would be executed when it connects.
    call.abandon();
    if (errorCode(messageOf(error)) === 'READONLY') this.leaveReplica();
    request.fail(this.client.status === 'end' ? new EndedError(this.owned, this.lastError) : error);
  }

  private connect(): void {
    this.context.runtime.detached(() => {
      // What answers from now on may be another server.
      this.client.on('ready', () => {
        this.clocks.forget();
        this.lastError = undefined;
      });
      this.client.on('error', (error: unknown) => {
        this.lastError = withoutSecrets(error);
        this.context.onError(this.lastError);
      });
      if (!isCluster(this.client)) this.watch?.follow(this.client);
      if (this.judgesSilence) {
        if (isCluster(this.client)) this.client.on('+node', (node: Redis) => this.judgeSilence(node));
        else this.judgeSilence(this.client);
      }
      this.client.connect().catch(() => {}); // told by 'error'
    });
  }

  /** Not where the user has set a `socketTimeout`: then ioredis does as it is told. */
  private get judgesSilence(): boolean {
    return this.ownTimeout.socketTimeout === this.context.commandTimeout;
  }

  /**
   * ioredis ends a connection on which an answer is overdue, but looks at its clock before it reads what has come: after the event
   * loop was blocked, it would end one whose answers are there. So it does that only while it connects; afterwards {@link overdue} does,
   * and a subscriber's own patience.
   */
  private judgeSilence(client: Redis): void {
    client.on('ready', () => {
      client.options.socketTimeout = NEVER;
    });
    client.on('close', () => Object.assign(client.options, this.ownTimeout));
  }

  /** A server has answered for the first time. */
  private greeted(): void {
    const { inspection } = this;
    this.inspection = undefined;
    inspection?.();
  }

  private watchFailovers({ options }: Client): FailoverWatch {
    return this.context.runtime.detached(() => new FailoverWatch(options));
  }

  private subscriberNode(cluster: Cluster, slot: number | undefined): Redis | undefined {
    const masters = cluster.nodes('master');
    if (slot === undefined) return masters[Math.floor(this.context.runtime.random() * masters.length)];
    const address = this.nodeOf(slot);
    return masters.find(({ options }) => `${options.host}:${options.port}` === address);
  }

  private duplicateClient(context: ConnectionContext): Client {
    if (!isCluster(this.client)) return this.client.duplicate({ ...defaults(context), lazyConnect: true });
    return this.client.duplicate([], { lazyConnect: true });
  }
}

function isExpired(reply: unknown): reply is readonly ['expired', time: number] {
  return Array.isArray(reply) && reply[0] === 'expired';
}

function defaults({
  runtime,
  commandTimeout,
}: ConnectionContext): Pick<RedisOptions, 'retryStrategy' | 'socketTimeout'> {
  return {
    retryStrategy: (times) => Math.min(50 * 2 ** (times - 1), LONGEST_RETRY_DELAY) + runtime.random() * 50,
    // A half-open connection says nothing by itself: unanswered for so long, it is made anew.
    socketTimeout: commandTimeout,
  };
}
