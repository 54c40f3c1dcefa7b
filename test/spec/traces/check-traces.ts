/**
 * Traces of the simulation, checked by TLC against the specifications: all of them must be accepted, and of damaged ones
 * 95 % refused. Called by .ci/spec.mjs. `--promises` leaves out damaged ones, and `--only TraceQuorum` all other modules.
 * `--from 1000 --each 50` takes 50 traces of each kind of schedule, from the thousandth seed on.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SeededRandom } from '../../support/seeded-random.js';
import { type DamagedTrace, damaged, isPossible } from './damage.js';
import { FAMILIES, type Family } from './families.js';
import type { Step } from './steps.js';
import { type AnyTrace, stepText, traceDataModule } from './tla-module.js';
import { watchGrants } from './watch-grants.js';
import { watchSeveral } from './watch-several.js';

/** Of one schedule, so that many schedules take part. */
const TRACES_OF_A_SCHEDULE = 2;
const LEAST_STEPS = 30;
const LEAST_REFUSED = 0.95;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    promises: { type: 'boolean', default: false },
    only: { type: 'string' },
    from: { type: 'string', default: '1' },
    each: { type: 'string' },
  },
});
const [jar] = positionals;
const here = fileURLToPath(new URL('.', import.meta.url));

watchSeveral();
watchGrants();
const left = FAMILIES.filter(({ module }) => (values.only ?? module) === module).values();
// TLC uses one core. Damaged traces are checked beside the others.
const atATime = values.promises ? [left, left] : [left];
const verdicts = await Promise.all(
  atATime.map(async (families) => {
    let isFine = true;
    for (const family of families) isFine = (await isSound(family)) && isFine;
    return isFine;
  }),
);
process.exit(verdicts.every((isFine) => isFine) ? 0 : 1);

async function isSound(family: Family): Promise<boolean> {
  const traces: AnyTrace[] = [];
  for (const kind of family.kinds) traces.push(...(await tracesOf(family, kind)));
  const broken = values.promises ? [] : damagedOf(family, traces);
  const [good, bad] = await Promise.all([
    check(family, traces),
    check(
      family,
      broken.map(({ trace }) => trace),
    ),
  ]);
  const isRefused = ({ refusedAt }: DamagedTrace, n: number) =>
    bad.refusedAt.has(n) && bad.refusedAt.get(n) === (refusedAt ?? bad.refusedAt.get(n));
  const unnoticed = broken.filter((damage, n) => !isRefused(damage, n));
  const refused = good.isFailed ? 0 : broken.length - unnoticed.length;
  const occurrences = family.occurs.map(({ what, least, in: isIn }) => {
    const count = traces.filter(({ steps }) => steps.some(isIn)).length;
    return { text: `${count} with ${what}`, isEnough: count >= least };
  });
  const texts = occurrences.map(({ text }) => text).join(', ');
  console.log(`traces of ${family.name}: ${good.accepted.size} of ${traces.length} accepted; ${texts}`);
  for (const [n, step] of good.refusedAt)
    console.error(`refused: ${traces[n].name} at step ${step}: ${stepText(traces[n].steps[step - 1])}`);
  if (broken.length > 0) console.log(`       damaged ones: ${refused} of ${broken.length} refused`);
  for (const { trace } of unnoticed) console.log(`       not refused, or not where it is wrong: ${trace.name}`);
  for (const output of [good, bad])
    if (output.isFailed) console.error(output.text.slice(output.text.indexOf('Error:')));
  return (
    !good.isFailed &&
    !bad.isFailed &&
    good.accepted.size === traces.length &&
    occurrences.every(({ isEnough }) => isEnough) &&
    refused >= broken.length * LEAST_REFUSED
  );
}

function damagedOf({ damages, damaged: length }: Family, traces: readonly AnyTrace[]): readonly DamagedTrace[] {
  const chance = new SeededRandom(32);
  return Array.from({ length }, (_, n) => {
    const damage = damages[n % damages.length];
    return damaged(chance.pick(traces.filter((trace) => isPossible(damage, trace))), damage, chance);
  });
}

async function tracesOf(family: Family, kind: Family['kinds'][number]): Promise<readonly AnyTrace[]> {
  const found: AnyTrace[] = [];
  const wanted = Number(values.each ?? family.tracesOfAKind);
  for (let seed = Number(values.from); found.length < wanted; seed++) {
    const locks = await family.traces(kind, seed);
    const fitting = locks.filter(({ steps }) => steps.length >= LEAST_STEPS && steps.length <= family.mostSteps);
    fitting.sort((one, other) => preferredIn(other, family.preferred) - preferredIn(one, family.preferred));
    found.push(...fitting.slice(0, TRACES_OF_A_SCHEDULE));
  }
  return found.slice(0, wanted);
}

function preferredIn({ steps }: AnyTrace, preferred: (step: Step) => boolean): number {
  return steps.filter(preferred).length;
}

/** Many traces in one run of TLC: it takes as long to start as to check a hundred. */
async function check({ module, extended }: Family, all: readonly AnyTrace[]) {
  if (all.length === 0)
    return { accepted: new Set<number>(), refusedAt: new Map<number, number>(), isFailed: false, text: '' };
  const folder = mkdtempSync(join(tmpdir(), 'traces-'));
  mkdirSync(join(folder, 'states'));
  for (const file of [...extended, module].map((name) => `${name}.tla`))
    cpSync(join(here, file), join(folder, basename(file)));
  cpSync(join(here, `${module}.cfg`), join(folder, `${module}.cfg`));
  writeFileSync(join(folder, 'TraceData.tla'), traceDataModule(all));
  const options = [
    '-Xss16m',
    '-XX:+UseParallelGC',
    `-Djava.io.tmpdir=${folder}`,
    '-cp',
    jar,
    'tlc2.TLC',
    '-workers',
    '1',
  ];
  const child = spawn(
    'java',
    [...options, '-metadir', join(folder, 'states'), '-config', `${module}.cfg`, `${module}.tla`],
    { cwd: folder },
  );
  let text = '';
  for await (const chunk of child.stdout) text += chunk;
  rmSync(folder, { recursive: true, force: true });
  const accepted = new Set([...text.matchAll(/<<"accepted", (\d+)>>/g)].map(([, n]) => Number(n) - 1));
  const refusedAt = new Map(
    [...text.matchAll(/<<"refused", (\d+), (\d+)>>/g)].map(([, n, step]) => [Number(n) - 1, Number(step)]),
  );
  const isFailed = !text.includes('No error has been found');
  return { accepted, refusedAt, isFailed, text };
}
