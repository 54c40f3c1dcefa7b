import { type Flatness, flatness, type Series } from './flatness.js';
import { PROCESSES } from './names.js';
import type { Outcome, ProcessSample } from './soak-run.js';

/** After this time, memory and handles are flat within 5 %, in milliseconds. */
const WARM = 10 * 60_000;
const GROWTH = 0.05;
/** A run that is too short for that never leaves the time in which code is compiled and caches fill. */
const SHORT = 2 * WARM;
const SHORT_GROWTH = 0.2;
const MEGABYTE = 2 ** 20;

export interface SoakVerdict {
  readonly flat: readonly Flatness[];
  /** How many series were too short to be judged. */
  readonly short: number;
  readonly growth: number;
  /** Why the run is not sound; empty if it is. */
  readonly complaints: readonly string[];
}

/** @param time how long the run was to be, in milliseconds */
export function verdictOf({ samples, violations, counts }: Outcome, time: number): SoakVerdict {
  const warm = time < SHORT ? 0 : WARM;
  const growth = time < SHORT ? SHORT_GROWTH : GROWTH;
  const ofProcess = grouped(
    samples.filter(({ resting }) => resting),
    ({ process }) => process,
  );
  const complaints = [...violations];
  const flat: Flatness[] = [];
  let short = 0;
  for (const [process, own] of ofProcess)
    for (const [series, atLeast] of seriesOf(process, own)) {
      const found = flatness(series, { warm, growth, atLeast });
      if (found === undefined) short++;
      else flat.push(found);
      if (found !== undefined && !found.isFlat) complaints.push(`not flat: ${described(found)}`);
    }
  if (flat.length === 0) complaints.push('the run was too short: nothing could be compared');
  const callsPerChapter = (counts.served + counts.flights) / Math.max(1, counts.chapters);
  if (callsPerChapter < PROCESSES * 5)
    complaints.push(`only ${callsPerChapter.toFixed(0)} calls in a chapter prove little`);
  return { flat, short, growth, complaints };
}

/** What is judged of a process, and by how much it may grow in any case. */
function seriesOf(process: string, samples: readonly ProcessSample[]): [Series, number][] {
  const points = (value: (sample: ProcessSample) => number) => samples.map((each) => [each.at, value(each)] as const);
  return [
    [{ what: `heap of ${process}`, unit: 'MB', points: points(({ heap }) => heap / MEGABYTE) }, 0],
    [{ what: `external memory of ${process}`, unit: 'MB', points: points(({ external }) => external / MEGABYTE) }, 0.5],
    [{ what: `handles of ${process}`, unit: '', points: points(({ handles }) => handles) }, 1],
    [{ what: `timers of ${process}`, unit: '', points: points(({ timers }) => timers) }, 12],
  ];
}

export function described({ what, unit, first, last }: Flatness): string {
  const change = first === 0 ? '' : ` (${last >= first ? '+' : ''}${((last / first - 1) * 100).toFixed(1)} %)`;
  const number = (value: number) => (unit === '' ? String(value) : value.toFixed(2));
  return `${what}: ${number(first)} → ${number(last)}${unit && ` ${unit}`}${change}`;
}

/** As `Map.groupBy`, which Node.js 20 does not have. */
export function grouped<T>(values: readonly T[], keyOf: (value: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const value of values) {
    const key = keyOf(value);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [value]);
    else group.push(value);
  }
  return groups;
}
