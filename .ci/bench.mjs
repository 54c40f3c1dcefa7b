// npm run bench: this library and its peers, which test/benchmark/package.json names. Arguments go to test/benchmark/benchmark.ts.
import { spawnSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './jest-run.mjs';

function run(program, ...args) {
  const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

run(process.execPath, '.ci/build.mjs');
run('npm', 'install', '--prefix', 'test/benchmark', '--silent', '--no-audit', '--no-fund', '--prefer-offline');
run(process.execPath, 'node_modules/typescript/bin/tsc', '-p', 'test/benchmark/tsconfig.json');
// The compiled benchmark is where the library's name leads to the build; from there it has to find the peers.
symlinkSync(join(root, 'test/benchmark/node_modules'), join(root, 'dist/benchmark/node_modules'), 'junction');
run(process.execPath, 'dist/benchmark/benchmark/benchmark.js', ...process.argv.slice(2));
