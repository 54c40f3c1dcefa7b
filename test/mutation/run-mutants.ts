// Mutation testing of lib/engine and the Lua scripts. README.md in this folder says how it works and how long it takes.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SeededRandom } from '../support/seeded-random.js';
import { startRedis } from '../support/servers/redis-server.js';
import { type Mutant, mutantsOfLua, mutantsOfTypeScript, mutate, show } from './mutants.js';
import { SuitesThatSee } from './suites-that-see.js';

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '300' },
    seed: { type: 'string' },
    folder: { type: 'string' },
    workers: { type: 'string', default: '4' },
    for: { type: 'string', default: 'Infinity' },
    only: { type: 'string' },
    share: { type: 'string', default: '1/1' },
  },
});
const began = Date.now();
/** The exit code if the time of `--for` ended before the last mutant was judged. */
const UNFINISHED = 75;
/** Seconds after which suites that take so many are taken for hung. */
const LIMIT_OF = (seconds: number) => Math.min(110, 45 + 4 * seconds);
/** Less than in `npm test`, so that a mutant that makes a test hang is killed sooner. A failure has to happen twice. */
const TEST_TIMEOUT = 20_000;
/** How many suites are recorded together. */
const RECORDED_TOGETHER = 12;
const SCRIPTS = 'lib/backends/redis/scripts';
/**
 * The suites that may kill a mutant: those of the engine, the backends, the handles and LockService, and the simulation
 * and the models of `npm run test:chaos`.
 */
const SUITES = [
  '--testPathIgnorePatterns',
  '/node_modules/',
  '/test/(benchmark|browser|cli|dashboard|docs|health|interop|nest|otel|package|sample-app|sql|testing)/',
  '/test/chaos/(anomalies|deadlocks|faults|flights/flights|security|shutdown)',
  '/test/cli/ending',
  '/(contract-(cluster|sentinel|five-servers)|links/\\w+)\\.test',
  '\\.long\\.test\\.ts$',
];

/** The part of the schedules of `npm run test:chaos` that run for each mutant. */
const SCHEDULES = '0.05';

const JEST = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];

const repository = fileURLToPath(new URL('../..', import.meta.url));
const commit = git('rev-parse', 'HEAD');
const seed = values.seed ?? commit;
const folder = resolve(values.folder ?? join(tmpdir(), `mutants-${commit.slice(0, 10)}`));
const root = join(folder, 'checkout');
const records = join(folder, 'suites');
const file = join(folder, 'results.jsonl');

interface Result {
  readonly mutant: string;
  readonly kind: string;
  /** `refused`: it does not compile, and is none. */
  readonly outcome: 'killed' | 'timeout' | 'survived' | 'unseen' | 'refused';
  /** The test that failed. */
  readonly by?: string;
  readonly suites: number;
  readonly seconds: number;
}

await main();

async function main(): Promise<void> {
  mkdirSync(folder, { recursive: true });
  if (!existsSync(root)) {
    git('worktree', 'add', '--detach', root, commit);
    symlinkSync(join(repository, 'node_modules'), join(root, 'node_modules'));
  }
  // A run that was killed has left its mutant.
  git('-C', root, 'checkout', '--quiet', '--', 'lib');
  embed();
  const seconds = await recordSuites();
  const suites = new SuitesThatSee(root, records, seconds);
  const redis = await startRedis();
  const results = new Map(readResults().map((result) => [result.mutant, result.outcome]));
  let judged = 0;
  for (const mutant of drawn()) {
    if (judged >= Number(values.count)) break;
    const text = readFileSync(join(root, mutant.file), 'utf8');
    const shown = show(text, mutant);
    if (values.only !== undefined && !shown.includes(values.only)) continue;
    if (!results.has(shown)) {
      if (isOver()) break;
      const result = await judge(mutant, text, suites, redis.client());
      appendFileSync(file, `${JSON.stringify({ mutant: shown, kind: mutant.kind, ...result })}\n`);
      results.set(shown, result.outcome);
      const { outcome, by, seconds } = result;
      console.log(`${judged + 1} ${outcome} (${seconds.toFixed(0)} s) ${shown}${by ? `\n    by ${by}` : ''}`);
    }
    if (results.get(shown) !== 'refused') judged++;
  }
  await redis.stop();
  if (isOver() && judged < Number(values.count)) process.exit(UNFINISHED);
  summarize();
}

function isOver(): boolean {
  return Date.now() > began + Number(values.for) * 1000;
}

