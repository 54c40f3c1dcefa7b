import { BackendError } from '../backend-error.js';
import { InProcessWaits, WaitStore } from '../in-process-waits.js';
import type { BackendHealth, LockBackend } from '../lock-backend.js';
import type {
  AcquireAllReply,
  Acquired,
  AcquireReply,
  AcquireRequest,
  ExpectedHolders,
  HeldType,
  LockState,
  OwnerRef,
  ReleaseReply,
  ReleaseRequest,
  Removal,
  RenewRequest,
  TransferRequest,
} from '../lock-requests.js';
import type { NodeWatch } from '../node-outage.js';
import { printsAs } from '../prints-as.js';
import { QUORUM_CONFIRMS } from '../reasons-to-confirm.js';
import type { Runtime } from '../runtime.js';
import type { Subscription, Wake } from '../subscription.js';
import type { GrantedTokens } from './agree-on-tokens.js';
import { busyReply } from './busy-reply.js';
import { countReplies } from './collect-replies.js';
import { attempt, type MajorityReply, type NodeBusy, type NodeReply } from './quorum-attempt.js';
import type { QuorumMember } from './quorum-member.js';
import type { NodeCall } from './quorum-node.js';
import { QuorumNodes } from './quorum-nodes.js';
import { QuorumSubscription } from './quorum-subscription.js';

export interface QuorumBackendOptions {
  /** Backends that fail independently of each other: an odd number, three or more. */
  readonly nodes: readonly QuorumMember[];
  readonly runtime: Runtime;
  /**
   * How long to wait for each node, in ms. The wait is shorter for short leases, so that most of the lease is left.
   * Default 500.
   */
  readonly nodeTimeout?: number;
  /** Whether a renewal acquires the lock again on nodes that have lost it. Not for a standby: see lib/standby. Default true. */
  readonly restores?: boolean;
}

/** How long a release is repeated on a node that did not answer if nobody says when the lease ends, in ms. */
const RELEASE_RETRY_TIME = 30_000;

/** A renewal that a majority may or may not have executed. */
interface OpenRenewal {
  readonly of: OwnerRef;
  /** The owner's lock was released or handed over meanwhile. */
  isOver: boolean;
}

const NOT_THERE: NodeBusy = { granted: false, index: 0, remaining: -1, holder: undefined };

/**
 * Redlock: an owner holds a lock if it holds it on a majority of independent nodes, so the lock survives the loss of
 * the other nodes. While a majority agrees, a node that is down or slow does not delay acquisitions, renewals or
 * releases. Without a majority, callers wait for the node's time-out.
 *
 * Each holder's token is larger than those of all holders before it. Readers that enter at the same moment may have the
 * same token, because two majorities can have the same largest one.
 *
 * The nodes must not be replicas of each other. A node that lost its data may grant locks that are already held. Keep
 * its data across restarts, or restart it only after the longest lease has ended. Fair locks are refused, because the
 * queues of independent nodes have no common order.
 *
 * @see https://redis.io/docs/latest/develop/use/patterns/distributed-locks/
 */
export class QuorumBackend implements LockBackend {
  readonly description: string;
  readonly adoptRefusal =
    'several servers cannot transfer a lock in one step, so a ticket might work on only some of them';
  /** Undefined, because nodes that count permits independently would not agree on a number. */
  readonly synchronizers = undefined;
  readonly confirmsReleases = QUORUM_CONFIRMS;
  readonly permitsRefusal =
    'the nodes of a quorum may disagree about who holds the lock. Use a single Redis, or leave out permits';
  /** No single node would know all waits, so deadlocks are detected only among the callers of this backend. */
  readonly waits: InProcessWaits;
  private readonly nodes: QuorumNodes;
  private readonly restores: boolean;
  private readonly renewals = new Set<OpenRenewal>();
  private closing: Promise<void> | undefined;

  /** @throws RangeError for an even number of nodes, or fewer than three */
  constructor({ nodes, runtime, nodeTimeout = 500, restores = true }: QuorumBackendOptions) {
    this.restores = restores;
    if (nodes.length < 3 || nodes.length % 2 === 0)
      throw new RangeError(`a quorum needs an odd number of nodes, at least three, but there are ${nodes.length}`);
    this.description = `quorum of ${nodes.map(({ description }) => description).join(', ')}`;
    this.nodes = new QuorumNodes(nodes, runtime, nodeTimeout, this.description);
    const holders = async (key: string) => (await this.inspect(key)).owners.map(({ owner }) => owner);
    const monotonic = () => runtime.monotonic();
    this.waits = new InProcessWaits(new WaitStore(), monotonic, monotonic, holders);
  }

  get members(): readonly QuorumMember[] {
    return this.nodes.all.map(({ backend }) => backend);
  }

