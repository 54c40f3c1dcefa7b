import { toClientId } from '../../../../lib/backends/owner-ids.js';
import type { Runtime, Timer } from '../../../../lib/backends/runtime.js';
import { nodeRuntime } from '../../../../lib/engine/node-runtime.js';
import type { SeededRandom } from '../../../support/seeded-random.js';
import type { VirtualTime } from './virtual-time.js';

/** A third of the longest lease that is renewed, in milliseconds. */
const LONGEST_BEAT = 334;

const TODAY = Date.parse('2025-01-01T00:00:00Z');

/**
 * A process as its code sees it: with its own clocks, an event loop that can be blocked, a machine that can be
 * suspended, and an end without warning.
 */
export class SimulatedProcess implements Runtime {
  dead = false;
  /** Called with the time until which the process is paused. */
  onStall: (until: number) => void = () => {};
  private blockedSince = 0;
  private awakeAt = 0;
  private suspended = 0;
  /** The timers that were neither cancelled nor called. */
  private readonly live = new Set<object>();
  private readonly unobservedTimers = new Set<object>();
  private readonly deathbed: (() => void)[] = [];
  private readonly threads: SimulatedProcess[] = [];
  private ids = 0;

  /**
   * @param rate how fast its clocks run: with 1.002, they gain 2 ms a second
   * @param ahead by how many milliseconds its wall clock is ahead
   */
  constructor(
    readonly name: string,
    private readonly time: VirtualTime,
    private readonly chance: SeededRandom,
    private readonly rate: number,
    private ahead: number,
  ) {}

  monotonic = (): number => 1_000 + (this.time.now - this.suspended) * this.rate;

  wall = (): number => TODAY + this.time.now * this.rate + this.ahead;

  detached = nodeRuntime.detached;

  random = (): number => this.chance.next();

  uuid(): string {
    return `${this.name.replace('p', 'a').padStart(8, '0')}-0000-4000-8000-${String(++this.ids).padStart(12, '0')}`;
  }

  /** Like a timer of Node.js: whole milliseconds, at least one, and often late. */
  timer(delay: number, callback: () => void): Timer {
    return this.start(this.live, delay, callback);
  }

  /** The same for code whose timers run as long as the process. */
  readonly unobserved: Runtime = {
    monotonic: () => this.monotonic(),
    wall: () => this.wall(),
    detached: nodeRuntime.detached,
    random: () => this.random(),
    uuid: () => this.uuid(),
    timer: (delay, callback) => this.start(this.unobservedTimers, delay, callback),
    nextTurn: (callback) => this.nextTurn(callback),
  };

  private start(live: Set<object>, delay: number, callback: () => void): Timer {
    const timer = {};
    live.add(timer);
    const due = this.monotonic() + Math.max(1, Math.ceil(delay)) + this.lateness();
    const ring = () => {
      if (!live.has(timer)) return;
      // The machine was suspended meanwhile, so its timers were stopped.
      if (this.monotonic() < due - 0.001) return this.at(due, ring);
      live.delete(timer);
      callback();
    };
    this.at(due, ring);
    return { cancel: () => void live.delete(timer) };
  }

  nextTurn(callback: () => void): void {
    this.receive(0, callback);
  }

  /** Timers that were neither cancelled nor called. */
  get timers(): number {
    return this.live.size;
  }

  /** The same, with those of code whose timers run as long as the process. */
  get allTimers(): number {
    return this.live.size + this.unobservedTimers.size;
  }

  /** Calls back in this many milliseconds, or later if the event loop is blocked. */
  receive(delay: number, callback: () => void): void {
    this.time.after(delay, () => this.turn(callback));
  }

  /** Settles when the time has passed on this process's clock. */
  sleep(delay: number): Promise<void> {
    return new Promise((resolve) => void this.timer(delay, resolve));
  }

  /** Blocks the event loop from now on. */
  block(duration: number): void {
    if (this.time.now >= this.awakeAt) this.blockedSince = this.time.now;
    this.awakeAt = Math.max(this.awakeAt, this.time.now + duration);
    this.onStall(this.awakeAt);
  }

  /** For how long its event loop has been blocked, in milliseconds of its clock. */
  get blockedFor(): number {
    return this.time.now < this.awakeAt ? (this.time.now - this.blockedSince) * this.rate : 0;
  }

  /** Suspends its machine: the monotonic clock stops, but the wall clock does not. */
  suspend(duration: number): void {
    if (this.time.now < this.awakeAt) return this.receive(0, () => this.suspend(duration));
    this.suspended += duration;
    this.block(duration);
    for (const thread of this.threads) thread.suspend(duration);
    // Its timers were stopped, too, so it notices the time only at its next heartbeat.
    this.onStall(this.awakeAt + duration + LONGEST_BEAT);
  }

  /**
   * A thread of this process. It has the same clocks, and is suspended and dies with the process, but it has its own
   * event loop.
   */
  thread(): SimulatedProcess {
    const { name, time, chance, rate, ahead } = this;
    const thread = new SimulatedProcess(name, time, chance, rate, ahead);
    this.threads.push(thread);
    return thread;
  }

  /** Its owner ids show that it serves the lines of locks. */
  get clientId(): string {
    return toClientId(`${this.name.replace('p', 'a').padStart(8, '0')}-0000-0000-8000-000000000000`);
  }

  setWallClock(by: number): void {
    this.ahead += by;
    for (const thread of this.threads) thread.setWallClock(by);
  }

  crash(): void {
    this.dead = true;
    this.live.clear();
    this.unobservedTimers.clear();
    for (const callback of this.deathbed) callback();
    for (const thread of this.threads) thread.crash();
  }

  onCrash(callback: () => void): void {
    this.deathbed.push(callback);
  }

  /** How many milliseconds of virtual time pass in one millisecond of this process's clock. */
  get tick(): number {
    return 1 / this.rate;
  }

  private at(due: number, callback: () => void): void {
    this.time.at((due - 1_000) / this.rate + this.suspended, () => this.turn(callback));
  }

  private turn(callback: () => void): void {
    if (this.dead) return;
    if (this.time.now < this.awakeAt) this.time.at(this.awakeAt, () => this.turn(callback));
    else callback();
  }

  /** Node.js may run a timer almost a millisecond early. */
  private lateness(): number {
    return this.chance.chance(0.7) ? 0 : this.chance.between(-0.9, 3);
  }
}
