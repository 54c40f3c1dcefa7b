import type { Runtime, Timer } from '../backends/runtime.js';
import { nodeRuntime } from '../engine/node-runtime.js';
import { type Duration, toMilliseconds } from '../engine/terms/duration.js';

/** Not the one that a test framework may put in its place. */
const realSetImmediate = setImmediate;

/** How many turns of the event loop are enough for what a timer started in memory. */
const TURNS = 5;

/** The clock of the locks of a test. It runs as real time does (or as fake timers do), and can be advanced. @publicApi */
export interface TestClock {
  /**
   * Lets the time pass at once, with all that falls due meanwhile: renewals, the ends of leases and of waits.
   *
   * @param time milliseconds or a text such as `'31s'`
   * @throws LockConfigurationError when `time` is not a duration
   */
  advance(time: Duration): Promise<void>;
}

interface Event {
  due: number;
  readonly callback: () => void;
  readonly keepAlive: 'keep-alive' | undefined;
  timer: Timer | undefined;
}

/** A runtime whose time is the real one, or that of fake timers, and an offset. */
export class TestRuntime implements Runtime, TestClock {
  readonly random = nodeRuntime.random;
  readonly uuid = nodeRuntime.uuid;
  readonly detached = nodeRuntime.detached;
  private readonly events = new Set<Event>();
  private readonly start = Date.now() - performance.now();
  private source = performance.now;
  private offset = 0;
  private last = 0;

  monotonic(): number {
    const now = performance.now();
    if (performance.now !== this.source) {
      // Fake timers were installed or removed: time goes on from where it was.
      this.source = performance.now;
      this.offset = this.last - now;
    }
    this.last = Math.max(this.last, now + this.offset);
    return this.last;
  }

  wall(): number {
    return Math.floor(this.start + this.monotonic());
  }

  timer(delay: number, callback: () => void, keepAlive?: 'keep-alive'): Timer {
    const event: Event = { due: this.monotonic() + Math.max(delay, 0), callback, keepAlive, timer: undefined };
    this.events.add(event);
    this.arm(event);
    return { cancel: () => this.remove(event) };
  }

  nextTurn(callback: () => void): void {
    nodeRuntime.detached(() => void realSetImmediate(callback));
  }

  async advance(time: Duration): Promise<void> {
    const end = this.monotonic() + toMilliseconds(time, 'clock.advance()');
    await settle();
    for (let event = this.first(end); event !== undefined; event = this.first(end)) {
      this.passTo(event.due);
      this.fire(event);
      await settle();
    }
    this.passTo(end);
    for (const event of this.events) this.arm(event);
  }

  private passTo(time: number): void {
    this.offset += Math.max(0, time - this.monotonic());
  }

  private arm(event: Event): void {
    event.timer?.cancel();
    event.timer = nodeRuntime.timer(event.due - this.monotonic(), () => this.fire(event), event.keepAlive);
  }

  private fire(event: Event): void {
    this.remove(event);
    nodeRuntime.detached(event.callback);
  }

  private remove(event: Event): void {
    event.timer?.cancel();
    this.events.delete(event);
  }

  private first(end: number): Event | undefined {
    let first: Event | undefined;
    for (const event of this.events) {
      if (event.due <= end && (first === undefined || event.due < first.due)) first = event;
    }
    return first;
  }
}

/** Lets promises and turns that are under way settle. Time stands still, except for the real one. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise<void>((resolve) => void realSetImmediate(resolve));
}
