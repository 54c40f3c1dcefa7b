/**
 * Runs schedules of the simulation. Each is determined by its number, the seed. A seed that fails is printed, and can
 * be run again with
 *
 *     npm run suite -- chaos --seed 123        or: CHAOS_SEED=123 npm run suite -- chaos
 *
 * which prints everything that happened in it. `--long` runs more schedules.
 */

import { show } from '../checker/timeline.js';
import type { HistoryRecord } from '../history.js';
import { type KindName, kindOf, LATER, LATEST } from './kinds.js';
import { type Outcome, Simulation } from './simulation.js';

/** The number of schedules of all kinds together. */
const SCHEDULES = 12_750 * Number(process.env.CHAOS_LONG ?? 1);
const REPLAYED = process.env.CHAOS_SEED === undefined ? undefined : Number(process.env.CHAOS_SEED);
/** The number of schedules of kinds that were added later. */
const LATER_SCHEDULES = 4_800 * Number(process.env.CHAOS_LONG ?? 1);
const LATEST_SCHEDULES = 200 * Number(process.env.CHAOS_LONG ?? 1);
const SEEDS = [
  ...Array.from({ length: SCHEDULES }, (_, index) => index + 1),
  ...Array.from({ length: LATER_SCHEDULES }, (_, index) => LATER + index + 1),
  ...Array.from({ length: LATEST_SCHEDULES }, (_, index) => LATEST + index + 1),
];
/** The limit for a run that hangs. Normally, a run takes far less. */
const LONGEST_RUN = 1_800_000;
const MOST_FAILURES = 3;

/** How often each kind of record occurred in all schedules of a kind. */
export type Tally = Partial<Record<HistoryRecord['kind'], number>>;

/**
 * Runs the schedules of one kind. All of them must be sound.
 *
 * @param hits what must have happened at least once in them, because they would otherwise prove little
 * @param never what must not have happened in them
 */
export function itHolds(
  promise: string,
  kind: KindName,
  hits: readonly HistoryRecord['kind'][],
  never: readonly HistoryRecord['kind'][] = [],
): void {
  if (REPLAYED !== undefined) {
    const test = kindOf(REPLAYED) === kind ? it : it.skip;
    test(`${promise} (seed ${REPLAYED})`, () => replay(REPLAYED), LONGEST_RUN);
    return;
  }
  const seeds = SEEDS.filter((seed) => kindOf(seed) === kind);
  it(
    `${promise} (${seeds.length} of ${SEEDS.length} schedules)`,
    async () => {
      const tally: Tally = {};
      const failures: string[] = [];
      for (const seed of seeds) {
        if (failures.length === MOST_FAILURES) break;
        const outcome = await simulate(seed);
        if (!outcome.verdict.sound) failures.push(describe(outcome));
        for (const record of outcome.history.records) tally[record.kind] = (tally[record.kind] ?? 0) + 1;
      }
      if (failures.length > 0) throw new Error(failures.join('\n\n'));
      for (const hit of hits) expect({ [hit]: tally[hit] ?? 0 }).not.toEqual({ [hit]: 0 });
      for (const one of never) expect({ [one]: tally[one] ?? 0 }).toEqual({ [one]: 0 });
    },
    LONGEST_RUN,
  );
}

/** Runs one schedule. An unhandled rejection also counts as a failure. */
export async function simulate(seed: number, options?: ConstructorParameters<typeof Simulation>[1]): Promise<Outcome> {
  const uncaught: unknown[] = [];
  const note = (reason: unknown) => void uncaught.push(reason);
  process.on('unhandledRejection', note);
  try {
    const outcome = await new Simulation(seed, options).run();
    if (uncaught.length === 0) return outcome;
    const explanation = `unhandled rejection: ${String((uncaught[0] as Error)?.stack ?? uncaught[0])}`;
    return { ...outcome, verdict: { ...outcome.verdict, sound: false, explanation } };
  } finally {
    process.off('unhandledRejection', note);
  }
}

async function replay(seed: number): Promise<void> {
  const outcome = await simulate(seed);
  console.log(outcome.history.records.map((record) => show(record)).join('\n'));
  if (!outcome.verdict.sound) throw new Error(describe(outcome));
}

function describe({ seed, kind, verdict }: Outcome): string {
  return `seed ${seed} (${kind}); run it again by: npm run suite -- chaos --seed ${seed}\n${verdict.explanation}`;
}
