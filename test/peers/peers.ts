// npm run suite -- peers: this library as it is packed, and its peers, under the same fourteen faults. Two checkers judge
// the histories, which are written to node_modules/.cache/peers.
//   --repeats 3                     how often, each time in another order
//   --lanes 1                       how many of these run at the same time
//   --only redlock,murlock          only these libraries
//   --fault killed                  only the faults with this in their name
//   --judge                         runs nothing, and judges the histories that are there
// It fails if this library breaks a promise, or if the checkers differ.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { checkHistory } from '../chaos/history-checker.js';
import { askPorcupine } from '../histories/ask-porcupine.js';
import { operationsOf } from '../histories/operations-of.js';
import { packLibrary } from '../package/throw-away-app.js';
import { historyOf, NAME } from './peer-record.js';
import { type CellOutcome, COMMAND_TIMEOUT, LEASE, PeerRun, WAIT } from './peer-run.js';
import { CONFIRMS_RELEASE, FAULTS, type Fault, LIBRARIES, type Library, NOT_PROMISED, notOffered } from './promises.js';

const FOLDER = 'node_modules/.cache/peers';
const OURS: Library = 'nestjs-redis-lock';

interface Run extends CellOutcome {
  readonly library: Library;
  readonly fault: Fault;
  /** How many pairs of holders overlapped, and for how long at most, in milliseconds. */
  readonly overlaps: number;
  readonly longest: number;
  /** The longest time between two grants in which nobody held the lock, in milliseconds. */
  readonly pause: number;
  porcupine?: string;
}

const { values } = parseArgs({
  options: {
    repeats: { type: 'string', default: '3' },
    lanes: { type: 'string', default: '1' },
    only: { type: 'string' },
    fault: { type: 'string', default: '' },
    judge: { type: 'boolean', default: false },
  },
});
const libraries = LIBRARIES.filter((library) => values.only?.split(',').includes(library) ?? true);
const faults = FAULTS.filter((fault) => fault.includes(values.fault));

mkdirSync(FOLDER, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), 'peers-'));
try {
  if (!values.judge) await installPacked();
  const runs = values.judge ? readAll() : await runAll();
  const program = buildPorcupine();
  if (program !== undefined) await judgeAgain(program, runs);
  conclude(runs, program !== undefined);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

/** Puts the package that would be published beside its peers. */
async function installPacked(): Promise<void> {
  const tarball = await packLibrary(scratch);
  const target = 'test/peers/node_modules/nestjs-redis-lock';
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '-C', target, '--strip-components=1']);
}

async function runAll(): Promise<Run[]> {
  const runs: Run[] = [];
  const cells = faults.flatMap((fault) => libraries.map((library) => ({ fault, library })));
  const rounds = Array.from({ length: Number(values.repeats) }, (_, round) => {
    // Each round begins with another cell, so that nobody always follows the same one.
    const first = Math.floor((round * cells.length) / Number(values.repeats)) + round;
    return cells.map((_, i) => ({ ...cells[(i + first) % cells.length], round: round + 1 }));
  });
  const lanes = Array.from({ length: Number(values.lanes) }, async (_, lane) => {
    for (let round = lane; round < rounds.length; round += Number(values.lanes))
      for (const { fault, library, round: number } of rounds[round]) {
        if (notOffered(library, fault) !== undefined) continue;
        const run = judged(library, fault, await PeerRun.of(library, fault));
        runs.push(run);
        const file = `${fault}-${library}-${number}`.replace(/[^\w.-]+/g, '_');
        writeFileSync(join(FOLDER, `${file}.json`), JSON.stringify(run, undefined, 1));
        console.log(`${number}: ${fault}, ${library}: ${described(run)}`);
      }
  });
  await Promise.all(lanes);
  return runs;
}

function readAll(): Run[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json'))
    .map((name): Run => JSON.parse(readFileSync(join(FOLDER, name), 'utf8')))
    .filter(({ library, fault }) => libraries.includes(library) && faults.includes(fault))
    .map((run) => judged(run.library, run.fault, run));
}

function judged(library: Library, fault: Fault, outcome: CellOutcome): Run {
  const history = historyOf(outcome.records, CONFIRMS_RELEASE.includes(library));
  const { violations } = checkHistory(history);
  const overlaps = violations.filter(({ rule }) => rule === 'no overlap');
  const grants = history.records.flatMap((record) => (record.kind === 'granted' ? [record] : []));
  let [longest, pause] = [0, 0];
  let until = grants[0]?.at ?? 0;
  for (const { at, validUntil = at } of grants) {
    longest = Math.max(longest, Math.min(until, validUntil) - at);
    pause = Math.max(pause, at - until);
    until = Math.max(until, validUntil);
  }
  return { library, fault, ...outcome, overlaps: overlaps.length, longest, pause };
}

