import type { Runtime, Timer } from '../../backends/runtime.js';
import type { HeldLock } from './held-lock.js';

/** Timers of single locks: of those whose leases are fixed or extended, and so do not follow the order of the others. */
export class Alarms {
  private readonly timers = new Map<HeldLock, Timer>();

  /**
   * @param delay milliseconds until the alarm of this lock is due
   * @param ring called when it is due; the lock has no alarm then
   */
  constructor(
    private readonly runtime: Runtime,
    private readonly delay: (held: HeldLock) => number,
    private readonly ring: (held: HeldLock) => void,
  ) {}

  get isEmpty(): boolean {
    return this.timers.size === 0;
  }

  /** The locks that have one. Any may lose it meanwhile. */
  get locks(): Iterable<HeldLock> {
    return this.timers.keys();
  }

  has(held: HeldLock): boolean {
    return this.timers.has(held);
  }

  set(held: HeldLock): void {
    const timer = this.runtime.timer(this.delay(held), () => {
      this.timers.delete(held);
      this.ring(held);
    });
    this.timers.set(held, timer);
  }

  clear(held: HeldLock): void {
    if (this.timers.size === 0) return;
    this.timers.get(held)?.cancel();
    this.timers.delete(held);
  }

  /** Sets each of them again: timers stand still while the machine is suspended, and leases do not. */
  reset(): void {
    for (const held of [...this.timers.keys()]) {
      this.clear(held);
      this.set(held);
    }
  }

  close(): void {
    for (const timer of this.timers.values()) timer.cancel();
    this.timers.clear();
  }
}
