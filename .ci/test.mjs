// All checks: redis-server is there, the build, lint, types, then the tests. Arguments go to jest:
//   npm test -- test/contract -t 'hands the lock'
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { provideRedis, redisVersion } from './provide-redis.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
// NestJS 12 is made of ES modules, which jest loads through an experimental part of Node.
const JEST_OPTIONS = '--experimental-vm-modules --disable-warning=ExperimentalWarning';
const failedSteps = [];

function step(title, program, ...args) {
  console.log(`\n── ${title}`);
  const { status, error } = spawnSync(process.execPath, [join(root, program), ...args], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} ${JEST_OPTIONS}` },
  });
  if (status !== 0) {
    console.error(`${title} failed${error ? `: ${error.message}` : ''}`);
    failedSteps.push(title);
  }
}

function runJest(folder) {
  const report = join(folder, 'report.json');
  step('tests', 'node_modules/jest/bin/jest.js', ...process.argv.slice(2), '--json', '--outputFile', report);
  try {
    return JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
  }
}

/** Prints the closing line. True when all is well. */
function conclude(result) {
  // A file that could not even be loaded has no tests that could count: it counts as one failed test.
  const broken = result.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0);
  for (const file of broken) {
    console.error(`could not be run: ${relative(root, file.name)}`);
  }
  const passed = result.numPassedTests;
  const failed = result.numFailedTests + broken.length;
  const skipped = result.numPendingTests + result.numTodoTests;
  if (passed + failed === 0) {
    console.error('no test ran');
  }
  console.log(failedSteps.length > 0 ? `\nfailed: ${failedSteps.join(', ')}\n` : '');
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  return failedSteps.length === 0 && failed === 0 && passed > 0;
}

if (!provideRedis()) {
  process.exit(1);
}
console.log(`Node.js ${process.version}, ${redisVersion()}`);
step('build', '.ci/build.mjs');
step('lint', 'node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '.');
step('types', 'node_modules/typescript/bin/tsc');
const folder = mkdtempSync(join(tmpdir(), 'jest-'));
const result = runJest(folder);
rmSync(folder, { recursive: true, force: true });
process.exitCode = conclude(result) ? 0 : 1;
