import { monitorEventLoopDelay } from 'node:perf_hooks';

/**
 * Watches the event loop.
 *
 * @param resolution ms between two looks; each costs some 10 µs of CPU time
 * @returns a function that stops it and gives the p99 of the loop's delay in ms
 */
export function watchEventLoop(resolution = 1): () => number {
  const histogram = monitorEventLoopDelay({ resolution });
  histogram.enable();
  return () => {
    histogram.disable();
    // A sample is the time between two ticks of a timer: what it was set to is no delay.
    return histogram.count === 0 ? 0 : Math.max(0, histogram.percentile(99) / 1e6 - resolution);
  };
}
