// npm run suite -- histories: histories of the simulation, of broken backends and of processes under faults, checked by
// Porcupine as well as by our own checker.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { only, root, runJest } from './jest-run.mjs';
import { skip } from './servers/install.mjs';

const porcupine = join(root, 'test/histories/porcupine');
if (spawnSync('go', ['mod', 'download'], { cwd: porcupine, stdio: ['ignore', 'inherit', 'inherit'] }).status !== 0) {
  skip('The Go module of Porcupine cannot be downloaded here. Our own', 'checker runs in npm run suite -- chaos.');
}

const started = Date.now();
const scratch = mkdtempSync(join(tmpdir(), 'histories-'));
const program = join(scratch, 'porcupine');
const run = (command, args, cwd = root) =>
  spawnSync(command, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] }).status;
const loader = ['--import', './test/support/jest/typescript-loader.mjs'];
if (run(process.execPath, ['.ci/build/embed.mjs']) !== 0) process.exit(1);
// .ci/run has them from the suite chaos. Here, real processes are killed and stopped to get some.
const folder = process.env.CHAOS_HISTORIES ?? recordHistories();
const isFine =
  run('go', ['build', '-o', program, '.'], porcupine) === 0 &&
  run(process.execPath, [...loader, 'test/histories/check-histories.ts', program, folder]) === 0;
rmSync(scratch, { recursive: true, force: true });

const seconds = Math.round((Date.now() - started) / 1000);
console.log(`\ntook ${Math.floor(seconds / 60)} min ${seconds % 60} s`);
console.log(isFine ? '1 passed, 0 failed' : '0 passed, 1 failed');
process.exitCode = isFine ? 0 : 1;

function recordHistories() {
  process.env.CHAOS_HISTORIES = scratch;
  // Whether these tests pass is checked by the suite chaos.
  runJest('faults', ...only('test/chaos/faults/(processes|permits)'), '--silent');
  return scratch;
}
