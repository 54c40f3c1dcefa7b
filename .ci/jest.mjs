// npm run jest: the given tests, on the sources, without the checks of npm test. All arguments go to jest.
//   npm run jest -- test/engine/queue -t 'order'
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import jestConfig, { TOPOLOGIES } from '../jest.config.mjs';
import { JEST_OPTIONS, root } from './jest-run.mjs';

/** The tests that npm run jest leaves out, and the script that runs them. */
const SCRIPTS = [
  ['test:long', '\\.long\\.test\\.ts$'],
  ['test:topologies', TOPOLOGIES],
  ['test:package', '/test/(package|cli)/'],
  ...['docs', 'browser', 'chaos', 'interop', 'sql'].map((name) => [`test:${name}`, `/test/${name}/`]),
];

const args = process.argv.slice(2);

function node(...words) {
  const { status } = spawnSync(process.execPath, words, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exitCode = status ?? 1;
  return status === 0;
}

/** Names the scripts of a path pattern that matches only tests of other scripts. Jest only says that it found none. */
function hintAt(pattern) {
  let matches;
  try {
    matches = new RegExp(pattern, 'i');
  } catch {
    return;
  }
  const ignored = jestConfig.testPathIgnorePatterns.map((path) => new RegExp(path.replace('<rootDir>/', root)));
  const found = readdirSync(join(root, 'test'), { recursive: true })
    .map((file) => join(root, 'test', String(file)))
    .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules') && matches.test(file));
  if (found.length === 0 || !found.every((file) => ignored.some((path) => path.test(file)))) return;
  const scripts = SCRIPTS.filter(([, tests]) => found.some((file) => new RegExp(tests).test(file)));
  const commands = scripts.map(([script]) => `npm run ${script}`);
  console.error(`\nnpm run jest leaves out the tests of '${pattern}'. They are in ${commands.join(', ')}.`);
}

if (node('.ci/embed.mjs')) {
  node(...JEST_OPTIONS.split(' '), 'node_modules/jest/bin/jest.js', ...args);
  const options = { testNamePattern: { type: 'string', short: 't' } };
  const { positionals } = parseArgs({ args, options, strict: false, allowPositionals: true });
  for (const pattern of positionals) hintAt(pattern);
}
