import type { HeldType } from '../lock-requests.js';
import type { Timer } from '../runtime.js';
import type { Subscription, Wake } from '../subscription.js';
import { largest } from './majority-view.js';
import type { QuorumNodes } from './quorum-nodes.js';

/** How long the message of a minority waits for that of a majority, in ms. */
const SHORTEST_PAUSE = 5;
const LONGEST_PAUSE = 20;

/** How long after a majority's message the messages of slower nodes count as late copies of it, in ms. */
const LATE_COPIES = 50;

/**
 * Combines the messages that the nodes send about one release into one. It is delivered when a majority has sent it, or
 * a moment after the first one, because the releaser may not have held the lock on every node, and messages can be
 * lost. A superfluous message does less harm than a missing one.
 */
export class QuorumSubscription implements Subscription {
  readonly ready: Promise<void>;
  private readonly subscriptions: readonly Subscription[];
  /** How many releases each node has announced since the last quiet moment. */
  private readonly announced: number[];
  /** How many of them were delivered. */
  private delivered = 0;
  private lateUntil = 0;
  private timer: Timer | undefined;

  constructor(
    private readonly nodes: QuorumNodes,
    key: string,
    type: HeldType,
    clientId: string,
    private readonly listener: (wake: Wake) => void,
  ) {
    this.announced = nodes.all.map(() => 0);
    this.subscriptions = nodes.all.map(({ backend }, index) =>
      backend.subscribe(key, type, clientId, (wake) => this.onWake(index, wake)),
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

  private onWake(node: number, wake: Wake): void {
    if (wake.kind === 'resync') {
      this.reset(0);
      return this.listener(wake);
    }
    const { majority, runtime } = this.nodes;
    const now = runtime.monotonic();
    if (this.timer === undefined && now > this.lateUntil) this.reset(0);
    this.announced[node]++;
    if (this.deliver(largest(majority, this.announced))) this.lateUntil = now + LATE_COPIES;
    if (largest(1, this.announced) > this.delivered)
      this.timer ??= runtime.timer(this.pause(), () => this.deliverAll());
  }

  /** Delivers what only a minority has announced. What the other nodes announce later counts as new. */
  private deliverAll(): void {
    const all = largest(1, this.announced);
    this.deliver(all);
    this.reset(all);
  }

  /** @returns whether anything was delivered */
  private deliver(upTo: number): boolean {
    const isNew = upTo > this.delivered;
    while (this.delivered < upTo) {
      this.delivered++;
      this.listener({ kind: 'message' });
    }
    return isNew;
  }

  private reset(count: number): void {
    this.announced.fill(count);
    this.delivered = count;
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
