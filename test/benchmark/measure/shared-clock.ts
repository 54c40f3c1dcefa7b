/**
 * Milliseconds on a monotonic clock that all processes of this machine share. process.hrtime is system-wide on Linux,
 * but performance.now() is cheaper, so the offset between them is measured. The largest of many samples was interrupted
 * least.
 */
export function sharedNow(): number {
  return offset + performance.now();
}

const offset = Math.max(
  ...Array.from({ length: 200 }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()),
);
