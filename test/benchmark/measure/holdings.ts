/**
 * When one process held the lock: alternating starts and ends, in ms of the shared clock, in the order of the starts.
 */
export type Holdings = Float64Array;

/** How often the lock was acquired while somebody else still held it. */
export function countOverlaps(processes: readonly Holdings[]): number {
  let overlaps = 0;
  let heldUntil = Number.NEGATIVE_INFINITY;
  for (const [start, end] of inOrder(processes)) {
    if (start < heldUntil) overlaps++;
    heldUntil = Math.max(heldUntil, end);
  }
  return overlaps;
}

/** Sorts holdings by their start. */
export function sorted(holdings: Holdings): Holdings {
  const pairs = Array.from({ length: holdings.length / 2 }, (_, i) => [holdings[2 * i], holdings[2 * i + 1]]);
  return Float64Array.from(pairs.sort(([a], [b]) => a - b).flat());
}

/** Starts of each process between `from` and `until`. */
export function countWithin(processes: readonly Holdings[], from: number, until: number): number[] {
  return processes.map((holdings) => holdings.filter((at, i) => i % 2 === 0 && at >= from && at < until).length);
}

/** The longest time between `from` and `until` for which a process held nothing while others were served, in ms. */
export function longestWait(processes: readonly Holdings[], from: number, until: number): number {
  const waits = processes.map((holdings, process) => {
    const others = processes.filter((_, other) => other !== process);
    let longest = 0;
    let free = from;
    for (let i = 0; i <= holdings.length; i += 2) {
      const start = i < holdings.length ? holdings[i] : until;
      const wait = Math.min(start, until) - free;
      if (wait > longest && servesWithin(others, free, free + wait)) longest = wait;
      if (start >= until) break;
      free = Math.max(from, holdings[i + 1]);
    }
    return longest;
  });
  return Math.max(...waits);
}

function servesWithin(processes: readonly Holdings[], from: number, until: number): boolean {
  return processes.some((holdings) => {
    const at = firstStartAfter(holdings, from);
    return at < holdings.length && holdings[at] < until;
  });
}

function firstStartAfter(holdings: Holdings, time: number): number {
  let low = 0;
  let high = holdings.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holdings[2 * middle] < time) low = middle + 1;
    else high = middle;
  }
  return 2 * low;
}

/** All holdings, sorted by their start. */
function* inOrder(processes: readonly Holdings[]): Generator<readonly [start: number, end: number]> {
  const next = processes.map(() => 0);
  for (;;) {
    let first = -1;
    for (const [i, holdings] of processes.entries()) {
      const earlier = first < 0 || holdings[next[i]] < processes[first][next[first]];
      if (next[i] < holdings.length && earlier) first = i;
    }
    if (first < 0) return;
    yield [processes[first][next[first]], processes[first][next[first] + 1]];
    next[first] += 2;
  }
}
