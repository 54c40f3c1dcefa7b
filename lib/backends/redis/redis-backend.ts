import {
  type AcquireAllReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type AdoptReply,
  type AdoptRequest,
  type BackendHealth,
  type ExpectedHolders,
  type HeldType,
  hasLine,
  type LineBackend,
  type LockState,
  type NodeWatch,
  type OwnerRef,
  type ReleaseReply,
  type ReleaseRequest,
  type Removal,
  type RenewRequest,
  type Subscription,
  type TransferRequest,
  type WaiterRef,
  type Wake,
} from '../lock-backend.js';
import { clientOf } from '../owner-ids.js';
import { printsAs } from '../prints-as.js';
import type { QuorumMember } from '../quorum/quorum-member.js';
import { REPLICAS_CONFIRM } from '../reasons-to-confirm.js';
import type { Runtime } from '../runtime.js';
import { Acquisitions } from './acquisitions.js';
import { NodeBatches } from './calls/node-batches.js';
import type { ScriptContext } from './calls/script-context.js';
import { SingleCalls } from './calls/single-calls.js';
import { RedisFlights } from './commands/flights/redis-flights.js';
import { forceRelease, inspect, raiseToken, refreshWaiters, removeWaiter } from './commands/lock-commands.js';
import { ReleaseBatch } from './commands/release.js';
import { RenewBatch } from './commands/renew.js';
import { RedisSynchronizers } from './commands/synchronizers/redis-synchronizers.js';
import { RedisWaits } from './commands/waits/redis-waits.js';
import { RedisConnection } from './connection/redis-connection.js';
import { advised, explained } from './connection/redis-errors.js';
import { NodeCommands } from './directory/node-commands.js';
import { RedisDirectory } from './directory/redis-directory.js';
import { slotOf } from './hash-slot.js';
import { HighestToken } from './highest-token.js';
import type { Connection } from './links/connection.js';
import type { ConnectionContext } from './links/connection-context.js';
import type { TopologyFactory } from './links/topology.js';
import { ofEachType } from './of-each-type.js';
import { PublishMode } from './pubsub/publish-mode.js';
import { ReleaseChannels } from './pubsub/release-channels.js';
import { RedisLine } from './redis-line.js';

export interface RedisBackendOptions {
  readonly connection: Connection | TopologyFactory;
  readonly runtime: Runtime;
  /** Milliseconds within which every call is answered. */
  readonly commandTimeout: number;
  readonly shardedPubSub: 'auto' | 'on' | 'off';
  /** An acquisition counts only when this many replicas have confirmed it. 0: replicas are not asked. */
  readonly minReplicas: number;
  /** Receives errors that make no call fail, such as those of broken connections and of listeners. */
  readonly onError: (error: unknown) => void;
  /** Called once, when a server has answered for the first time, with its name and version: `Redis 7.4.1`. */
  readonly onConnected?: ((server: string) => void) | undefined;
  /** That of the locks, to tell other keys from them. */
  readonly keyPrefix?: string | undefined;
  /** Called once, when a server has answered for the first time, if the user may lack rights. */
  readonly onLimitedUser?: (() => void) | undefined;
  /** Receives a warning, at most once, about a server configuration that makes locks unsafe. */
  readonly onWarning?: (message: string) => void;
  /**
   * The backend only renews, what another one has acquired: see lib/standby. Its renewals make no lease shorter, and are
   * not executed after the command timeout. Default false.
   */
  readonly standby?: boolean;
}

/**
 * Locks in Redis, in Redisson's layout: on a single server, Sentinel or a cluster. Each command has a script in
 * scripts/.
 *
 * @throws ConnectionError from the constructor when the `connection` cannot be used
 */
export class RedisBackend implements QuorumMember {
  readonly description: string;
  readonly synchronizers: RedisSynchronizers;
  readonly flights: RedisFlights;
  readonly waits: RedisWaits;
  readonly directory: RedisDirectory;
  readonly confirmsReleases: string | undefined;
  readonly permitsRefusal: string | undefined;
  private readonly connection: RedisConnection;
  private readonly channels: ReleaseChannels;
  private readonly scripts: ScriptContext;
  private readonly acquisitions: Acquisitions;
  private readonly lines: RedisLine;
  /** The last error of the connection, with advice. */
  private lastError: Error | undefined;
  /** For large results of single flights, if there have been any. */
  private largeResults: Pick<ScriptContext, 'connection' | 'single'> | undefined;
  private readonly releases: Record<HeldType, NodeBatches<ReleaseRequest, ReleaseReply>>;
  private readonly renewals: Record<HeldType, NodeBatches<RenewRequest, boolean>>;

