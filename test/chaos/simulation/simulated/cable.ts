import type { LinkTrace } from './link-trace.js';
import type { Network } from './network-conditions.js';
import type { SimulatedConnection } from './simulated-connection.js';
import type { SimulatedProcess } from './simulated-process.js';
import type { VirtualTime } from './virtual-time.js';

/** What connects one process to the network, with all its connections. */
export class Cable {
  readonly connections = new Set<SimulatedConnection>();
  private cutUntil = 0;

  constructor(
    readonly time: VirtualTime,
    readonly network: Network,
    readonly process: SimulatedProcess,
    /** In milliseconds. */
    readonly commandTimeout: number,
    readonly trace?: LinkTrace,
  ) {}

  /** Until when everything is held back. */
  get heldUntil(): number {
    return this.cutUntil;
  }

  /**
   * Cuts it for this time.
   *
   * @param keeps whether what was sent meanwhile arrives afterwards. Otherwise, all connections are forgotten on the
   *   way, and nobody is told
   */
  cut(duration: number, keeps: boolean): void {
    this.cutUntil = Math.max(this.cutUntil, this.time.now + duration);
    if (keeps) return;
    const forgotten = [...this.connections];
    for (const connection of forgotten) connection.silence();
    this.time.at(this.cutUntil, () => {
      for (const connection of forgotten) connection.reset();
    });
  }

  /** Resets all connections. What is on its way may still arrive. */
  disconnect(): void {
    for (const connection of [...this.connections]) connection.reset();
  }

  /** Resets connections on which nothing arrives. */
  resetSilent(): void {
    for (const connection of [...this.connections]) if (connection.isHalfOpen) connection.reset();
  }

  /** The process has died. What it has sent still arrives, and the servers notice the end sooner or later. */
  abandon(): void {
    this.time.after(this.network.within(2_000), () => {
      for (const connection of [...this.connections]) connection.destroy(new Error('the process has died'));
    });
  }
}
