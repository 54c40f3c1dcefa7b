/**
 * Traces of the simulation, checked by TLC against Lease, Tokens and LineServer: all of them must be accepted, and of
 * damaged ones 95 % refused. Called by .ci/spec.mjs.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { KindName } from '../../chaos/simulation/kinds.js';
import { simulate } from '../../chaos/simulation/run-schedules.js';
import { SimulationTrace } from '../../chaos/simulation/simulation-trace.js';
import { SeededRandom } from '../../support/seeded-random.js';
import { DAMAGES, damaged } from './damage.js';
import { stepText, traceDataModule } from './tla-module.js';
import { type LockTrace, tracedLocks, traceOfLock } from './trace-of-lock.js';

const KINDS: readonly KindName[] = ['steady', 'lossy', 'storm', 'lateRequests', 'flushed', 'cutOff', 'unreliable'];
const TRACES_OF_A_KIND = 20;
/** Of one schedule, so that many schedules take part. */
const TRACES_OF_A_SCHEDULE = 2;
const LENGTH = [30, 400] as const;
const DAMAGED = 200;
const LEAST_REFUSED = 0.95;
const LEAST_TRACES = 100;
const LEAST_WITH_MISHAPS = 20;
const LEAST_WITH_GRANTS = 20;

const [jar] = process.argv.slice(2);
const here = fileURLToPath(new URL('.', import.meta.url));

const traces = (await Promise.all(KINDS.map(tracesOf))).flat();
const withGrants = traces.filter((trace) => grantsIn(trace) > 0);
const chance = new SeededRandom(32);
const broken = Array.from({ length: DAMAGED }, (_, n) => {
  const damage = DAMAGES[n % DAMAGES.length];
  const trace = damaged(chance.pick(damage === 'place changed' ? withGrants : traces), damage, chance);
  return { ...trace, name: `${trace.name}, ${damage}` };
});

const [good, bad] = await Promise.all([check(traces), check(broken)]);
const withMishaps = traces.filter(({ steps }) =>
  steps.some(({ e }) => ['lost', 'late', 'resend', 'lose', 'data lost'].includes(e)),
);
const refused = broken.filter((_, n) => !good.isFailed && !bad.accepted.has(n));
let isFine = !good.isFailed && !bad.isFailed;

console.log(
  `traces: ${good.accepted.size} of ${traces.length} accepted, ${withMishaps.length} of them with a loss, an expiry or a re-sent request, ${withGrants.length} with a grant to a place in line`,
);
for (const [n, step] of good.refusedAt) {
  isFine = false;
  console.error(`refused: ${traces[n].name} at step ${step}: ${stepText(traces[n].steps[step - 1])}`);
}
console.log(`damaged traces: ${refused.length} of ${DAMAGED} refused`);
for (const n of bad.accepted) console.log(`       accepted all the same: ${broken[n].name}`);
isFine &&=
  good.accepted.size === traces.length &&
  traces.length >= LEAST_TRACES &&
  withMishaps.length >= LEAST_WITH_MISHAPS &&
  withGrants.length >= LEAST_WITH_GRANTS;
isFine &&= refused.length >= DAMAGED * LEAST_REFUSED;
for (const output of [good, bad]) if (output.isFailed) console.error(output.text.slice(output.text.indexOf('Error:')));
process.exit(isFine ? 0 : 1);

async function tracesOf(kind: KindName): Promise<readonly LockTrace[]> {
  const found: LockTrace[] = [];
  for (let seed = 1; found.length < TRACES_OF_A_KIND; seed++) {
    const trace = new SimulationTrace();
    await simulate(seed, { kind, trace });
    const [shortest, longest] = LENGTH;
    const locks = tracedLocks(trace).flatMap((key) => traceOfLock(trace, key, `${kind} ${seed}, ${key}`) ?? []);
    const fitting = locks.filter(({ steps }) => steps.length >= shortest && steps.length <= longest);
    // Those in which processes waited in line come first.
    fitting.sort((one, other) => grantsIn(other) - grantsIn(one));
    found.push(...fitting.slice(0, TRACES_OF_A_SCHEDULE));
  }
  return found.slice(0, TRACES_OF_A_KIND);
}

/** How often a free lock was granted to a place of its line. */
function grantsIn({ steps }: LockTrace): number {
  return steps.filter(({ e }) => e === 'grant').length;
}

/** Many traces in one run of TLC: it takes as long to start as to check a hundred. */
async function check(all: readonly LockTrace[]) {
  const folder = mkdtempSync(join(tmpdir(), 'traces-'));
  mkdirSync(join(folder, 'states'));
  for (const file of ['LeaseServer.tla', 'Lease.tla', 'Tokens.tla', 'LineServer.tla'])
    cpSync(join(here, '..', file), join(folder, file));
  for (const file of ['Trace.tla', 'Trace.cfg']) cpSync(join(here, file), join(folder, file));
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
  const child = spawn('java', [...options, '-metadir', join(folder, 'states'), '-config', 'Trace.cfg', 'Trace.tla'], {
    cwd: folder,
  });
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
