// npm run bench -- NAME: the measurement of that name, with the other arguments. Without a name, this library beside
// its peers; `npm run bench -- seq` is one of these workloads.
import { spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './jest-run.mjs';

const TYPESCRIPT = ['--import', './test/support/jest/typescript-loader.mjs'];

const measurements = {
  /** This library beside its peers, which test/benchmark/package.json names. */
  peers(...args) {
    build();
    installPeers();
    compile('test/benchmark/tsconfig.json');
    // The compiled benchmark is in a folder where the library's name resolves to the build. From there it has to find
    // the peers.
    symlinkSync(join(root, 'test/benchmark/node_modules'), join(root, 'dist/benchmark/node_modules'), 'junction');
    node('dist/benchmark/benchmark/benchmark.js', ...args);
  },
  /** Two commits, or two clients, in turns. */
  pairs(...args) {
    if (args.includes('--help')) return explain('test/benchmark/pairs/pairs.ts');
    build();
    compile('test/benchmark/pairs/tsconfig.json');
    node('dist/benchmark/benchmark/pairs/pairs.js', ...args);
  },
  /** The load that the dashboard causes. */
  dashboard(...args) {
    build();
    node('test/benchmark/dashboard.mjs', ...args);
  },
  /** How long the dashboard's computations make other requests wait. */
  stalls(...args) {
    build();
    node('test/benchmark/dashboard-stalls.mjs', ...args);
  },
  /** The files of lib that one call passes through. */
  files(...args) {
    node('.ci/build/embed.mjs');
    node(...TYPESCRIPT, 'test/benchmark/files-crossed.mjs', ...args);
  },
  /** How long importing the library takes. */
  import(...args) {
    build();
    node('test/benchmark/import-time.mjs', ...args);
  },
  /** What the thread of keepWhileBlocked costs. */
  thread(...args) {
    build();
    node(...TYPESCRIPT, 'test/benchmark/thread.mjs', ...args);
  },
  /** Locks in SQL compared with handwritten ones. */
  sql(...args) {
    build();
    node(...TYPESCRIPT, 'test/benchmark/sql-locks.mjs', ...args);
  },
  /** What a hand-over costs as more services wait, beside peers. */
  crowd(...args) {
    if (args.includes('--help')) return explain('test/benchmark/crowd/crowd.ts');
    if (!args.includes('--built')) build();
    installPeers();
    node(...TYPESCRIPT, 'test/benchmark/crowd/crowd.ts', ...args);
  },
  /** A lock that n may hold beside semaphores. */
  permits(...args) {
    if (!args.includes('--built')) build();
    installPeers();
    node(...TYPESCRIPT, 'test/benchmark/permits.mjs', ...args.filter((arg) => arg !== '--built'));
  },
  /** How long a lock stands still after a death. */
  deaths(...args) {
    if (!args.includes('--built')) build();
    node(...TYPESCRIPT, 'test/benchmark/deaths.mjs', ...args.filter((arg) => arg !== '--built'));
  },
  /** How long waiters that are killed, stopped, blocked or cut off hold up the next one. */
  waiters(...args) {
    if (args.includes('--help')) return explain('test/benchmark/waiters.ts');
    node('.ci/build/embed.mjs');
    node(...TYPESCRIPT, 'test/benchmark/waiters.ts', ...args);
  },
  /** One result for many callers on several processes: a single flight beside the same by hand. */
  flights(...args) {
    node('.ci/build/embed.mjs');
    node(...TYPESCRIPT, 'test/benchmark/flights/flights.ts', ...args);
  },
};

/** Prints the comment at the head of a program, which says how it is called. */
function explain(program) {
  const [comment] = /^(\/\/.*\n)+/.exec(readFileSync(join(root, program), 'utf8')) ?? [''];
  console.log(comment.replaceAll(/^\/\/ ?/gm, ''));
}

function build() {
  node('.ci/build/build.mjs');
}

function installPeers() {
  run('npm', 'install', '--prefix', 'test/benchmark', '--silent', '--no-audit', '--no-fund', '--prefer-offline');
}

function compile(project) {
  node('node_modules/typescript/bin/tsc', '-p', project);
}

function node(...args) {
  run(process.execPath, ...args);
}

function run(program, ...args) {
  const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

const [what, ...args] = process.argv.slice(2);
if (what !== undefined && Object.hasOwn(measurements, what)) measurements[what](...args);
else if (what === '--help') console.log(`npm run bench -- NAME, one of ${Object.keys(measurements).join(', ')}`);
else measurements.peers(...process.argv.slice(2));
