// Runs the steps of a test script, one of which is jest, and counts the tests.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';

export const root = fileURLToPath(new URL('..', import.meta.url));
// NestJS 12 consists of ES modules, which jest loads by an experimental feature of Node.js.
export const JEST_OPTIONS = '--experimental-vm-modules --disable-warning=ExperimentalWarning';
const failedSteps = [];
const started = Date.now();
let limit;

/** Limits the script to this many minutes from its start. Whatever still runs then is ended, and counts as failed. */
export function limitTo(minutes) {
  limit = minutes;
}

/** Runs a program of this repository, whose output goes to the terminal. */
export function step(title, program, ...args) {
  console.log(`\n── ${title}`);
  const { status, error } = spawnSync(process.execPath, [join(root, program), ...args], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} ${JEST_OPTIONS}` },
    // 0 would be no limit
    timeout: limit === undefined ? undefined : Math.max(1, started + limit * 60_000 - Date.now()),
  });
  if (status !== 0) {
    const reason = error?.code === 'ETIMEDOUT' ? `the limit of ${limit} minutes is over` : error?.message;
    console.error(`${title} failed${reason ? `: ${reason}` : ''}`);
    failedSteps.push(title);
  }
}

/**
 * Starts a program of this repository that runs during the next steps. The returned function waits for its end, and
 * prints its output.
 */
export function begin(title, program, ...args) {
  const folder = mkdtempSync(join(tmpdir(), 'step-'));
  const output = join(folder, 'output');
  const file = openSync(output, 'w');
  const child = spawn(process.execPath, [join(root, program), ...args], { cwd: root, stdio: ['ignore', file, file] });
  const ended = once(child, 'close');
  closeSync(file);
  return async () => {
    const [status] = await ended;
    console.log(`\n── ${title}\n${readFileSync(output, 'utf8')}`);
    rmSync(folder, { recursive: true });
    if (status === 0) return;
    console.error(`${title} failed`);
    failedSteps.push(title);
  };
}

/** Runs jest with these arguments, prints the closing line `N passed, N failed`, and sets the exit code accordingly. */
export function finishWithJest(...args) {
  finish(runJest('tests', ...args));
}

/** Runs jest with these arguments. Returns its report. */
export function runJest(title, ...args) {
  const folder = mkdtempSync(join(tmpdir(), 'jest-'));
  const report = join(folder, 'report.json');
  step(title, 'node_modules/jest/bin/jest.js', ...args, '--json', '--outputFile', report);
  const result = read(report);
  rmSync(folder, { recursive: true, force: true });
  return result;
}

/** Prints the closing line `N passed, N failed` for all these reports, and sets the exit code accordingly. */
export function finish(...reports) {
  process.exitCode = conclude(reports) ? 0 : 1;
}

/** The arguments that make jest run a folder which its configuration leaves to a separate script. */
export function only(folder) {
  return ['--testPathIgnorePatterns', '/node_modules/', '--testPathPatterns', folder];
}

function read(report) {
  try {
    return JSON.parse(readFileSync(report, 'utf8'));
  } catch {
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
  }
}

/** The first lines of what a test threw: they say what was expected, and what came. */
function beginningOf([message = '']) {
  const lines = stripVTControlCharacters(message)
    .split('\n')
    .filter((line) => !/^\s*(at .*)?$/.test(line));
  return lines
    .slice(0, 5)
    .map((line) => `    ${line.trim()}`)
    .join('\n');
}

/** Prints the closing line. Returns true if nothing failed. */
function conclude(reports) {
  const sum = (count) => reports.reduce((total, report) => total + count(report), 0);
  // A file that could not even be loaded has no tests to count, so it counts as one failed test.
  const broken = reports.flatMap(({ testResults }) =>
    testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0),
  );
  for (const file of broken) {
    console.error(`could not be run: ${relative(root, file.name)}`);
  }
  const passed = sum(({ numPassedTests }) => numPassedTests);
  const failed = sum(({ numFailedTests }) => numFailedTests) + broken.length;
  const skipped = sum(({ numPendingTests, numTodoTests }) => numPendingTests + numTodoTests);
  if (passed + failed === 0) {
    console.error('no test ran');
  }
  const pending = reports.flatMap(({ testResults }) =>
    testResults.flatMap(({ name, assertionResults }) =>
      assertionResults
        .filter(({ status }) => status === 'pending' || status === 'todo')
        .map(({ fullName }) => `${relative(root, name)}: ${fullName}`),
    ),
  );
  // With -t, jest skips all other tests.
  if (pending.length > 0 && pending.length <= 30) console.log(`\nskipped:\n  ${pending.join('\n  ')}`);
  const red = reports.flatMap(({ testResults }) =>
    testResults.flatMap(({ name, assertionResults }) =>
      assertionResults
        .filter(({ status }) => status === 'failed')
        .map(
          ({ fullName, failureMessages }) => `${relative(root, name)}: ${fullName}\n${beginningOf(failureMessages)}`,
        ),
    ),
  );
  // Once more at the end, where a log that was cut still has it.
  if (red.length > 0) console.log(`\nfailed:\n  ${red.slice(0, 30).join('\n  ')}`);
  const seconds = Math.round((Date.now() - started) / 1_000);
  console.log(`\ntook ${Math.floor(seconds / 60)} min ${seconds % 60} s`);
  console.log(failedSteps.length > 0 ? `\nfailed: ${failedSteps.join(', ')}\n` : '');
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
  return failedSteps.length === 0 && failed === 0 && passed > 0;
}