function described({ overlaps, longest, pause, notes, records }: Run): string {
  const count = (kind: string) => records.filter((record) => record.kind === kind).length;
  const parts = [
    overlaps === 0 ? 'no overlap' : `${overlaps} overlaps, of up to ${longest.toFixed(0)} ms`,
    `nobody held it for up to ${pause.toFixed(0)} ms`,
    `${count('granted')} grants, ${count('refused')} refused, ${count('lost')} losses told, ${count('failed')} releases failed`,
    ...notes,
  ];
  return parts.join('; ');
}

/** @returns undefined where there is no Go */
function buildPorcupine(): string | undefined {
  const program = join(scratch, 'porcupine');
  const { status } = spawnSync('go', ['build', '-o', program, '.'], {
    cwd: 'test/histories/porcupine',
    stdio: 'ignore',
  });
  return status === 0 ? program : undefined;
}

async function judgeAgain(program: string, runs: readonly Run[]): Promise<void> {
  const cases = runs.map(({ library, records }) => {
    const history = historyOf(records, CONFIRMS_RELEASE.includes(library));
    return { operations: operationsOf(history).get(NAME) ?? [] };
  });
  const answers = await askPorcupine(program, cases);
  runs.forEach((run, i) => {
    run.porcupine = answers[i];
  });
}

function conclude(runs: readonly Run[], isJudgedTwice: boolean): void {
  const versions = JSON.parse(readFileSync('test/peers/package.json', 'utf8')).dependencies;
  const titles = libraries.map((library) => (library === OURS ? library : `${library} ${versions[library]}`));
  const table = [
    `| fault | ${titles.join(' | ')} |`,
    `| --- |${libraries.map(() => ' --- |').join('')}`,
    ...faults.map((fault) => `| ${fault} | ${libraries.map((library) => cell(fault, library, runs)).join(' | ')} |`),
  ].join('\n');
  const differ = runs.filter(({ overlaps, porcupine }) => isJudgedTwice && (overlaps === 0) !== (porcupine === 'ok'));
  const broken = runs.filter(
    ({ library, fault, overlaps }) => library === OURS && overlaps > 0 && NOT_PROMISED[fault].get(library) === '',
  );
  const text = `${table}

Lease ${LEASE} ms, wait time ${WAIT} ms, commandTimeout ${COMMAND_TIMEOUT} ms for all that have such an option, ${values.repeats} runs of each cell.
✓ no two callers held the lock at once. ✗ n/m: in n of m runs they did, for up to this long. † not promised. Then the
median of the longest time between two grants in which nobody held the lock. – not offered.
`;
  console.log(`\n${text}`);
  writeFileSync(join(FOLDER, 'table.md'), text);
  for (const { fault, library, porcupine, overlaps } of differ)
    console.log(`The checkers differ: ${fault}, ${library}: ${overlaps} overlaps, Porcupine says ${porcupine}`);
  for (const { fault } of broken) console.log(`${OURS} broke its promise: ${fault}`);
  if (!isJudgedTwice) console.log('Porcupine did not judge, because there is no Go here.');
  const isFine = differ.length === 0 && broken.length === 0 && runs.length > 0;
  console.log(isFine ? `${runs.length} passed, 0 failed` : `0 passed, ${differ.length + broken.length} failed`);
  process.exitCode = isFine ? 0 : 1;
}

function cell(fault: Fault, library: Library, runs: readonly Run[]): string {
  const missing = notOffered(library, fault);
  if (missing !== undefined) return `– ${missing}`;
  const own = runs.filter((run) => run.fault === fault && run.library === library);
  if (own.length === 0) return 'not run';
  const bad = own.filter(({ overlaps }) => overlaps > 0);
  const longest = Math.max(...own.map((run) => run.longest));
  const exclusive = bad.length === 0 ? '✓' : `✗ ${bad.length}/${own.length}, ${(longest / 1_000).toFixed(1)} s`;
  const mark = NOT_PROMISED[fault].get(library) === '' ? '' : ' †';
  const lost = own.filter(({ isLost }) => isLost).length;
  const kept = own[0].isLost === undefined ? '' : lost === 0 ? ', kept' : `, lost ${lost}/${own.length}`;
  const pauses = own.map(({ pause }) => pause).sort((one, other) => one - other);
  return `${exclusive}${mark}${kept}, ${(pauses[pauses.length >> 1] / 1_000).toFixed(1)} s`;
}
