import { readFileSync } from 'node:fs';

/**
 * Watches how much of this machine's CPU time its host gives to other machines: what is measured meanwhile says less.
 *
 * @returns a function that gives the share since the start; NaN where the system does not tell (it is Linux that does)
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
    // user, nice, system, idle, iowait, irq, softirq, steal; what follows is part of user and nice
    const counts = total.split(/\s+/).slice(1, 9).map(Number);
    return { stolen: counts[7], all: counts.reduce((sum, count) => sum + count, 0) };
  } catch {
    return { stolen: Number.NaN, all: Number.NaN };
  }
}
