import type { LockType, Subscription, Wake } from '../lock-backend.js';
import type { Timer } from '../runtime.js';
import { largest } from './majority-view.js';
import type { QuorumNodes } from './quorum-nodes.js';

/** How long the message of a few nodes waits for that of a majority, in ms. */
const SHORTEST_PAUSE = 5;
const LONGEST_PAUSE = 20;

/** For so many ms after a majority has told, what the others tell is no news. */
const LATEST = 50;

/**
 * Makes one message of those that the nodes send of a release: when a majority has told of it, or a moment after the first one did,
 * because who released may not have held it on every node, and messages get lost. Rather one message too many than one too few.
 */
export class QuorumSubscription implements Subscription {
  readonly ready: Promise<void>;
  private readonly subscriptions: readonly Subscription[];
  /** How many releases each node has told of, and how many of them were passed on, since the last quiet moment. */
  private readonly told: number[];
  private heard = 0;
  private lateUntil = 0;
  private timer: Timer | undefined;

  constructor(
    private readonly nodes: QuorumNodes,
    key: string,
    type: LockType,
    clientId: string,
    private readonly listener: (wake: Wake) => void,
  ) {
    this.told = nodes.all.map(() => 0);
    this.subscriptions = nodes.all.map(({ backend }, number) =>
      backend.subscribe(key, type, clientId, (wake) => this.hear(number, wake)),
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

  private hear(node: number, wake: Wake): void {
    if (wake.kind === 'resync') {
      this.align(0);
      return this.listener(wake);
    }
    const { majority, runtime } = this.nodes;
    const now = runtime.monotonic();
    if (this.timer === undefined && now > this.lateUntil) this.align(0);
    this.told[node]++;
    if (this.pass(largest(majority, this.told))) this.lateUntil = now + LATEST;
    if (largest(1, this.told) > this.heard) this.timer ??= runtime.timer(this.pause(), () => this.passAll());
  }

  /** What only a few have told of. What the others still tell of it is taken for news. */
  private passAll(): void {
    const all = largest(1, this.told);
    this.pass(all);
    this.align(all);
  }

  /** @returns whether there was news */
  private pass(told: number): boolean {
    const news = told > this.heard;
    while (this.heard < told) {
      this.heard++;
      this.listener({ kind: 'message' });
    }
    return news;
  }

  private align(told: number): void {
    this.told.fill(told);
    this.heard = told;
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
