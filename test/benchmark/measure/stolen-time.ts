import { readFileSync } from 'node:fs';

/**
 * Observes how much of this machine's CPU time its host gives to other machines, which makes measurements less
 * reliable.
 *
 * @returns a function that returns the share since the start; NaN if the system does not report it (Linux does)
 */
export function watchStolenTime(): () => number {
  const before = ticks();
  return () => {
    const now = ticks();
    return (now.stolen - before.stolen) / (now.all - before.all);
  };
}

/** @see https://man7.org/linux/man-pages/man5/proc_stat.5.html */
function ticks(): { readonly stolen: number; readonly all: number } {
  try {
    const [total] = readFileSync('/proc/stat', 'utf8').split('\n');
    // user, nice, system, idle, iowait, irq, softirq, steal; the fields after these are part of user and nice
    const counts = total.split(/\s+/).slice(1, 9).map(Number);
    return { stolen: counts[7], all: counts.reduce((sum, count) => sum + count, 0) };
  } catch {
    return { stolen: Number.NaN, all: Number.NaN };
  }
}
