import type { Network } from './network-conditions.js';
import type { VirtualTime } from './virtual-time.js';

/** One direction of a connection. Everything arrives in the order in which it was sent, or not at all. */
export class Stream {
  /** From now on, nothing arrives. */
  isDead = false;
  private lastArrival = 0;

  /** @param heldUntil until when the network, or the receiver, holds back what has arrived */
  constructor(
    private readonly time: VirtualTime,
    private readonly network: Network,
    private readonly heldUntil: () => number,
  ) {}

  send(arrived: () => void, lost: () => void = () => {}): void {
    this.lastArrival = Math.max(this.time.now + this.network.delay(), this.lastArrival);
    this.time.at(this.lastArrival, () => this.arrive(arrived, lost));
  }

  /** Delays everything that follows. */
  stall(duration: number): void {
    this.lastArrival = Math.max(this.lastArrival, this.time.now) + duration;
  }

  private arrive(arrived: () => void, lost: () => void): void {
    if (this.isDead) return lost();
    const heldUntil = this.heldUntil();
    if (heldUntil > this.time.now) this.time.at(heldUntil, () => this.arrive(arrived, lost));
    else arrived();
  }
}
