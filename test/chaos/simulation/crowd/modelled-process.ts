import type { Runtime, Timer } from '../../../../lib/backends/runtime.js';
import { nodeRuntime } from '../../../../lib/engine/node-runtime.js';
import type { SeededRandom } from '../../../support/seeded-random.js';
import type { VirtualTime } from '../simulated/virtual-time.js';

const TODAY = Date.parse('2025-01-01T00:00:00Z');

/** The event loop of a Node.js process. It does one thing after another, and each of them takes time. */
export class EventLoop {
  /** Milliseconds of work so far. */
  worked = 0;
  private busyUntil = 0;

  constructor(private readonly time: VirtualTime) {}

  run(cost: number, callback: () => void): void {
    this.worked += cost;
    this.busyUntil = Math.max(this.time.now, this.busyUntil) + cost;
    this.time.at(this.busyUntil, callback);
  }
}

interface Ringing extends Timer {
  readonly due: number;
  readonly callback: () => void;
}

/**
 * The process of one service, as the engine sees it. In a fleet, each process has its own event loop. If many services
 * are in one process, as in the run that calibrates the model, they share it.
 */
export class ModelledProcess implements Runtime {
  private readonly timers = new Set<Ringing>();
  /**
   * The earliest event of virtual time that will check the timers. Each message sets a timer again, usually to a later
   * time.
   */
  private alarm = Number.POSITIVE_INFINITY;

  constructor(
    private readonly name: number,
    private readonly time: VirtualTime,
    readonly loop: EventLoop,
    private readonly chance: SeededRandom,
  ) {}

  monotonic = (): number => 1_000 + this.time.now;

  wall = (): number => TODAY + this.time.now;

  random = (): number => this.chance.next();

  detached = nodeRuntime.detached;

  uuid(): string {
    return `${String(this.name).padStart(8, '0')}-0000-4000-8000-${String(this.name).padStart(12, '0')}`;
  }

  /** Like a timer of Node.js: whole milliseconds, at least one. */
  timer(delay: number, callback: () => void): Timer {
    const due = this.time.now + Math.max(1, Math.ceil(delay));
    const timer = { due, callback, cancel: () => void this.timers.delete(timer) };
    this.timers.add(timer);
    this.setAlarm(due);
    return timer;
  }

  nextTurn(callback: () => void): void {
    this.loop.run(0, callback);
  }

  sleep(delay: number): Promise<void> {
    return new Promise((resolve) => void this.timer(delay, resolve));
  }

  private setAlarm(due: number): void {
    if (due >= this.alarm) return;
    this.alarm = due;
    this.time.at(due, () => {
      if (this.alarm === due) this.ring();
    });
  }

  private ring(): void {
    this.alarm = Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const timer of this.timers) {
      if (timer.due > this.time.now) next = Math.min(next, timer.due);
      else this.loop.run(0, () => this.timers.delete(timer) && timer.callback());
    }
    this.setAlarm(next);
  }
}
