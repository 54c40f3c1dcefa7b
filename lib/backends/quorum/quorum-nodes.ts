import type { LockBackend, LockState } from '../lock-backend.js';
import type { Runtime } from '../runtime.js';
import { majorityView, sameView } from './majority-view.js';
import { agreed, count, majorityOf, poll, undecided, type Votes } from './poll.js';
import { type Question, QuorumNode } from './quorum-node.js';

const SHORTEST_PATIENCE = 50;

/** All nodes of a quorum, and what needs the answers of a majority of them. */
export class QuorumNodes {
  readonly all: readonly QuorumNode[];
  readonly majority: number;

  /** @param nodeTimeout milliseconds that any one of them is waited for */
  constructor(
    backends: readonly LockBackend[],
    readonly runtime: Runtime,
    readonly nodeTimeout: number,
  ) {
    this.all = backends.map((backend) => new QuorumNode(backend, runtime));
    this.majority = majorityOf(backends.length);
  }

  /** What the connections of nodes fail with, one cause for all. */
  get connectionError(): Error | undefined {
    const errors = this.all.flatMap(({ backend }) => backend.connectionError ?? []);
    if (errors.length === 0) return undefined;
    const messages = new Set(errors.map(({ message }) => message));
    return new Error(`${errors.length} of the ${this.all.length} nodes: ${[...messages].join('; ')}`, {
      cause: errors[0],
    });
  }

  /** How long to wait for a node where a lease of this length begins with the question: most of it must be left. */
  patience(leaseTime: number): number {
    return Math.min(this.nodeTimeout, Math.max(SHORTEST_PATIENCE, leaseTime / 2));
  }

  /** Waits until a majority says the same, by `kind`: yes or no. */
  async decide<T>(questions: readonly Question<T>[], kind: (reply: T) => boolean): Promise<Votes<T>> {
    const votes = await poll(questions, agreed(this.all.length, kind));
    const yes = count(votes, kind);
    if (Math.max(yes, votes.replies.size - yes) < this.majority) throw undecided(votes, this.all.length);
    return votes;
  }

  /** Asks all, and waits for each that answers in time: a majority at least. */
  async askAll<T>(command: (backend: LockBackend) => Promise<T>): Promise<Votes<T>> {
    const questions = this.all.map((node) => node.ask(this.nodeTimeout, command));
    return this.needMajority(await poll(questions, () => false));
  }

  /** Waits until a majority sees the same, or all who can have answered. */
  async inspect(key: string): Promise<LockState> {
    const questions = this.all.map((node) => node.ask(this.nodeTimeout, (backend) => backend.inspect(key)));
    const votes = await poll(questions, ({ replies, errors }) => {
      const states = [...replies.values()];
      const alike = states.map((one) => states.filter((other) => sameView(one, other)).length);
      return Math.max(errors.size, ...alike) >= this.majority;
    });
    return majorityView([...this.needMajority(votes).replies.values()], this.all.length);
  }

  /** Lets what is under way on slow nodes come to its end, for a moment, and closes them. */
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

  private needMajority<T>(votes: Votes<T>): Votes<T> {
    if (votes.replies.size < this.majority) throw undecided(votes, this.all.length);
    return votes;
  }
}
