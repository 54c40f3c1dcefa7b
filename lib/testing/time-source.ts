/** As they are while this file is loaded. */
const { setTimeout: loadedSetTimeout, Date: LoadedDate } = globalThis;
const loadedNow = performance.now;

/** A function that tells the time. It is another one after fake timers were installed or removed. */
export function timeSource(): () => number {
  const isMonotonicFaked = performance.now !== loadedNow;
  const areOthersFaked = globalThis.setTimeout !== loadedSetTimeout && globalThis.Date !== LoadedDate;
  // Vitest 2 replaces timers and dates, but not `performance`.
  return !isMonotonicFaked && areOthersFaked ? Date.now : performance.now;
}
