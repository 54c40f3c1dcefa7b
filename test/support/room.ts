import { setImmediate } from 'node:timers/promises';

/** Counts permits in use, and records the maximum that was in use at once. */
export class Room {
  served = 0;
  most = 0;
  private inside = 0;

  async visit(permits = 1): Promise<void> {
    this.inside += permits;
    this.most = Math.max(this.most, this.inside);
    await setImmediate();
    this.inside -= permits;
    this.served++;
  }
}
