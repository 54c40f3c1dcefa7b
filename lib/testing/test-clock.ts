import * as timers from 'node:timers';
import { printsAs } from '../backends/prints-as.js';
import { LONGEST_TIMER, type Runtime, type Timer } from '../backends/runtime.js';
import { nodeRuntime } from '../engine/node-runtime.js';
import { type Duration, toMilliseconds } from '../engine/terms/duration.js';

/** Kept here, because node:test replaces the function in `node:timers` as well. */
const realSetImmediate = timers.setImmediate;

/** This many turns of the event loop are enough for all work in memory that a timer has started. */
const TURNS = 5;

/**
 * The clock of the locks in a test. It follows real time or fake timers, and can be advanced.
 * @publicApi
 */
export interface TestClock {
  /**
   * Moves the clock forward, and runs everything that falls due: renewals, and the ends of leases and waits.
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
  disarm(): void;
}

/** How much too early a fake timer may fire. */
const ROUNDING = 1;

/** A runtime whose time is real time, or the time of fake timers, plus an offset. */
export class TestRuntime implements Runtime, TestClock {
  readonly random = nodeRuntime.random;
  readonly uuid = nodeRuntime.uuid;
  readonly detached = nodeRuntime.detached;
  private readonly events = new Set<Event>();
  private source = timeSource();
  private offset = 0;
  private last = 0;
  private readonly start = Date.now() - this.monotonic();

  monotonic(): number {
    const source = timeSource();
    const now = source.call(performance);
    if (source !== this.source) {
      // Fake timers were installed or removed: time continues from where it was.
      this.source = source;
      this.offset = this.last - now;
      for (const event of this.events) this.arm(event);
    }
    this.last = Math.max(this.last, now + this.offset);
    return this.last;
  }

  wall(): number {
    return Math.floor(this.start + this.monotonic());
  }

  timer(delay: number, callback: () => void, keepAlive?: 'keep-alive'): Timer {
    const event: Event = { due: this.monotonic() + Math.max(delay, 0), callback, keepAlive, disarm() {} };
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

  /**
   * Sets a timer with the `setTimeout` that is installed now, real or fake. It must be cleared with the matching
   * `clearTimeout`.
   */
  private arm(event: Event): void {
    event.disarm();
    const { setTimeout, clearTimeout } = globalThis;
    const delay = Math.min(Math.max(Math.ceil(event.due - this.monotonic()), 0), LONGEST_TIMER);
    const timer = nodeRuntime.detached(() => setTimeout(() => this.wake(event), delay));
    if (event.keepAlive === undefined) timer.unref();
    event.disarm = () => clearTimeout(timer);
  }

  /** A timer that was set before fake timers were installed may fire too early. */
  private wake(event: Event): void {
    if (!this.events.has(event)) return;
    if (event.due - this.monotonic() < ROUNDING) this.fire(event);
    else this.arm(event);
  }

  private fire(event: Event): void {
    this.remove(event);
    nodeRuntime.detached(event.callback);
  }

  private remove(event: Event): void {
    event.disarm();
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

/** Lets pending promises and turns of the event loop settle. Only real time passes meanwhile. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise<void>((resolve) => void realSetImmediate(resolve));
}

/** The functions at the time when this file is loaded. */
const { setTimeout: loadedSetTimeout, Date: LoadedDate } = globalThis;
const loadedNow = performance.now;

/** The function that returns the time. Fake timers replace it, and restore it when they are removed. */
function timeSource(): () => number {
  const isMonotonicFaked = performance.now !== loadedNow;
  const areOthersFaked = globalThis.setTimeout !== loadedSetTimeout && globalThis.Date !== LoadedDate;
  // Vitest 2 replaces timers and dates, but not `performance`.
  return !isMonotonicFaked && areOthersFaked ? Date.now : performance.now;
}

printsAs(TestRuntime, () => ({}));