  constructor(private readonly options: RedisBackendOptions) {
    const { runtime, commandTimeout, minReplicas, onError, onWarning = () => {}, standby = false } = options;
    this.confirmsReleases = minReplicas > 0 ? REPLICAS_CONFIRM : undefined;
    this.permitsRefusal = minReplicas > 0 ? 'it is not combined with minReplicas. Leave out one of them' : undefined;
    const context: ConnectionContext = {
      runtime,
      commandTimeout,
      onError: (error) => onError(explained(error, connection.topology, connection.hasAnswered)),
      onWarning,
      onConnected: options.onConnected,
      keyPrefix: options.keyPrefix,
      strictDeadlines: standby,
      onLimitedUser: options.onLimitedUser,
    };
    const connection = RedisConnection.open(options.connection, context);
    this.connection = connection;
    this.description = connection.description;
    const highestToken = new HighestToken();
    const single = new SingleCalls(connection, runtime, commandTimeout);
    const notes = new SingleCalls(connection, runtime, commandTimeout, 'notes');
    const publishMode = new PublishMode(notes, options.shardedPubSub, connection.isCluster, onError);
    this.channels = new ReleaseChannels(connection, publishMode, context);
    this.scripts = { connection, highestToken, publishMode, single, notes, replicaCheck: undefined, standby };
    this.synchronizers = new RedisSynchronizers(this.scripts, this.channels);
    this.waits = new RedisWaits(this.scripts);
    this.directory = new RedisDirectory(this.scripts, new NodeCommands(connection, runtime, commandTimeout));
    this.acquisitions = new Acquisitions(this.scripts, { ...options, onWarning }, (owner) => this.release(owner));
    this.lines = new RedisLine(this.channels, this.acquisitions, { description: this.description, runtime, onWarning });
    const large = () => {
      this.largeResults ??= this.openLargeResults(context);
      return this.largeResults.single;
    };
    this.flights = new RedisFlights(this.scripts, this.acquisitions.scripts, large);
    const publish = () => publishMode.known ?? 'PUBLISH';
    const listeners = this.countListeners.bind(this);
    this.releases = ofEachType(
      (type) =>
        new NodeBatches(
          new ReleaseBatch(type, connection, publish, listeners, () => this.lines.mayNotServe()),
          connection,
          runtime,
          commandTimeout,
        ),
    );
    this.renewals = ofEachType(
      (type) =>
        new NodeBatches(new RenewBatch(type, connection, publish, standby), connection, runtime, commandTimeout),
    );
  }

  /** What another thread needs to connect to the same servers: a `connection` option. */
  get settings(): unknown {
    return this.connection.topology.settings;
  }

  /** During an outage, each caller that is refused reads it. */
  get connectionError(): Error | undefined {
    const { connectionError: cause, hasAnswered, topology } = this.connection;
    if (cause !== undefined && cause !== this.lastError?.cause)
      this.lastError = new Error(advised(cause, topology.usesTls, hasAnswered), { cause });
    return cause && this.lastError;
  }

  get line(): LineBackend | undefined {
    return this.lines.ifAllowed();
  }

  get mayServeLines(): boolean {
    return this.line !== undefined;
  }

  get health(): NodeWatch | undefined {
    return this.connection.health;
  }

  /** On a cluster, every master must answer. */
  async ping(): Promise<BackendHealth> {
    const { directory, connection, channels } = this;
    await directory.ready();
    await Promise.all(connection.topology.masters().map((master) => directory.commands.send(master, 'ping', [])));
    return { listening: channels.isListening };
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    if (request.waiterTimeout > 0) {
      if (request.type === 'fair') return this.acquireOrQueue(request);
      if (hasLine(request.type)) return this.lines.enter(request);
    }
    return this.acquisitions.acquire(request);
  }

  canAcquireTogether(keys: readonly string[]): boolean {
    if (!this.connection.isCluster) return true;
    const slots = keys.map(slotOf);
    return slots.every((slot) => slot === slots[0]);
  }

  acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply> {
    return this.acquisitions.acquireAll(requests);
  }

  release(request: ReleaseRequest): Promise<ReleaseReply> {
    const { publishMode } = this.scripts;
    const batch = this.releases[request.type];
    if (publishMode.known !== undefined) return batch.call(request);
    return publishMode.ask(request.key).then(() => batch.call(request));
  }

