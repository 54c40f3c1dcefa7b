import { type ChildProcess, execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { SeededRandom } from '../seeded-random.js';
import type { FlowEvent } from './run-plans.js';
import { judge, type Verdict } from './wait-for-graph.js';

const LOADER = fileURLToPath(new URL('../jest/typescript-loader.mjs', import.meta.url));
const PROGRAM = fileURLToPath(new URL('fuzz-program.ts', import.meta.url));

/** Enough for a busy machine. */
const ALLOWED = { afterwards: 3_000, apart: 300, longest: 20_000 };

/**
 * Runs random flows in three processes, and judges them by a separate wait-for graph. `freezes`: now and then, one of
 * the processes is stopped for a while.
 */
export async function fuzzProcesses(
  url: string,
  seed: number,
  flows: number,
  plans: number,
  freezes = false,
): Promise<Verdict> {
  const runs = ['P', 'Q', 'R'].map((name, i) => {
    const args = [url, `lock:${seed}:`, name, seed * 10 + i, flows, plans].map(String);
    return promisify(execFile)(process.execPath, ['--import', LOADER, PROGRAM, ...args], { maxBuffer: 1e8 });
  });
  const over = new AbortController();
  const children = runs.map(({ child }) => child);
  const frozen = freezes ? freezeAtTimes(children, new SeededRandom(seed), over.signal) : undefined;
  const results = await Promise.all(runs).finally(() => over.abort());
  await frozen;
  const events = results.flatMap(({ stdout }) =>
    stdout
      .trim()
      .split('\n')
      .map((line): FlowEvent => JSON.parse(line)),
  );
  return judge(events, ALLOWED);
}

async function freezeAtTimes(
  children: readonly ChildProcess[],
  chance: SeededRandom,
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    await sleep(chance.whole(500, 2_000));
    const child = chance.pick(children);
    child.kill('SIGSTOP');
    await sleep(chance.whole(100, 3_000));
    child.kill('SIGCONT');
  }
}
