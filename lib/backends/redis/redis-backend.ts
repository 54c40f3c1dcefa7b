import {
  type AcquireAllReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type LockBackend,
  type LockState,
  type LockType,
  type OwnerRef,
  type ReleaseReply,
  type ReleaseRequest,
  type Removal,
  type RenewRequest,
  type Subscription,
  type TransferRequest,
  type Wake,
} from '../lock-backend.js';
import type { Runtime } from '../runtime.js';
import { Acquisitions } from './acquisitions.js';
import { NodeBatches } from './calls/node-batches.js';
import type { ScriptContext } from './calls/script-context.js';
import { SingleCalls } from './calls/single-calls.js';
import { forceRelease } from './commands/force-release.js';
import { inspect } from './commands/inspect.js';
import { raiseToken } from './commands/raise-token.js';
import { refreshWaiters } from './commands/refresh-waiters.js';
import { ReleaseBatch } from './commands/release.js';
import { removeWaiter } from './commands/remove-waiter.js';
import { RenewBatch } from './commands/renew.js';
import { RedisSynchronizers } from './commands/synchronizers/redis-synchronizers.js';
import { takeTicket } from './commands/take-ticket.js';
import { type Connection, type ConnectionContext, RedisConnection } from './connection/redis-connection.js';
import { FencingTokens } from './fencing-tokens.js';
import { slotOf } from './hash-slot.js';
import { ofEachType } from './of-each-type.js';
import { PublishMode } from './pubsub/publish-mode.js';
import { ReleaseChannels } from './pubsub/release-channels.js';

export interface RedisBackendOptions {
  readonly connection: Connection;
  readonly runtime: Runtime;
  /** The `<clientId>` of this process's owners. */
  readonly clientId: string;
  /** Milliseconds within which every call is answered. */
  readonly commandTimeout: number;
  readonly shardedPubSub: 'auto' | 'on' | 'off';
  /** An acquisition counts only when that many replicas have it. 0: not asked. */
  readonly minReplicas: number;
  /** Milliseconds to wait for them. */
  readonly replicaTimeout: number;
  /** Is told of what no call fails with: connections that break, listeners that throw. */
  readonly onError: (error: unknown) => void;
  /** Is told, once, of a set-up of the server that makes locks unsafe. */
  readonly onWarning?: (message: string) => void;
}

/**
 * Locks in Redis, on Redisson's layout: one server, Sentinel or cluster. The scripts are in scripts/, one file a command.
 *
 * @throws ConnectionError from the constructor when the `connection` cannot be used
 */
export class RedisBackend implements LockBackend {
  readonly description: string;
  readonly synchronizers: RedisSynchronizers;
  private readonly connection: RedisConnection;
  private readonly channels: ReleaseChannels;
  private readonly scripts: ScriptContext;
  private readonly acquisitions: Acquisitions;
  private readonly releases: Record<LockType, NodeBatches<ReleaseRequest, ReleaseReply>>;
  private readonly renewals: Record<LockType, NodeBatches<RenewRequest, boolean>>;

  constructor(private readonly options: RedisBackendOptions) {
    const { runtime, commandTimeout, onError, onWarning = () => {} } = options;
    const context: ConnectionContext = { runtime, commandTimeout, onError, onWarning };
    const connection = RedisConnection.open(options.connection, context);
    this.connection = connection;
    this.description = connection.description;
    const tokens = new FencingTokens();
    const single = new SingleCalls(connection, runtime, commandTimeout);
    const publishMode = new PublishMode(single, options.shardedPubSub, connection.isCluster, onError);
    this.channels = new ReleaseChannels(connection, publishMode, context);
    this.scripts = { connection, tokens, publishMode, single, replicaCheck: undefined };
    this.synchronizers = new RedisSynchronizers(this.scripts, this.channels);
    this.acquisitions = new Acquisitions(this.scripts, { ...options, onWarning }, (owner) => this.release(owner));
    const publish = () => publishMode.known ?? 'PUBLISH';
    const others = this.others.bind(this);
    this.releases = ofEachType(
      (type) =>
        new NodeBatches(new ReleaseBatch(type, connection, publish, others), connection, runtime, commandTimeout),
    );
    this.renewals = ofEachType(
      (type) => new NodeBatches(new RenewBatch(type, connection), connection, runtime, commandTimeout),
    );
  }

  get connectionError(): Error | undefined {
    return this.connection.connectionError;
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    if (request.type === 'fair' && request.fairWaitTimeout > 0) return this.queueUp(request);
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
    return publishMode.ask().then(() => batch.call(request));
  }

  transfer(request: TransferRequest): Promise<Acquired | undefined> {
    return this.acquisitions.transfer(request);
  }

  renew(request: RenewRequest): Promise<boolean> {
    return this.renewals[request.type].call(request);
  }

  raiseToken(key: string, type: LockType, token: number): Promise<void> {
    return raiseToken(key, type, token, this.scripts);
  }

  refreshWaiters(waiters: readonly OwnerRef[], fairWaitTimeout: number): Promise<readonly boolean[]> {
    return refreshWaiters(waiters, fairWaitTimeout, this.scripts);
  }

  async removeWaiter(waiter: OwnerRef): Promise<void> {
    this.channels.forget(waiter.key, waiter.owner);
    await removeWaiter(waiter, this.scripts);
  }

  forceRelease(key: string): Promise<readonly string[]> {
    return forceRelease(key, this.scripts);
  }

  inspect(key: string): Promise<LockState> {
    return inspect(key, this.scripts);
  }

  takeTicket(key: string, holder: string): Promise<number> {
    return takeTicket(key, holder, this.scripts);
  }

  subscribe(key: string, type: LockType, clientId: string, listener: (wake: Wake) => void): Subscription {
    return this.channels.subscribe(key, type, clientId, listener);
  }

  listenToClient(clientId: string, listener: (removal: Removal) => void): Subscription {
    return this.channels.listenToClient(clientId, listener);
  }

  async close(): Promise<void> {
    for (const batches of [this.releases, this.renewals]) {
      for (const batch of Object.values(batches)) batch.close();
    }
    this.scripts.single.close();
    this.channels.close();
    await Promise.all([this.acquisitions.close(), this.connection.close()]);
  }

  /** Where a waiter has a channel of its own, it must hear it before it has a place. */
  private async queueUp(request: AcquireRequest): Promise<AcquireReply> {
    await this.channels.expect(request.key, request.owner);
    const reply = await this.acquisitions.acquire(request);
    if (reply.acquired) this.channels.forget(request.key, request.owner);
    return reply;
  }

  /** How many others a release told. A node of a cluster counts its own clients alone: somebody may have listened elsewhere. */
  private others({ key, type }: OwnerRef, told: number, head: string | undefined): number {
    if (this.connection.isCluster) return Math.max(1, told);
    if (told === 0) return 0;
    return Math.max(0, told - (this.channels.hears(key, type, this.options.clientId, head) ? 1 : 0));
  }
}
