import {
  type AcquireAllReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  BackendError,
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
import { busyReply } from './busy-reply.js';
import { count } from './poll.js';
import { attempt, type NodeReply, type Outcome, type Refusal } from './quorum-attempt.js';
import type { Question } from './quorum-node.js';
import { QuorumNodes } from './quorum-nodes.js';
import { QuorumSubscription } from './quorum-subscription.js';

export interface QuorumBackendOptions {
  /** Backends that fail independently of each other: an odd number, three or more. */
  readonly nodes: readonly LockBackend[];
  readonly runtime: Runtime;
  /** Milliseconds that any one node is waited for; less for short leases, so that most of the lease is left. Default 500. */
  readonly nodeTimeout?: number;
}

/** For so many milliseconds a release is tried again on a node that did not answer: what it keeps lapses by then. */
const RELEASE_TRIALS = 30_000;

const NOT_THERE: Refusal = { granted: false, index: 0, remaining: -1, holder: undefined };

/**
 * Redlock: a lock is held by who holds it on a majority of independent nodes, so that it outlives the loss of the others. A node
 * that is down or slow costs nothing while a majority answers, and its time-out otherwise.
 *
 * Tokens grow from each holder to those who come after it; readers who enter at the same moment may have the same one, because the
 * largest of two majorities can be one number.
 *
 * Its nodes must not be replicas of each other. A node that lost its data helps whoever asks next: let it restart after the longest
 * lease, or with its data. Fair locks are refused: independent queues have no one order.
 *
 * @see https://redis.io/docs/latest/develop/use/patterns/distributed-locks/
 */
export class QuorumBackend implements LockBackend {
  readonly description: string;
  /** Permits that are counted on several nodes have no one number. */
  readonly synchronizers = undefined;
  private readonly nodes: QuorumNodes;
  private closing: Promise<void> | undefined;

  /** @throws RangeError for an even number of nodes, or less than three */
  constructor({ nodes, runtime, nodeTimeout = 500 }: QuorumBackendOptions) {
    if (nodes.length < 3 || nodes.length % 2 === 0)
      throw new RangeError(`a quorum needs an odd number of nodes, three or more, but there are ${nodes.length}`);
    this.nodes = new QuorumNodes(nodes, runtime, nodeTimeout);
    this.description = `quorum of ${nodes.map(({ description }) => description).join(', ')}`;
  }

  get connectionError(): Error | undefined {
    return this.nodes.connectionError;
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const since = this.nodes.runtime.monotonic();
    const outcome = await this.attempt([request], request.leaseTime, [], async (backend) => {
      const reply = await backend.acquire(request);
      return reply.acquired
        ? { granted: true, tokens: [reply.token], reserved: reply.reserved }
        : { ...reply, granted: false, index: 0 };
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
      return reply.acquired ? { granted: true, tokens: reply.tokens, reserved: 0 } : { ...reply, granted: false };
    });
    if (outcome.granted) return { acquired: true, tokens: outcome.tokens };
    const keys = requests.map(({ key }) => key);
    return busyReply(this.nodes, keys, outcome, this.nodes.runtime.monotonic() - since);
  }

  async release(request: ReleaseRequest): Promise<ReleaseReply> {
    this.admit(request.type);
    const { all, majority, nodeTimeout } = this.nodes;
    const questions = all.map((node) =>
      node.release(request, nodeTimeout, RELEASE_TRIALS, (backend) => backend.release(request)),
    );
    // Of a release that was sent twice, the second answer says that nothing was there.
    const gone = ({ released, resent }: ReleaseReply) => released || resent;
    const votes = await this.nodes.decide(questions, gone);
    const replies = [...votes.replies.values()];
    const released = count(votes, (reply) => reply.released) >= majority;
    const listeners = released ? Math.max(...replies.map((reply) => reply.listeners)) : 0;
    const published = released && replies.some((reply) => reply.published);
    const resent = count(votes, gone) >= majority && replies.some((reply) => reply.resent);
    return { released, listeners, published, resent };
  }

  async transfer(request: TransferRequest): Promise<Acquired | undefined> {
    const { key, type, from, to, leaseTime } = request;
    const predecessors = [{ key, type, owner: from }];
    const outcome = await this.attempt([{ key, type, owner: to }], leaseTime, predecessors, async (backend) => {
      const reply = await backend.transfer(request);
      return reply === undefined ? NOT_THERE : { granted: true, tokens: [reply.token], reserved: reply.reserved };
    });
    if (outcome.granted) return { acquired: true, token: outcome.tokens[0], reserved: outcome.reserved };
    if (outcome.refusals.length >= this.nodes.majority) return undefined;
    throw new BackendError(`${this.description}: only a few nodes have passed '${key}' on`, 'unavailable', 'unknown');
  }

  async renew(request: RenewRequest): Promise<boolean> {
    this.admit(request.type);
    const patience = this.nodes.patience(request.leaseTime);
    const questions = this.nodes.all.map((node) => node.tell([request], patience, (backend) => backend.renew(request)));
    const votes = await this.nodes.decide(questions, (there) => there);
    const renewed = count(votes, (there) => there) >= this.nodes.majority;
    if (renewed) this.restore(request, questions);
    return renewed;
  }

  async raiseToken(key: string, type: LockType, token: number): Promise<void> {
    this.admit();
    await this.nodes.askAll((backend) => backend.raiseToken(key, type, token));
  }

  async refreshWaiters(places: readonly OwnerRef[], fairWaitTimeout: number): Promise<readonly boolean[]> {
    for (const { type } of places) this.admit(type);
    const votes = await this.nodes.askAll((backend) => backend.refreshWaiters(places, fairWaitTimeout));
    const needed = votes.replies.size / 2;
    return places.map((_, index) => count(votes, (kept) => kept[index]) > needed);
  }

  async removeWaiter(place: OwnerRef): Promise<void> {
    if (place.type !== 'write') return;
    const { all, nodeTimeout } = this.nodes;
    const left = all.map((node) => node.removeWaiter(place, nodeTimeout));
    await this.nodes.decide(left, () => true);
  }

  /** None, unless it was held on half of the nodes that answered: then what was left on fewer counts too. */
  async forceRelease(key: string): Promise<readonly string[]> {
    this.admit();
    const votes = await this.nodes.askAll((backend) => backend.forceRelease(key));
    const held = count(votes, (owners) => owners.length > 0);
    return held * 2 >= votes.replies.size ? [...new Set([...votes.replies.values()].flat())] : [];
  }

  async inspect(key: string): Promise<LockState> {
    this.admit();
    return this.nodes.inspect(key);
  }

  subscribe(key: string, type: LockType, clientId: string, listener: (wake: Wake) => void): Subscription {
    if (type === 'fair') return { ready: new Promise(() => {}), close: () => {} };
    return new QuorumSubscription(this.nodes, key, type, clientId, listener);
  }

  listenToClient(clientId: string, listener: (removal: Removal) => void): Subscription {
    const subscriptions = this.nodes.all.flatMap(({ backend }) => backend.listenToClient?.(clientId, listener) ?? []);
    return {
      ready: Promise.all(subscriptions.map(({ ready }) => ready)).then(() => {}),
      close: () => {
        for (const subscription of subscriptions) subscription.close();
      },
    };
  }

  close(): Promise<void> {
    this.closing ??= this.nodes.close();
    return this.closing;
  }

  private attempt(
    owners: readonly OwnerRef[],
    leaseTime: number,
    predecessors: readonly OwnerRef[],
    command: (backend: LockBackend) => Promise<NodeReply>,
  ): Promise<Outcome> {
    for (const { type } of owners) this.admit(type);
    return attempt(this.nodes, { owners, predecessors, leaseTime, command });
  }

  /** A node that lost the lock, or did not have it from the beginning, gets it back from its holder. */
  private restore(request: RenewRequest, questions: readonly Question<boolean>[]): void {
    const acquisition = { ...request, reserve: 0, fairWaitTimeout: 0, preferWriters: false };
    const patience = this.nodes.patience(request.leaseTime);
    for (const [number, { settled }] of questions.entries()) {
      const node = this.nodes.all[number];
      settled.then(
        (there) => !there && node.restore(request, patience, (backend) => backend.acquire(acquisition)),
        () => {},
      );
    }
  }

  /** @throws BackendError after {@link close}, and for what a quorum cannot do */
  private admit(type?: LockType): void {
    if (this.closing !== undefined)
      throw new BackendError(`${this.description}: the lock backend was closed`, 'unavailable', 'refused');
    if (type === 'fair') {
      throw new BackendError(
        'a quorum has no fair locks: its nodes have a queue each, and no order that all of them share. Use another type, or a single Redis',
        'denied',
        'refused',
      );
    }
  }
}
