/** Blocks the event loop of this process for this many milliseconds. */
export function blockEventLoop(time: number): void {
  const end = performance.now() + time;
  while (performance.now() < end);
}
