import { setImmediate } from 'node:timers/promises';
import { loadServer } from '../../../lib/backends/redis/in-process/memory-store.js';
import type { Runtime, Timer } from '../../../lib/backends/runtime.js';
import { nodeRuntime } from '../../../lib/engine/node-runtime.js';
import { HEARTBEAT } from './counting-runtime.js';

// Otherwise the first request to a backend in memory would wait for its server, in real time.
await loadServer();

/** What is left of a lease may be a rounding error, which would not move the time on. Real timers wait for 1 ms then. */
const LEAST_DELAY = 1e-6;

interface Event {
  readonly due: number;
  /** If two timers are due at the same time, the earlier one fires first. */
  readonly order: number;
  readonly keepAlive: boolean;
  readonly callback: () => void;
}

/**
 * A runtime whose time advances only when a test advances it, so a test waits for a lease of 30 s in a millisecond. Its
 * random numbers are the same in every run. Between two events, all promises settle, as between two turns of a real
 * event loop.
 *
 *     const runtime = new VirtualRuntime();
 *     const lease = await runtime.until(locks.acquire('order'));
 *     await runtime.advance(30_000);
 */
export class VirtualRuntime implements Runtime {
  private now = 0;
  private today = Date.parse('2025-01-01T00:00:00Z');
  private readonly events = new Set<Event>();
  private turns: (() => void)[] = [];
  private order = 0;
  private ids = 0;

  constructor(private seed = 1) {}

  monotonic = (): number => this.now;

  wall = (): number => this.today;

  detached = nodeRuntime.detached;

  timer(delay: number, callback: () => void, keepAlive?: 'keep-alive'): Timer {
    const event = {
      due: this.now + (delay > 0 ? Math.max(delay, LEAST_DELAY) : 0),
      order: ++this.order,
      keepAlive: keepAlive === 'keep-alive',
      callback,
    };
    this.events.add(event);
    return { cancel: () => void this.events.delete(event) };
  }

  /** A turn comes when the test settles or advances this runtime, or waits for something else. */
  nextTurn(callback: () => void): void {
    let isDue = true;
    const turn = () => {
      if (isDue) callback();
      isDue = false;
    };
    this.turns.push(turn);
    void setImmediate().then(turn);
  }

  /** Mulberry32. */
  random(): number {
    this.seed = (this.seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.seed ^ (this.seed >>> 15), 1 | this.seed);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  uuid(): string {
    // Both ends differ: the beginning of a client's id stands in the ids of its permits.
    const id = String(++this.ids);
    return `${id.padStart(8, '0')}-0000-4000-8000-${id.padStart(12, '0')}`;
  }

  /** Timers that were neither cancelled nor fired. */
  get timers(): number {
    return this.events.size;
  }

  /** Pending timers that would keep a process alive. */
  get keepAliveTimers(): number {
    return [...this.events].filter(({ keepAlive }) => keepAlive).length;
  }

  get heartbeats(): number {
    return [...this.events].filter(({ keepAlive, due }) => !keepAlive && due <= this.now + HEARTBEAT).length;
  }

  /** Lets all promises settle, and runs all scheduled turns. The time does not change. */
  async settle(): Promise<void> {
    await setImmediate();
    while (this.turns.length > 0) {
      const due = this.turns;
      this.turns = [];
      for (const callback of due) callback();
      await setImmediate();
    }
  }

  /** Lets this many milliseconds pass, and fires every timer that becomes due. */
  async advance(time: number): Promise<void> {
    const end = this.now + time;
    await this.settle();
    for (let event = this.first(end); event !== undefined; event = this.first(end)) {
      this.events.delete(event);
      this.pass(Math.max(0, event.due - this.now));
      event.callback();
      await this.settle();
    }
    this.pass(end - this.now);
  }

  /**
   * Advances the time, from event to event, until `promise` is settled, and returns its result. Rejects after `most`
   * milliseconds. The default is shorter than a lease of 30 s, so that the end of a lease cannot hide a lost wake-up.
   */
  async until<T>(promise: Promise<T>, most = 25_000): Promise<T> {
    let settled = false;
    const done = () => {
      settled = true;
    };
    promise.then(done, done);
    const end = this.now + most;
    for (await this.settle(); !settled; ) {
      const event = this.first(end);
      if (event === undefined) throw new Error(`not settled within ${most} ms of virtual time`);
      await this.advance(Math.max(0, event.due - this.now));
    }
    return promise;
  }

  /** Blocks the event loop. Time passes, and timers that become due fire afterwards. */
  block(time: number): void {
    this.pass(time);
  }

  /** Suspends the machine. Only the wall clock advances. */
  suspend(time: number): void {
    this.today += time;
  }

  /** Sets the wall clock forward or back. */
  setWallClock(by: number): void {
    this.today += by;
  }

  private pass(time: number): void {
    this.now += time;
    this.today += time;
  }

  private first(end: number): Event | undefined {
    let first: Event | undefined;
    for (const event of this.events) {
      if (event.due > end) continue;
      if (first === undefined || event.due < first.due || (event.due === first.due && event.order < first.order))
        first = event;
    }
    return first;
  }
}
