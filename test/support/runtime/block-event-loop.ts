/** Keeps this process from everything else for so many milliseconds. */
export function blockEventLoop(time: number): void {
  const end = performance.now() + time;
  while (performance.now() < end);
}
