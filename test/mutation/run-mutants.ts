// Mutation testing of lib/engine and the Lua scripts. README.md in this folder says how it works and how long it takes.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
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
    under: { type: 'string', default: '' },
    only: { type: 'string' },
  },
});
const SCRIPTS = 'lib/backends/redis/scripts';
/** The suites that may kill a mutant: those of `npm test`, and the simulation and the models of `npm run test:chaos`. */
const SUITES = [
  '--testPathIgnorePatterns',
  '/node_modules/',
  '/test/(benchmark|browser|docs|interop|package|sample-app|sql)/',
  '/test/chaos/(faults|security|shutdown)/',
  '/test/cli/ending',
  '/(contract-(cluster|sentinel|five-servers)|links/\\w+)\\.test',
  '\\.long\\.test\\.ts$',
];

const repository = fileURLToPath(new URL('../..', import.meta.url));
const commit = git('rev-parse', 'HEAD');
const seed = values.seed ?? commit;
const folder = resolve(values.folder ?? join(tmpdir(), `mutants-${commit.slice(0, 10)}`));
const root = join(folder, 'checkout');
const records = join(folder, 'suites');
const results = join(folder, 'results.jsonl');

interface Result {
  readonly mutant: string;
  readonly kind: string;
  readonly outcome: 'killed' | 'timeout' | 'survived' | 'unseen';
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
  embed();
  const seconds = await recordSuites();
  const suites = new SuitesThatSee(root, records, seconds);
  const redis = await startRedis();
  const done = new Map(readResults().map((result) => [result.mutant, result]));
  let judged = 0;
  for (const mutant of drawn()) {
    if (judged >= Number(values.count)) break;
    const text = readFileSync(join(root, mutant.file), 'utf8');
    const shown = show(text, mutant);
    if (values.only !== undefined && !shown.includes(values.only)) continue;
    if (done.has(shown)) {
      judged++;
      continue;
    }
    const seen = suites.of(mutant);
    try {
      writeFileSync(join(root, mutant.file), mutate(text, mutant));
      if (!(await compiles(mutant, redis.client()))) continue;
      judged++;
      const result = { mutant: shown, kind: mutant.kind, ...(await judge(suites, seen)) };
      appendFileSync(results, `${JSON.stringify(result)}\n`);
      console.log(
        `${judged} ${result.outcome} (${result.seconds.toFixed(0)} s) ${shown}${result.by ? `\n    by ${result.by}` : ''}`,
      );
    } finally {
      writeFileSync(join(root, mutant.file), text);
      embed();
    }
  }
  await redis.stop();
  summarize();
}

/** All mutants, in an order that only the seed decides: two of TypeScript, then one of Lua. */
function* drawn(): Generator<Mutant> {
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

/** Runs every suite once, and records what it executes. By suite, the seconds that it took; without those that failed. */
async function recordSuites(): Promise<Map<string, number>> {
  const report = join(records, 'report.json');
  if (!existsSync(report)) {
    console.log('recording what each suite executes');
    mkdirSync(records, { recursive: true });
    const environment = join(root, 'test/mutation/recording-environment.mjs');
    await jest(
      [...SUITES, '--testEnvironment', environment, '--json', '--outputFile', report],
      { RECORDED_SUITES: records },
      3_600,
    );
  }
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  const passed = testResults.filter(({ status }) => status === 'passed');
  console.log(`${passed.length} of ${testResults.length} suites passed without a mutant`);
  return new Map(passed.map(({ name, startTime, endTime }) => [relative(root, name), (endTime - startTime) / 1000]));
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

async function judge(suites: SuitesThatSee, seen: readonly string[]): Promise<Omit<Result, 'mutant' | 'kind'>> {
  const began = Date.now();
  const end = (outcome: Result['outcome'], by?: string) => {
    return { outcome, by, suites: seen.length, seconds: (Date.now() - began) / 1000 };
  };
  let left = seen;
  while (left.length > 0) {
    const failed = await failing(left, suites.duration(left));
    if (failed === 'timeout') return end('timeout');
    if (failed === undefined) return end('survived');
    // A test that a busy machine made fail is no proof: it has to fail again, alone.
    const again = await failing([failed.suite], suites.duration([failed.suite]));
    if (again === 'timeout') return end('timeout');
    if (again !== undefined) return end('killed', `${failed.suite}: ${again.test}`);
    left = left.filter((suite) => suite !== failed.suite);
  }
  return end(seen.length === 0 ? 'unseen' : 'survived');
}

async function failing(suites: readonly string[], seconds: number) {
  const report = join(folder, 'report.json');
  rmSync(report, { force: true });
  const sequencer = join(root, 'test/mutation/likeliest-first.mjs');
  const args = [
    '--bail',
    '--testSequencer',
    sequencer,
    '--json',
    '--outputFile',
    report,
    '--testPathIgnorePatterns',
    '/node_modules/',
    '--runTestsByPath',
    ...suites,
  ];
  const isDone = await jest(args, { LIKELIEST_FIRST: JSON.stringify(suites) }, 120 + 2 * seconds);
  if (!isDone) return 'timeout';
  if (!existsSync(report)) return { suite: suites[0], test: 'jest ended without a report' };
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
  const failed = testResults.find(({ status }) => status === 'failed');
  if (failed === undefined) return undefined;
  const test = failed.assertionResults.find(({ status }) => status === 'failed')?.fullName;
  return {
    suite: relative(root, failed.name),
    test: test ?? failed.message.split('\n').find((line) => line.trim() !== '') ?? '',
  };
}

/** False: it did not end in time, and was ended with everything that it had started. */
async function jest(args: readonly string[], env: Record<string, string>, seconds: number): Promise<boolean> {
  const options = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const command = [
    ...values.under.split(' ').filter(Boolean),
    process.execPath,
    ...options,
    'node_modules/jest/bin/jest.js',
  ];
  const child: ChildProcess = spawn(
    command[0],
    [...command.slice(1), '--silent', '--maxWorkers', values.workers, ...args],
    {
      cwd: root,
      stdio: 'ignore',
      env: { ...process.env, ...env },
      detached: true,
    },
  );
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    process.kill(-(child.pid as number), 'SIGKILL');
  }, seconds * 1000);
  await once(child, 'exit');
  clearTimeout(timer);
  return !isLate;
}

/** A mutant that does not compile is none. */
async function compiles({ file }: Mutant, redis: { call(...args: [string, ...string[]]): Promise<unknown> }) {
  if (!file.endsWith('.lua')) {
    const config = join(root, 'tsconfig.mutants.json');
    const settings = { extends: './tsconfig.json', include: ['lib'], exclude: [] };
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
  const all = readResults();
  const of = (outcome: Result['outcome']) => all.filter((result) => result.outcome === outcome);
  const killed = of('killed').length + of('timeout').length;
  console.log(
    `\nseed ${seed}: ${all.length} mutants, ${killed} killed (${((100 * killed) / all.length).toFixed(1)} %), ${of('timeout').length} of them because the tests did not end`,
  );
  for (const { mutant, outcome, suites } of [...of('survived'), ...of('unseen')])
    console.log(`${outcome} ${suites} suites: ${mutant}`);
}

function readResults(): Result[] {
  if (!existsSync(results)) return [];
  return readFileSync(results, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Result);
}

function embed(): number | null {
  return node(['.ci/embed-lua.mjs']);
}

function node(args: readonly string[]): number | null {
  return spawnSync(process.execPath, args, { cwd: root, stdio: 'ignore' }).status;
}

function git(...args: string[]): string {
  const { stdout, status, stderr } = spawnSync('git', args, { cwd: repository, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout.trim();
}
