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
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startRedis } from '../support/servers/redis-server.js';
import { type Mutant, mutantsOfLua, mutantsOfTypeScript, mutate, show } from './mutants.js';
import { SuitesThatSee } from './suites-that-see.js';

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '300' },
    seed: { type: 'string' },
    folder: { type: 'string' },
    known: { type: 'string' },
    brief: { type: 'boolean', default: false },
    lanes: { type: 'string', default: '2' },
    for: { type: 'string', default: 'Infinity' },
    only: { type: 'string' },
    suites: { type: 'string', default: '' },
  },
});
const began = Date.now();
/** The exit code if the time of `--for` ended before the last mutant was judged. */
const UNFINISHED = 75;
/** Seconds after which suites that take so many are taken for hung. */
const LIMIT_OF = (seconds: number) => Math.min(110, 45 + 4 * seconds);
/** Less than in `npm test`, so that a mutant that makes a test hang is killed sooner. A failure has to happen twice. */
const TEST_TIMEOUT = 20_000;
/** How many parts of the suites judge a mutant with `--brief`. */
const BRIEF_PARTS = 2;
/** How many suites are recorded together. */
const RECORDED_TOGETHER = 60;
/** Suites wait for servers and timers most of the time. */
const RECORDING_WORKERS = 4 * availableParallelism();
const SCRIPTS = 'lib/backends/redis/scripts';
/**
 * The suites that may kill a mutant: those of the engine, the backends, the handles and LockService, and the simulation
 * and the models of `npm run suite -- chaos`.
 */
const SUITES = [
  '--testPathIgnorePatterns',
  '/node_modules/',
  '/test/(benchmark|browser|cli|dashboard|docs|health|interop|nest|otel|package|sample-app|sql|testing)/',
  '/test/chaos/(anomalies|deadlocks|faults|flights/flights|security|shutdown)',
  '/test/cli/ending',
  // It makes its mistakes in the text of the scripts, where a mutant may stand.
  '/test/chaos/simulation/mistakes',
  '/(contract-(cluster|sentinel|three-servers)|(contract|outages)-five-servers|links/\\w+)\\.test',
  '\\.long\\.test\\.ts$',
];

/** The part of the schedules of `npm run suite -- chaos` that run for each mutant. */
const SCHEDULES = '0.05';

const JEST = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];

const repository = fileURLToPath(new URL('../..', import.meta.url));
const commit = git('rev-parse', 'HEAD');
const seed = values.seed ?? commit;
const folder = resolve(values.folder ?? join(tmpdir(), `mutants-${commit.slice(0, 10)}`));
/** Where the suites were recorded. It stays as it is: mutants are made in the checkouts of the lanes. */
const original = join(folder, 'checkout');
const records = join(folder, 'suites');
const file = join(folder, 'results.jsonl');

interface Result {
  readonly id: string;
  readonly mutant: string;
  readonly kind: string;
  /** `refused`: it does not compile, and is none. `undecided`: it survived `--brief`. */
  readonly outcome: 'killed' | 'timeout' | 'survived' | 'unseen' | 'undecided' | 'refused';
  /** The test that failed. */
  readonly by?: string;
  readonly suites: number;
  readonly seconds: number;
}