  /** The health of the majority. */
  get health(): NodeWatch {
    return this.nodes.watch;
  }

  get connectionError(): Error | undefined {
    return this.nodes.connectionError;
  }

  /** Resolves when a majority answers. */
  async ping(): Promise<BackendHealth> {
    const { replies } = await this.nodes.ping();
    const known = [...replies.values()].flatMap(({ listening }) => listening ?? []);
    return { listening: known.length === 0 ? undefined : known.filter(Boolean).length * 2 > known.length };
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const since = this.nodes.runtime.monotonic();
    // The lines of single nodes have no common order. A writer is in them only so that readers let it go first.
    const isWriter = request.type === 'write';
    const asked = {
      ...request,
      waiterTimeout: isWriter ? request.waiterTimeout : 0,
      pastLine: isWriter || request.pastLine,
    };
    const outcome = await this.attempt([request], request.leaseTime, [], async (backend) => {
      const reply = await backend.acquire(asked);
      return reply.acquired ? grantOf(reply) : { ...reply, granted: false, index: 0 };
    });
    if (outcome.granted) return { acquired: true, token: outcome.tokens[0], reserved: outcome.reserved };
    return busyReply(this.nodes, [request.key], outcome, this.nodes.runtime.monotonic() - since);
  }

  canAcquireTogether(keys: readonly string[]): boolean {
    return this.nodes.all.every(({ backend }) => backend.canAcquireTogether(keys));
  }

  async acquireAll(requests: readonly AcquireRequest[]): Promise<AcquireAllReply> {
    if (requests.length === 0) return { acquired: true, tokens: [] };
    const since = this.nodes.runtime.monotonic();
    const outcome = await this.attempt(requests, requests[0].leaseTime, [], async (backend) => {
      const reply = await backend.acquireAll(requests);
      return reply.acquired
        ? { granted: true, tokens: reply.tokens, reserved: 0, validUntil: reply.validUntil }
        : { ...reply, granted: false };
    });
    if (outcome.granted) return { acquired: true, tokens: outcome.tokens };
    const keys = requests.map(({ key }) => key);
    return busyReply(this.nodes, keys, outcome, this.nodes.runtime.monotonic() - since);
  }

  async release(request: ReleaseRequest): Promise<ReleaseReply> {
    const { key, type, owner, leaseTime = RELEASE_RETRY_TIME } = request;
    this.assertUsable(type);
    this.leaves(request);
    const { all, majority, nodeTimeout } = this.nodes;
    const calls = all.map((node) =>
      node.release(request, nodeTimeout, leaseTime, (backend) => backend.release({ key, type, owner })),
    );
    // When a release was sent twice, the second reply says that the owner was not there.
    const isGone = ({ released, resent }: ReleaseReply) => released || resent;
    const collected = await this.nodes.decide(calls, isGone);
    const replies = [...collected.replies.values()];
    const released = countReplies(collected, (reply) => reply.released) >= majority;
    const listeners = released ? Math.max(...replies.map((reply) => reply.listeners)) : 0;
    const published = released && replies.some((reply) => reply.published);
    const resent = countReplies(collected, isGone) >= majority && replies.some((reply) => reply.resent);
    return { released, listeners, published, resent };
  }

  async transfer(request: TransferRequest): Promise<Acquired | undefined> {
    const { key, type, from, to, leaseTime } = request;
    const predecessors = [{ key, type, owner: from }];
    this.leaves(predecessors[0]);
    const outcome = await this.attempt([{ key, type, owner: to }], leaseTime, predecessors, async (backend) => {
      const reply = await backend.transfer(request);
      return reply === undefined ? NOT_THERE : grantOf(reply);
    });
    if (outcome.granted) return { acquired: true, token: outcome.tokens[0], reserved: outcome.reserved };
    if (outcome.busyNodes.length >= this.nodes.majority) return undefined;
    throw new BackendError(
      `${this.description}: only a minority of the nodes transferred '${key}'`,
      'unavailable',
      'unknown',
    );
  }

  async renew(request: RenewRequest): Promise<boolean> {
    this.assertUsable(request.type);
    const timeout = this.nodes.timeoutFor(request.leaseTime);
    const renewal: OpenRenewal = { of: request, isOver: false };
    this.renewals.add(renewal);
    try {
      const calls = this.nodes.all.map((node) => node.send([request], timeout, (backend) => backend.renew(request)));
      const collected = await this.nodes.decide(calls, (isThere) => isThere);
      const renewed = countReplies(collected, (isThere) => isThere) >= this.nodes.majority;
      if (renewed && !renewal.isOver && this.restores) this.restore(request, calls);
      return renewed;
    } finally {
      this.renewals.delete(renewal);
    }
  }

