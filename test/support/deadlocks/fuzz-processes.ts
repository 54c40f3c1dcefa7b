import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { FlowEvent } from './run-plans.js';
import { judge, type Verdict } from './wait-for-graph.js';

const LOADER = fileURLToPath(new URL('../typescript-loader.mjs', import.meta.url));
const PROGRAM = fileURLToPath(new URL('fuzz-program.ts', import.meta.url));

/** On a machine that is busy with other things. */
const ALLOWED = { afterwards: 3_000, apart: 300, longest: 20_000 };

/** Random flows of three processes, judged by their own wait-for graph. */
export async function fuzzProcesses(url: string, seed: number, flows: number, plans: number): Promise<Verdict> {
  const runs = ['P', 'Q', 'R'].map(async (name, i) => {
    const args = [url, `lock:${seed}:`, name, seed * 10 + i, flows, plans].map(String);
    const command = ['--import', LOADER, PROGRAM, ...args];
    const { stdout } = await promisify(execFile)(process.execPath, command, { maxBuffer: 1e8 });
    return stdout
      .trim()
      .split('\n')
      .map((line): FlowEvent => JSON.parse(line));
  });
  return judge((await Promise.all(runs)).flat(), ALLOWED);
}
