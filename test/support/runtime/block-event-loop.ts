/** Blocks the event loop of this process for this many milliseconds, without keeping a core busy. */
export function blockEventLoop(time: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, time);
}