  transfer(request: TransferRequest): Promise<Acquired | undefined> {
    return this.acquisitions.transfer(request);
  }

  adopt(request: AdoptRequest): Promise<AdoptReply> {
    return this.acquisitions.adopt(request);
  }

  renew(request: RenewRequest): Promise<boolean> {
    const { publishMode, standby } = this.scripts;
    const batch = this.renewals[request.type];
    // A standby shortens nothing, so it publishes nothing.
    if (standby || publishMode.known !== undefined) return batch.call(request);
    // Without an answer, waiters of a lease that becomes shorter may wake late, but the renewal must be sent.
    return publishMode.ask(request.key).then(
      () => batch.call(request),
      () => batch.call(request),
    );
  }

  raiseToken(key: string, type: HeldType, token: number): Promise<void> {
    return raiseToken(key, type, token, this.scripts);
  }

  async refreshWaiters(
    waiters: readonly WaiterRef[],
    waiterTimeout: number,
    keptLonger?: () => void,
  ): Promise<readonly boolean[]> {
    const isInLine = waiters.some(({ type }) => hasLine(type));
    if (isInLine && this.line === undefined) return [];
    // If replicas have to confirm an acquisition, a message about it is not enough.
    const places = this.options.minReplicas > 0 ? waiters.map((waiter) => ({ ...waiter, nonce: undefined })) : waiters;
    const kept = refreshWaiters(places, waiterTimeout, this.scripts, keptLonger);
    return isInLine ? this.lines.answer(kept, []) : kept;
  }

  async removeWaiter(waiter: OwnerRef): Promise<void> {
    this.channels.removeWaiter(waiter.key, waiter.owner);
    if (hasLine(waiter.type) && this.line === undefined) return;
    const removed = removeWaiter(waiter, this.scripts);
    await (hasLine(waiter.type) ? this.lines.answer(removed, undefined) : removed);
  }

  forceRelease(key: string, expected?: ExpectedHolders): Promise<readonly string[]> {
    return forceRelease(key, expected, this.scripts);
  }

  inspect(key: string): Promise<LockState> {
    return inspect(key, this.scripts);
  }

  subscribe(key: string, type: HeldType, clientId: string, listener: (wake: Wake) => void): Subscription {
    return this.channels.subscribe(key, type, clientId, listener);
  }

  listenToClient(clientId: string, listener: (removal: Removal) => void, missed?: () => void): Subscription {
    return this.channels.listenToClient(clientId, listener, missed);
  }

  keepAlive(): void {
    this.connection.keepAlive();
  }

  async close(): Promise<void> {
    for (const batches of [this.releases, this.renewals]) {
      for (const batch of Object.values(batches)) batch.close();
    }
    this.scripts.single.close();
    this.scripts.notes.close();
    this.largeResults?.single.close();
    this.channels.close();
    await Promise.all([this.acquisitions.close(), this.largeResults?.connection.close(), this.connection.close()]);
  }

  private openLargeResults(context: ConnectionContext): Pick<ScriptContext, 'connection' | 'single'> {
    const { runtime, commandTimeout } = this.options;
    const connection = this.connection.duplicate(context);
    return { connection, single: new SingleCalls(connection, runtime, commandTimeout) };
  }

  /** Acquires a fair lock, or enters its queue. A waiter with its own channel must be subscribed to it first. */
  private async acquireOrQueue(request: AcquireRequest): Promise<AcquireReply> {
    await this.channels.addWaiter(request.key, request.owner);
    const reply = await this.acquisitions.acquire(request);
    if (reply.acquired) this.channels.removeWaiter(request.key, request.owner);
    return reply;
  }

  /**
   * How many other processes received the message of a release. A node of a cluster counts only its own clients, so in
   * a cluster at least one other process is assumed, unless processes wait in line.
   *
   * @param received how many clients received it, as the server counts them
   * @param head the waiter that the message of a fair lock is for
   */
  private countListeners({ key, type, owner }: OwnerRef, received: number, head: string | undefined): number {
    if (this.connection.isCluster && !(hasLine(type) && this.line)) return Math.max(1, received);
    if (received === 0) return 0;
    return Math.max(0, received - (this.channels.isSubscribed(key, type, clientOf(owner), head) ? 1 : 0));
  }
}

printsAs(RedisBackend, ({ description }) => ({ description }));
