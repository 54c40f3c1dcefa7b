/**
 * Milliseconds on a monotonic clock that all processes of this machine share (process.hrtime is system-wide on Linux),
 * by the cheaper call. The largest of many samples is the one that was least interrupted.
 */
export function sharedNow(): number {
  return offset + performance.now();
}

const offset = Math.max(
  ...Array.from({ length: 200 }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()),
);
