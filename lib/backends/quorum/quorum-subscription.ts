import type { LockType, Subscription, Wake } from '../lock-backend.js';
import type { Timer } from '../runtime.js';
import type { QuorumNodes } from './quorum-nodes.js';

/** How long the message of a few waits for those of the others, in ms. */
const SHORTEST_PAUSE = 5;
const LONGEST_PAUSE = 20;

/**
 * Hears of one release once: when a majority of the nodes has told of it, or a moment after the first one did, because who has
 * released may not have held it on every node, and a message may be lost. What the others tell of the same release later is not
 * heard again.
 */
export class QuorumSubscription implements Subscription {
  readonly ready: Promise<void>;
  private readonly subscriptions: readonly Subscription[];
  /** Nodes that told of the present release. */
  private readonly told = new Set<number>();
  /** Nodes that have yet to tell of the release before. */
  private readonly late = new Set<number>();
  private timer: Timer | undefined;

  constructor(
    private readonly nodes: QuorumNodes,
    key: string,
    type: LockType,
    clientId: string,
    private readonly listener: (wake: Wake) => void,
  ) {
    this.subscriptions = nodes.all.map(({ backend }, number) =>
      backend.subscribe(key, type, clientId, (wake) => this.heard(number, wake)),
    );
    this.ready = readyOn(
      nodes.majority,
      this.subscriptions.map(({ ready }) => ready),
    );
  }

  close(): void {
    this.timer?.cancel();
    for (const subscription of this.subscriptions) subscription.close();
  }

  private heard(node: number, wake: Wake): void {
    if (wake.kind === 'resync') {
      this.late.clear();
      this.forget();
      this.listener(wake);
      return;
    }
    if (this.late.delete(node)) return;
    this.told.add(node);
    if (this.told.size >= this.nodes.majority) this.wake();
    else this.timer ??= this.nodes.runtime.timer(this.pause(), () => this.wake());
  }

  private wake(): void {
    this.late.clear();
    for (const number of this.subscriptions.keys()) if (!this.told.has(number)) this.late.add(number);
    this.forget();
    this.listener({ kind: 'message' });
  }

  private forget(): void {
    this.told.clear();
    this.timer?.cancel();
    this.timer = undefined;
  }

  private pause(): number {
    return SHORTEST_PAUSE + (LONGEST_PAUSE - SHORTEST_PAUSE) * this.nodes.runtime.random();
  }
}

function readyOn(majority: number, subscriptions: readonly Promise<void>[]): Promise<void> {
  let missing = majority;
  return new Promise((resolve) => {
    for (const ready of subscriptions) ready.then(() => --missing === 0 && resolve());
  });
}
