/** `350 ms`, `31 s`, `5 min`, `3 h`, `4 d` */
export function durationText(time: number): string {
  if (time < 1_000) return `${Math.round(time)} ms`;
  const seconds = Math.round(time / 1_000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}

/** The remaining time of a lease. */
export function leaseText(remainingTime: number): string {
  return remainingTime < 0 ? 'no end' : durationText(remainingTime);
}