async function main(): Promise<void> {
  mkdirSync(folder, { recursive: true });
  checkOut(original);
  await embed(original);
  const seconds = await recordSuites();
  const suites = new SuitesThatSee(original, records, seconds);
  const results = new Map([...knownResults(), ...ownResults()].map(({ id, outcome }) => [id, outcome]));
  const mutants = drawn();
  let accepted = 0;
  const next = (): Drawn | undefined => {
    while (accepted < Number(values.count) && !isOver()) {
      const { value } = mutants.next();
      if (value === undefined) return undefined;
      const known = results.get(value.id);
      if (known !== 'refused') accepted++;
      if (known === undefined) return value;
    }
    return undefined;
  };
  const redis = await startRedis();
  await Promise.all(
    Array.from({ length: Number(values.lanes) }, async (_, index) => {
      const lane = new Lane(join(folder, `lane-${index + 1}`), suites, redis.client());
      await lane.open();
      for (let each = next(); each !== undefined; each = next()) {
        const result = { id: each.id, mutant: each.shown, kind: each.mutant.kind, ...(await lane.judge(each)) };
        appendFileSync(file, `${JSON.stringify(result)}\n`);
        results.set(each.id, result.outcome);
        if (result.outcome === 'refused') accepted--;
        const { outcome, by, seconds } = result;
        console.log(`${results.size} ${outcome} (${seconds.toFixed(0)} s) ${each.shown}${by ? `\n    by ${by}` : ''}`);
      }
    }),
  );
  await redis.stop();
  if (isOver() && accepted < Number(values.count)) process.exit(UNFINISHED);
  summarize(results);
}

function isOver(): boolean {
  return Date.now() > began + Number(values.for) * 1000;
}

interface Drawn {
  readonly mutant: Mutant;
  /** Says which change it is, without the number of the line: the same in commits that differ elsewhere. */
  readonly id: string;
  readonly shown: string;
  /** The file as it is. */
  readonly text: string;
}

/** All mutants, in an order that only the seed and their own lines decide: two of TypeScript, then one of Lua. */
function* drawn(): Generator<Drawn> {
  const engine = mutantsUnder('lib/engine', '.ts', mutantsOfTypeScript);
  const scripts = mutantsUnder(SCRIPTS, '.lua', mutantsOfLua);
  while (engine.length + scripts.length > 0) {
    for (const each of [...engine.splice(0, 2), ...scripts.splice(0, 1)]) {
      if (values.only === undefined || each.shown.includes(values.only)) yield each;
    }
  }
}

function mutantsUnder(under: string, ending: string, make: (file: string, text: string) => Mutant[]): Drawn[] {
  const files = readdirSync(join(original, under), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith(ending),
  );
  const seen = new Map<string, number>();
  const all = files.sort().flatMap((name) => {
    const text = readFileSync(join(original, under, name), 'utf8');
    return make(`${under}/${name}`, text).map((mutant) => {
      const shown = show(text, mutant);
      const change = shown.replace(/:\d+:/, ':');
      const times = (seen.get(change) ?? 0) + 1;
      seen.set(change, times);
      return { mutant, text, shown, id: digest(`${change} ${times}`).slice(0, 16) };
    });
  });
  const rank = new Map(all.map(({ id }) => [id, digest(`${seed} ${id}`)]));
  return all.sort((one, other) => ((rank.get(one.id) as string) < (rank.get(other.id) as string) ? -1 : 1));
}

function digest(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}

/**
 * Runs every suite once, and records what it executes. By suite, the seconds that it took; without those that failed.
 */
async function recordSuites(): Promise<Map<string, number>> {
  mkdirSync(records, { recursive: true });
  const list = join(records, 'suites.txt');
  if (!existsSync(list)) writeFileSync(list, listSuites().join('\n'));
  const all = readFileSync(list, 'utf8').split('\n');
  const environment = 'test/mutation/recording-environment.mjs';
  const durations = new Map<string, number>();
  for (let first = 0; first < all.length; first += RECORDED_TOGETHER) {
    const together = all.slice(first, first + RECORDED_TOGETHER);
    const report = join(folder, `report-${first}.json`);
    if (!existsSync(report)) {
      if (isOver()) process.exit(UNFINISHED);
      console.log(`recording suites ${first + 1} to ${first + together.length} of ${all.length}`);
      await jest(original, together, environment, report, 600, { RECORDED_SUITES: records });
    }
    const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
    for (const { name, status, startTime, endTime } of testResults) {
      if (status === 'passed') durations.set(relative(original, name), (endTime - startTime) / 1000);
    }
  }
  console.log(`${durations.size} of ${all.length} suites passed without a mutant`);
  return durations;
}

