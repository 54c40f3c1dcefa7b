// npm run jest: the given tests, on the sources, without the checks of npm test. All arguments go to jest.
//   npm run jest -- test/engine/queue -t 'order'
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { JEST_OPTIONS, root } from './jest-run.mjs';
import { leftOut, SUITES } from './suites.mjs';

const args = process.argv.slice(2);

function node(...words) {
  const { status } = spawnSync(process.execPath, words, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exitCode = status ?? 1;
  return status === 0;
}

/** Names the suites of a path pattern that matches only their tests. Jest only says that it found none. */
function hintAt(pattern) {
  let matches;
  try {
    matches = new RegExp(pattern, 'i');
  } catch {
    return;
  }
  const ignored = leftOut().map((path) => new RegExp(path.replace('<rootDir>/', root)));
  const found = readdirSync(join(root, 'test'), { recursive: true })
    .map((file) => join(root, 'test', String(file)))
    .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules') && matches.test(file));
  if (found.length === 0 || !found.every((file) => ignored.some((path) => path.test(file)))) return;
  const commands = Object.entries(SUITES)
    .filter(([, { tests }]) => tests !== undefined && found.some((file) => new RegExp(tests).test(file)))
    .map(([name]) => `npm run suite -- ${name}`);
  console.error(`\nnpm run jest leaves out the tests of '${pattern}'. They are in ${commands.join(', ')}.`);
}

if (node('.ci/build/embed.mjs')) {
  node(...JEST_OPTIONS.split(' '), 'node_modules/jest/bin/jest.js', ...args);
  const options = { testNamePattern: { type: 'string', short: 't' } };
  const { positionals } = parseArgs({ args, options, strict: false, allowPositionals: true });
  for (const pattern of positionals) hintAt(pattern);
}
