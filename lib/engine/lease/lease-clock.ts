import type { Runtime } from '../../backends/runtime.js';

/** A moment on both clocks of this process. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

/** How far the two clocks may part before neither is believed. */
const DIVERGENCE = 1_000;

/**
 * How old a lease is, by this process alone. The monotonic clock stops while a machine is suspended, the wall clock is set
 * forth and back: so age is the larger of both, and where they part by over a second the lease needs to be confirmed.
 */
export class LeaseClock {
  constructor(private readonly runtime: Runtime) {}

  now(): Moment {
    return { monotonic: this.runtime.monotonic(), wall: this.runtime.wall() };
  }

  /** @param now a moment that has just been read: reading the clocks is what costs most here */
  age(since: Moment, now?: Moment): number {
    const { runtime } = this;
    const monotonic = now === undefined ? runtime.monotonic() : now.monotonic;
    const wall = now === undefined ? runtime.wall() : now.wall;
    return Math.max(monotonic - since.monotonic, wall - since.wall);
  }

  diverged(since: Moment): boolean {
    const monotonic = this.runtime.monotonic() - since.monotonic;
    return Math.abs(this.runtime.wall() - since.wall - monotonic) > DIVERGENCE;
  }
}

/** What is left of a lease once the two machines' clock drift is allowed for (Redlock's margin: 1 % and 2 ms). */
export function validity(leaseTime: number): number {
  return leaseTime - leaseTime * 0.01 - 2;
}