  async refreshWaiters(waiters: readonly OwnerRef[], waiterTimeout: number): Promise<readonly boolean[]> {
    for (const { type } of waiters) this.assertUsable(type);
    const collected = await this.nodes.askAll((backend) => backend.refreshWaiters(waiters, waiterTimeout));
    const needed = collected.replies.size / 2;
    return waiters.map((_, index) => countReplies(collected, (refreshed) => refreshed[index]) > needed);
  }

  async removeWaiter(waiter: OwnerRef): Promise<void> {
    if (waiter.type !== 'write') return;
    const { all, nodeTimeout } = this.nodes;
    const removed = all.map((node) => node.removeWaiter(waiter, nodeTimeout));
    await this.nodes.decide(removed, () => true);
  }

  /**
   * Returns all removed owners, even if only a minority of the nodes knew them. Returns none if more than half of the
   * nodes that answered had nothing to remove. Before any node removes an owner, the expected token is compared with
   * the token of the majority, because single nodes may have different tokens.
   */
  async forceRelease(key: string, expected?: ExpectedHolders): Promise<readonly string[]> {
    this.assertUsable();
    if (expected?.token !== undefined && ((await this.inspect(key)).token ?? expected.token) !== expected.token)
      return [];
    const meant = expected && { owners: expected.owners };
    const collected = await this.nodes.askAll((backend) => backend.forceRelease(key, meant));
    const held = countReplies(collected, (owners) => owners.length > 0);
    return held * 2 >= collected.replies.size ? [...new Set([...collected.replies.values()].flat())] : [];
  }

  async inspect(key: string): Promise<LockState> {
    this.assertUsable();
    return this.nodes.inspect(key);
  }

  subscribe(key: string, type: HeldType, clientId: string, listener: (wake: Wake) => void): Subscription {
    if (type === 'fair') return { ready: new Promise(() => {}), close: () => {} };
    return new QuorumSubscription(this.nodes, key, type, clientId, listener);
  }

  listenToClient(clientId: string, listener: (removal: Removal) => void, missed?: () => void): Subscription {
    const subscriptions = this.nodes.all.flatMap(
      ({ backend }) => backend.listenToClient?.(clientId, listener, missed) ?? [],
    );
    return {
      ready: Promise.all(subscriptions.map(({ ready }) => ready)).then(() => {}),
      close: () => {
        for (const subscription of subscriptions) subscription.close();
      },
    };
  }

  keepAlive(): void {
    for (const { backend } of this.nodes.all) backend.keepAlive?.();
  }

  close(): Promise<void> {
    this.closing ??= this.nodes.close();
    return this.closing;
  }

  private attempt(
    owners: readonly OwnerRef[],
    leaseTime: number,
    predecessors: readonly OwnerRef[],
    command: (backend: QuorumMember) => Promise<NodeReply>,
  ): Promise<MajorityReply> {
    for (const { type } of owners) this.assertUsable(type);
    return this.nodes.watch.health.observe(attempt(this.nodes, { owners, predecessors, leaseTime, command }), true);
  }

  /** A node may answer a release before others have answered the renewal, and must not get the lock again then. */
  private leaves({ key, type, owner }: OwnerRef): void {
    for (const renewal of this.renewals) {
      const { of } = renewal;
      if (of.owner === owner && of.key === key && of.type === type) renewal.isOver = true;
    }
  }

  /** Acquires the lock again on nodes that have lost it or have never granted it. */
  private restore(request: RenewRequest, calls: readonly NodeCall<boolean>[]): void {
    const acquisition = { ...request, reserve: 0, waiterTimeout: 0, pastLine: true };
    const timeout = this.nodes.timeoutFor(request.leaseTime);
    for (const [number, { settled }] of calls.entries()) {
      const node = this.nodes.all[number];
      settled.then(
        (isThere) => !isThere && node.restore(request, timeout, (backend) => backend.acquire(acquisition)),
        () => {},
      );
    }
  }

  /** @throws BackendError after {@link close}, and for fair locks and permits */
  private assertUsable(type?: HeldType): void {
    if (this.closing !== undefined)
      throw new BackendError(`${this.description}: the lock backend was closed`, 'unavailable', 'refused');
    if (type === 'fair') {
      throw new BackendError(
        'a quorum has no fair locks: the queues of its nodes have no common order. Use another type, or a single Redis',
        'denied',
        'refused',
      );
    }
    if (type === 'permits') throw new BackendError(this.permitsRefusal, 'denied', 'refused');
  }
}

function grantOf({ token, reserved, validUntil }: Acquired): GrantedTokens {
  return { granted: true, tokens: [token], reserved, validUntil };
}

printsAs(QuorumBackend, ({ description }) => ({ description }));