/**
 * The mutants of this run: every nth of all of them. `--share 2/3` leaves the others to runs that go on beside this
 * one.
 */
function* drawn(): Generator<Mutant> {
  const [share, shares] = values.share.split('/').map(Number);
  let index = 0;
  for (const mutant of allMutants()) {
    if (index++ % shares === share - 1) yield mutant;
  }
}

/** All mutants, in an order that only the seed decides: two of TypeScript, then one of Lua. */
function* allMutants(): Generator<Mutant> {
  const random = new SeededRandom(createHash('sha1').update(seed).digest().readInt32BE());
  const engine = shuffled(random, 'lib/engine', '.ts', mutantsOfTypeScript);
  const scripts = shuffled(random, SCRIPTS, '.lua', mutantsOfLua);
  while (engine.length + scripts.length > 0) {
    yield* engine.splice(0, 2);
    yield* scripts.splice(0, 1);
  }
}

function shuffled(random: SeededRandom, under: string, ending: string, make: (file: string, text: string) => Mutant[]) {
  const files = readdirSync(join(root, under), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith(ending),
  );
  const all = files.sort().flatMap((name) => make(`${under}/${name}`, readFileSync(join(root, under, name), 'utf8')));
  for (let index = all.length - 1; index > 0; index--) {
    const other = random.whole(0, index);
    [all[index], all[other]] = [all[other], all[index]];
  }
  return all;
}

/**
 * Runs every suite once, and records what it executes. By suite, the seconds that it took; without those that failed.
 */
async function recordSuites(): Promise<Map<string, number>> {
  mkdirSync(records, { recursive: true });
  const list = join(records, 'suites.txt');
  if (!existsSync(list)) writeFileSync(list, listSuites().join('\n'));
  const all = readFileSync(list, 'utf8').split('\n');
  const environment = join(root, 'test/mutation/recording-environment.mjs');
  const durations = new Map<string, number>();
  for (let first = 0; first < all.length; first += RECORDED_TOGETHER) {
    const together = all.slice(first, first + RECORDED_TOGETHER);
    const report = join(folder, `report-${first}.json`);
    if (!existsSync(report)) {
      if (isOver()) process.exit(UNFINISHED);
      console.log(`recording suites ${first + 1} to ${first + together.length} of ${all.length}`);
      await jest(together, environment, report, 600, { RECORDED_SUITES: records });
    }
    const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
    for (const { name, status, startTime, endTime } of testResults) {
      if (status === 'passed') durations.set(relative(root, name), (endTime - startTime) / 1000);
    }
  }
  console.log(`${durations.size} of ${all.length} suites passed without a mutant`);
  return durations;
}

function listSuites(): string[] {
  const { stdout } = spawnSync(process.execPath, [...JEST, '--listTests', '--json', ...SUITES], {
    cwd: root,
    encoding: 'utf8',
  });
  return (JSON.parse(stdout) as string[]).map((path) => relative(root, path)).sort();
}

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly startTime: number;
    readonly endTime: number;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

type Judgement = Omit<Result, 'mutant' | 'kind'>;

async function judge(mutant: Mutant, text: string, suites: SuitesThatSee, redis: Scripts): Promise<Judgement> {
  const begun = Date.now();
  const seen = suites.of(mutant);
  try {
    writeFileSync(join(root, mutant.file), mutate(text, mutant));
    const outcome = (await compiles(mutant, redis)) ? await outcomeOf(suites, seen) : { outcome: 'refused' as const };
    return { ...outcome, suites: seen.length, seconds: (Date.now() - begun) / 1000 };
  } finally {
    writeFileSync(join(root, mutant.file), text);
    embed();
  }
}

async function outcomeOf(suites: SuitesThatSee, seen: readonly string[]): Promise<Pick<Result, 'outcome' | 'by'>> {
  for (const part of suites.parts(seen)) {
    let left = part;
    while (left.length > 0) {
      const failed = await failing(left, suites.duration(left));
      if (failed === 'timeout') return { outcome: 'timeout' };
      if (failed === undefined) break;
      // A test that a busy machine made fail is no proof: it has to fail again, alone.
      const again = await failing([failed.suite], suites.duration([failed.suite]), failed.test);
      if (again === 'timeout') return { outcome: 'timeout' };
      if (again !== undefined) return { outcome: 'killed', by: `${failed.suite}: ${again.test ?? 'does not load'}` };
      left = left.filter((suite) => suite !== failed.suite);
    }
  }
  return { outcome: seen.length === 0 ? 'unseen' : 'survived' };
}