function listSuites(): string[] {
  const { stdout } = spawnSync(process.execPath, [...JEST, '--listTests', '--json', ...SUITES], {
    cwd: original,
    encoding: 'utf8',
  });
  const wanted = new RegExp(values.suites);
  return (JSON.parse(stdout) as string[])
    .map((path) => relative(original, path))
    .filter((path) => wanted.test(path))
    .sort();
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

type Judgement = Omit<Result, 'id' | 'mutant' | 'kind'>;

/** A checkout in which one mutant after the other is made and judged. */
class Lane {
  private readonly report: string;

  constructor(
    private readonly root: string,
    private readonly suites: SuitesThatSee,
    private readonly redis: Scripts,
  ) {
    this.report = `${root}.json`;
  }

  async open(): Promise<void> {
    checkOut(this.root);
    await embed(this.root);
  }

  async judge({ mutant, text }: Drawn): Promise<Judgement> {
    const begun = Date.now();
    const seen = this.suites.of(mutant);
    try {
      writeFileSync(join(this.root, mutant.file), mutate(text, mutant));
      const outcome = (await this.compiles(mutant)) ? await this.outcomeOf(seen) : { outcome: 'refused' as const };
      return { ...outcome, suites: seen.length, seconds: (Date.now() - begun) / 1000 };
    } finally {
      writeFileSync(join(this.root, mutant.file), text);
      await embed(this.root);
    }
  }

  private async outcomeOf(seen: readonly string[]): Promise<Pick<Result, 'outcome' | 'by'>> {
    const parts = this.suites.parts(seen);
    const isUndecided = values.brief && parts.length > BRIEF_PARTS;
    for (const part of isUndecided ? parts.slice(0, BRIEF_PARTS) : parts) {
      let left = part;
      while (left.length > 0) {
        const failed = await this.failing(left);
        if (failed === 'timeout') return { outcome: 'timeout' };
        if (failed === undefined) break;
        // A test that a busy machine made fail is no proof: it has to fail again, alone.
        const again = await this.failing([failed.suite], failed.test);
        if (again === 'timeout') return { outcome: 'timeout' };
        if (again !== undefined) return { outcome: 'killed', by: `${failed.suite}: ${again.test ?? 'does not load'}` };
        left = left.filter((suite) => suite !== failed.suite);
      }
    }
    if (isUndecided) return { outcome: 'undecided' };
    return { outcome: seen.length === 0 ? 'unseen' : 'survived' };
  }

  /** The first test that fails in these suites, or of one test alone whether it does. */
  private async failing(suites: readonly string[], test?: string) {
    rmSync(this.report, { force: true });
    const environment = 'test/mutation/first-failure-environment.mjs';
    const limit = LIMIT_OF(this.suites.duration(suites));
    const isDone = await jest(this.root, suites, environment, this.report, limit, {
      LIKELIEST_FIRST: JSON.stringify(suites),
      ONLY_TEST: test,
    });
    if (!isDone) return 'timeout';
    if (!existsSync(this.report)) return { suite: suites[0], test: undefined };
    const { testResults } = JSON.parse(readFileSync(this.report, 'utf8')) as Report;
    const failed = testResults.find(({ status }) => status === 'failed');
    if (failed === undefined) return undefined;
    return {
      suite: relative(this.root, failed.name),
      test: failed.assertionResults.find(({ status }) => status === 'failed')?.fullName,
    };
  }

  /** A mutant that does not compile is none. */
  private async compiles({ file }: Mutant): Promise<boolean> {
    if (!file.endsWith('.lua')) {
      const config = join(this.root, 'tsconfig.mutants.json');
      const settings = {
        extends: './tsconfig.json',
        include: ['lib'],
        exclude: [],
        // Checks only what depends on the mutant.
        compilerOptions: { noEmit: true, incremental: true, tsBuildInfoFile: `${this.root}.tsbuildinfo` },
      };
      if (!existsSync(config)) writeFileSync(config, JSON.stringify(settings));
      return (await node(this.root, ['node_modules/typescript/bin/tsc', '-p', config])) === 0;
    }
    if ((await embed(this.root)) !== 0) return false;
    const generated = join(this.root, SCRIPTS, '../scripts.generated.ts');
    const { SCRIPT_SOURCES } = (await import(`${generated}?${digest(readFileSync(generated, 'utf8'))}`)) as {
      SCRIPT_SOURCES: Record<string, string>;
    };
    try {
      for (const source of Object.values(SCRIPT_SOURCES)) await this.redis.call('SCRIPT', 'LOAD', source);
      return true;
    } catch {
      return false;
    }
  }
}

/** False: it did not end in time, and was killed with the workers that it had started. */
async function jest(
  root: string,
  suites: readonly string[],
  environment: string,
  report: string,
  seconds: number,
  env: Record<string, string | undefined>,
): Promise<boolean> {
  const isRecording = 'RECORDED_SUITES' in env;
  const workers = isRecording ? RECORDING_WORKERS : 1;
  const options = ['--silent', '--maxWorkers', String(workers), '--json', '--outputFile', report];
  const likeliestFirst = ['--testSequencer', join(root, 'test/mutation/likeliest-first.mjs')];
  const child = spawn(
    'timeout',
    [
      ...['-s', 'KILL', String(Math.ceil(seconds)), process.execPath, ...JEST, ...options],
      ...(isRecording ? [] : ['--bail', '--testTimeout', String(TEST_TIMEOUT), ...likeliestFirst]),
      ...[
        '--testEnvironment',
        join(root, environment),
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

function summarize(results: ReadonlyMap<string, Result['outcome']>): void {
  const judged: { shown: string; outcome: Result['outcome'] }[] = [];
  for (const { id, shown } of drawn()) {
    const outcome = results.get(id);
    if (judged.length === Number(values.count) || outcome === undefined) break;
    if (outcome !== 'refused') judged.push({ shown, outcome });
  }
  const of = (wanted: Result['outcome']) => judged.filter(({ outcome }) => outcome === wanted);
  const killed = of('killed').length + of('timeout').length;
  console.log(
    `\nseed ${seed}: ${judged.length} mutants, ${killed} killed (${((100 * killed) / judged.length).toFixed(1)} %), ${of('timeout').length} of them because the tests did not end`,
  );
  for (const { shown, outcome } of [...of('survived'), ...of('unseen'), ...of('undecided')])
    console.log(`${outcome}: ${shown}`);
}

/** Of the run in `--known`: what was killed there stays killed, and the others are judged again. */
function knownResults(): Result[] {
  if (values.known === undefined) return [];
  return readResults(values.known).filter(({ outcome }) => outcome === 'killed' || outcome === 'refused');
}

function ownResults(): Result[] {
  return readResults(file).filter(({ outcome }) => values.brief || outcome !== 'undecided');
}

function readResults(path: string): Result[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Result);
}

function checkOut(root: string): void {
  if (existsSync(root)) {
    // A run that was killed has left its mutant.
    git('-C', root, 'checkout', '--quiet', '--', 'lib');
    return;
  }
  git('worktree', 'add', '--detach', root, commit);
  symlinkSync(join(repository, 'node_modules'), join(root, 'node_modules'));
}

function embed(root: string): Promise<number | null> {
  return node(root, ['.ci/build/embed.mjs']);
}

async function node(root: string, args: readonly string[]): Promise<number | null> {
  const [status] = await once(spawn(process.execPath, args, { cwd: root, stdio: 'ignore' }), 'exit');
  return status as number | null;
}

function git(...args: string[]): string {
  const { stdout, status, stderr } = spawnSync('git', args, { cwd: repository, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout.trim();
}

await main();
