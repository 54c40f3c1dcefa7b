import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Milliseconds between two samples. Each costs about 10 µs of CPU time. */
const RESOLUTION = 1;

/**
 * Watches the event loop.
 *
 * @returns a function that stops it and gives the p99 of the loop's delay in ms
 */
export function watchEventLoop(): () => number {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION });
  histogram.enable();
  return () => {
    histogram.disable();
    // A sample is the time between two ticks of a timer. The interval itself is subtracted, because it is no delay.
    return histogram.count === 0 ? 0 : Math.max(0, histogram.percentile(99) / 1e6 - RESOLUTION);
  };
}
