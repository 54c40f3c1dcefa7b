/**
 * Checks histories of the simulation both with Porcupine and with our own checker. Both must accept the good ones, and
 * agree on those of broken backends, lock by lock. Called by .ci/histories.mjs with the program of porcupine/, and the
 * folder of histories that processes under faults have left (CHAOS_HISTORIES).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  admitsOneMore,
  type Breakage,
  grantsTwice,
  ignoresOwner,
  keepsWhatIsReleased,
  losesWakeUps,
  readsBesideAWriter,
  releasesEveryPlace,
  releasesEveryReader,
  renewsNoLease,
  repeatsTokens,
  writesAmongReaders,
} from '../chaos/broken-backends.js';
import { Digest } from '../chaos/checker/tenure.js';
import { History } from '../chaos/history.js';
import { checkHistory } from '../chaos/history-checker.js';
import type { KindName } from '../chaos/simulation/kinds.js';
import { simulate } from '../chaos/simulation/run-schedules.js';
import { askPorcupine } from './ask-porcupine.js';
import { isDoubtful, type Operation, operationsOf } from './operations-of.js';

const KINDS: readonly KindName[] = [
  'steady',
  'several',
  'lossy',
  'frail',
  'storm',
  'unreliable',
  'flushed',
  'cutOff',
  'lateRequests',
  'scattered',
  'places',
  'stormyPlaces',
  'latePlaces',
];
const GOOD = 1_000;
/**
 * Histories that break only other rules must be accepted by both. The backend that reserves tokens without a limit is
 * not here, because its fault shows only in grants after a loss of data, which the model leaves out.
 */
const BROKEN: readonly [what: string, breakage: Breakage, kind: KindName, promise: 'breaks a lock' | 'keeps a lock'][] =
  [
    ['grants a lock twice', grantsTwice, 'steady', 'breaks a lock'],
    ['ignores the owner of a release', ignoresOwner, 'lossy', 'breaks a lock'],
    ['repeats tokens', repeatsTokens, 'steady', 'breaks a lock'],
    ['loses wake-ups', losesWakeUps, 'steady', 'keeps a lock'],
    ['keeps what was released', keepsWhatIsReleased, 'steady', 'keeps a lock'],
    ['lets readers read beside a writer', readsBesideAWriter, 'scattered', 'breaks a lock'],
    ['lets writers write among readers', writesAmongReaders, 'scattered', 'breaks a lock'],
    ['releases every reader with one', releasesEveryReader, 'scattered', 'breaks a lock'],
    ['admits one more than n', admitsOneMore, 'places', 'breaks a lock'],
    ['renews no lease of n', renewsNoLease, 'stormyPlaces', 'breaks a lock'],
    ['frees every place of n', releasesEveryPlace, 'places', 'breaks a lock'],
    ['grants a place to one who was refused', grantsTwice, 'places', 'breaks a lock'],
    ['repeats tokens of n', repeatsTokens, 'places', 'breaks a lock'],
    ['keeps places that were released', keepsWhatIsReleased, 'places', 'keeps a lock'],
  ];
const BROKEN_OF_EACH = 30;
/** The rules for a lock with owners and tokens. The other rules of our checker are about other things. */
const RULES = ['no overlap', 'growing tokens'];

interface Case {
  readonly history: string;
  readonly lock: string;
  readonly operations: readonly Operation[];
  /** The findings of our checker; empty if the history is accepted. */
  readonly ours: string;
}

const [program, folder] = process.argv.slice(2);
const recorded = readdirSync(folder).filter((name) => name.endsWith('.json'));
let isFine = true;

const good: Case[] = [];
for (let seed = 1; seed <= GOOD; seed++) {
  const kind = KINDS[seed % KINDS.length];
  good.push(...casesOf(`${kind} ${seed}`, (await simulate(seed, { kind })).history));
}
await compare(`${GOOD} histories of the simulation`, good, 'keeps a lock');
const real = recorded.map((name) => new History(JSON.parse(readFileSync(join(folder, name), 'utf8'))));
if (real.length === 0) isFine = false;
await compare(
  `${real.length} histories of processes under faults`,
  real.flatMap((history, n) => casesOf(recorded[n], history)),
  'keeps a lock',
);
for (const [what, disguise, kind, promise] of BROKEN) {
  const broken: Case[] = [];
  for (let seed = 1; seed <= BROKEN_OF_EACH; seed++) {
    broken.push(...casesOf(`seed ${seed}`, (await simulate(seed, { kind, disguise })).history));
  }
  await compare(`a backend that ${what}, ${BROKEN_OF_EACH} histories`, broken, promise);
}
process.exit(isFine ? 0 : 1);

function casesOf(name: string, history: History): Case[] {
  const { violations } = checkHistory(history);
  const doubtful = new Set(new Digest(history).tenures.filter(isDoubtful).map(({ call }) => call));
  const ofMutex = violations.filter(
    ({ rule, calls }) => RULES.includes(rule) && !calls.some((call) => doubtful.has(call)),
  );
  return [...operationsOf(history)].map(([lock, operations]) => {
    const found = ofMutex.find((violation) => violation.lock === lock);
    return { history: name, lock, operations, ours: found?.message ?? '' };
  });
}

async function compare(
  title: string,
  cases: readonly Case[],
  promise: 'breaks a lock' | 'keeps a lock',
): Promise<void> {
  const theirs = await askPorcupine(program, cases);
  const verdicts = cases.map((each, n) => ({ ...each, theirs: theirs[n] }));
  const sound = verdicts.filter(({ ours, theirs }) => ours === '' && theirs === 'ok');
  const unsound = verdicts.filter(({ ours, theirs }) => ours !== '' && theirs === 'illegal');
  const differ = verdicts.filter((each) => !sound.includes(each) && !unsound.includes(each));
  const operations = cases.reduce((sum, each) => sum + each.operations.length, 0);
  console.log(
    `${title}: ${cases.length} locks, ${operations} operations. Sound for both: ${sound.length}, broken for both: ${unsound.length}, they differ on ${differ.length}`,
  );
  for (const { history, lock, ours, theirs } of differ) {
    console.error(`  ${history}, ${lock}: ours says ${ours || 'sound'}, Porcupine says ${theirs}`);
  }
  if (differ.length > 0 || unsound.length > 0 !== (promise === 'breaks a lock')) isFine = false;
}
