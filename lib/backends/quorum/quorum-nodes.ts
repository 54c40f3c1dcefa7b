import type { BackendHealth } from '../lock-backend.js';
import type { LockState } from '../lock-requests.js';
import { SingleNodeWatch } from '../node-outage.js';
import type { Runtime } from '../runtime.js';
import {
  collectReplies,
  countReplies,
  majorityAgrees,
  majorityOf,
  type NodeReplies,
  noMajorityError,
} from './collect-replies.js';
import { majorityView, sameView } from './majority-view.js';
import type { QuorumMember } from './quorum-member.js';
import { type NodeCall, QuorumNode } from './quorum-node.js';

const SHORTEST_TIMEOUT = 50;

/** All nodes of a quorum, and the calls that need the replies of a majority of them. */
export class QuorumNodes {
  readonly all: readonly QuorumNode[];
  readonly majority: number;
  /** Whether a majority answers. */
  readonly watch: SingleNodeWatch;

  /** @param nodeTimeout how long to wait for any one of them, in milliseconds */
  constructor(
    backends: readonly QuorumMember[],
    readonly runtime: Runtime,
    readonly nodeTimeout: number,
    description: string,
  ) {
    this.all = backends.map((backend) => new QuorumNode(backend, runtime));
    this.majority = majorityOf(backends.length);
    this.watch = new SingleNodeWatch(description, runtime, () => this.ping());
  }

  /** The connection errors of all nodes, as one. */
  get connectionError(): Error | undefined {
    const errors = this.all.flatMap(({ backend }) => backend.connectionError ?? []);
    if (errors.length === 0) return undefined;
    const messages = new Set(errors.map(({ message }) => message));
    return new Error(`${errors.length} of the ${this.all.length} nodes: ${[...messages].join('; ')}`, {
      cause: errors[0],
    });
  }

  /**
   * How long to wait for a node when the call starts or renews a lease of this length. Most of the lease has to be left
   * afterwards.
   */
  timeoutFor(leaseTime: number): number {
    return Math.min(this.nodeTimeout, Math.max(SHORTEST_TIMEOUT, leaseTime / 2));
  }

  /**
   * Waits until a majority satisfies `condition`, or until a majority does not satisfy it.
   *
   * @throws BackendError when the replies show neither
   */
  decide<T>(calls: readonly NodeCall<T>[], condition: (reply: T) => boolean): Promise<NodeReplies<T>> {
    return this.watch.health.observe(this.decision(calls, condition), false);
  }

  /**
   * Sends a command to all nodes, and waits for every reply that comes in time.
   *
   * @throws BackendError when fewer than a majority answered
   */
  askAll<T>(command: (backend: QuorumMember) => Promise<T>): Promise<NodeReplies<T>> {
    const calls = this.all.map((node) => node.ask(this.nodeTimeout, command));
    const all = collectReplies(calls, () => false).then((collected) => this.requireMajority(collected));
    return this.watch.health.observe(all, false);
  }

  /** @throws BackendError when fewer than a majority answered */
  ping(): Promise<NodeReplies<BackendHealth>> {
    return this.askAll((backend) => backend.ping?.() ?? Promise.resolve({ listening: undefined }));
  }

  /** Waits until a majority sees the same state, or all nodes have answered or failed. */
  async inspect(key: string): Promise<LockState> {
    const calls = this.all.map((node) => node.ask(this.nodeTimeout, (backend) => backend.inspect(key)));
    const collected = await collectReplies(calls, ({ replies, errors }) => {
      const states = [...replies.values()];
      const alike = states.map((one) => states.filter((other) => sameView(one, other)).length);
      return Math.max(errors.size, ...alike) >= this.majority;
    });
    return majorityView([...this.requireMajority(collected).replies.values()], this.all.length);
  }

  /** Gives commands that are under way on slow nodes a moment to settle, then closes all nodes. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.runtime.timer(this.nodeTimeout, resolve);
      Promise.all(this.all.map((node) => node.idle())).then(() => {
        timer.cancel();
        resolve();
      });
    });
    await Promise.all(this.all.map((node) => node.close()));
  }

  private async decision<T>(calls: readonly NodeCall<T>[], condition: (reply: T) => boolean): Promise<NodeReplies<T>> {
    const collected = await collectReplies(calls, majorityAgrees(this.all.length, condition));
    const yes = countReplies(collected, condition);
    if (Math.max(yes, collected.replies.size - yes) < this.majority) throw noMajorityError(collected, this.all.length);
    return collected;
  }

  private requireMajority<T>(collected: NodeReplies<T>): NodeReplies<T> {
    if (collected.replies.size < this.majority) throw noMajorityError(collected, this.all.length);
    return collected;
  }
}
