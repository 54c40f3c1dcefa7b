import { setImmediate as turn } from 'node:timers/promises';

/** How long work may block the event loop before other events get a turn, in milliseconds. */
const SLICE = 8;

/** Divides long work into slices: `if (slices.isOver) await slices.next()` between two pieces of it. */
export class TimeSlices {
  private began = performance.now();

  get isOver(): boolean {
    return performance.now() - this.began >= SLICE;
  }

  async next(): Promise<void> {
    await turn();
    this.began = performance.now();
  }
}