/** The first test that fails in these suites, or of one test alone whether it does. */
async function failing(suites: readonly string[], seconds: number, test?: string) {
  const report = join(folder, 'report.json');
  rmSync(report, { force: true });
  const environment = join(root, 'test/mutation/first-failure-environment.mjs');
  const isDone = await jest(suites, environment, report, LIMIT_OF(seconds), {
    LIKELIEST_FIRST: JSON.stringify(suites),
    ONLY_TEST: test,
  });
  if (!isDone) return 'timeout';
  if (!existsSync(report)) return { suite: suites[0], test: undefined };
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  const failed = testResults.find(({ status }) => status === 'failed');
  if (failed === undefined) return undefined;
  return {
    suite: relative(root, failed.name),
    test: failed.assertionResults.find(({ status }) => status === 'failed')?.fullName,
  };
}

/** False: it did not end in time, and was killed with the workers that it had started. */
async function jest(
  suites: readonly string[],
  environment: string,
  report: string,
  seconds: number,
  env: Record<string, string | undefined>,
): Promise<boolean> {
  const options = ['--silent', '--maxWorkers', values.workers, '--json', '--outputFile', report];
  const likeliestFirst = ['--testSequencer', join(root, 'test/mutation/likeliest-first.mjs')];
  const isRecording = 'RECORDED_SUITES' in env;
  const child = spawn(
    'timeout',
    [
      ...['-s', 'KILL', String(Math.ceil(seconds)), process.execPath, ...JEST, ...options],
      ...(isRecording ? [] : ['--bail', '--testTimeout', String(TEST_TIMEOUT), ...likeliestFirst]),
      ...[
        '--testEnvironment',
        environment,
        '--testPathIgnorePatterns',
        '/node_modules/',
        '--runTestsByPath',
        ...suites,
      ],
    ],
    { cwd: root, stdio: 'ignore', env: { ...process.env, CHAOS_LONG: SCHEDULES, ...env } },
  );
  const [status, signal] = await once(child, 'exit');
  return status !== 137 && signal !== 'SIGKILL';
}

interface Scripts {
  call(...args: [string, ...string[]]): Promise<unknown>;
}

/** A mutant that does not compile is none. */
async function compiles({ file }: Mutant, redis: Scripts): Promise<boolean> {
  if (!file.endsWith('.lua')) {
    const config = join(root, 'tsconfig.mutants.json');
    const settings = {
      extends: './tsconfig.json',
      include: ['lib'],
      exclude: [],
      // Checks only what depends on the mutant.
      compilerOptions: { noEmit: true, incremental: true, tsBuildInfoFile: join(folder, 'mutants.tsbuildinfo') },
    };
    if (!existsSync(config)) writeFileSync(config, JSON.stringify(settings));
    return node(['node_modules/typescript/bin/tsc', '-p', config]) === 0;
  }
  if (embed() !== 0) return false;
  const generated = join(root, SCRIPTS, '../scripts.generated.ts');
  const { SCRIPT_SOURCES } = (await import(
    `${generated}?${createHash('sha1').update(readFileSync(generated)).digest('hex')}`
  )) as {
    SCRIPT_SOURCES: Record<string, string>;
  };
  try {
    for (const source of Object.values(SCRIPT_SOURCES)) await redis.call('SCRIPT', 'LOAD', source);
    return true;
  } catch {
    return false;
  }
}

function summarize(): void {
  const all = readResults().filter(({ outcome }) => outcome !== 'refused');
  const of = (outcome: Result['outcome']) => all.filter((result) => result.outcome === outcome);
  const killed = of('killed').length + of('timeout').length;
  console.log(
    `\nseed ${seed}: ${all.length} mutants, ${killed} killed (${((100 * killed) / all.length).toFixed(1)} %), ${of('timeout').length} of them because the tests did not end`,
  );
  for (const { mutant, outcome, suites } of [...of('survived'), ...of('unseen')])
    console.log(`${outcome} ${suites} suites: ${mutant}`);
}

function readResults(): Result[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Result);
}

function embed(): number | null {
  return node(['.ci/embed.mjs']);
}

function node(args: readonly string[]): number | null {
  return spawnSync(process.execPath, args, { cwd: root, stdio: 'ignore' }).status;
}

function git(...args: string[]): string {
  const { stdout, status, stderr } = spawnSync('git', args, { cwd: repository, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout.trim();
}
