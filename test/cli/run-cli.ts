import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { runCommandLine } from '../../lib/cli/run-command-line.js';
import { guard } from '../support/process-guard.js';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** What `npm test` has just built; otherwise the sources, so that dist is not needed. */
const PROGRAM =
  process.env.JUST_BUILT === undefined
    ? ['--import', path('../support/jest/typescript-loader.mjs'), path('../../lib/cli.ts')]
    : [path('../../dist/esm/cli.js')];

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliSettings {
  /** The path, relative to this file, of a module that the process loads first. */
  readonly preload?: string;
  /** The path of a file that gets what the program prints. Default: it is returned. */
  readonly output?: string;
}

/** Commands of this process run one after another, so that what is printed belongs to one of them. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a command in this process, in a tenth of the time that a process takes. How the program itself ends is tested by
 * {@link runProgram}, in ending.test.ts.
 *
 * @param url the variable REDIS_URL
 */
export async function runCli(args: readonly string[], url?: string): Promise<CliResult> {
  const run = last.then(() => runHere(args, url));
  last = run.catch(() => {});
  return run;
}

async function runHere(args: readonly string[], url: string | undefined): Promise<CliResult> {
  const printed = { stdout: '', stderr: '' };
  const restore = (['stdout', 'stderr'] as const).map((name) => {
    const stream = process[name];
    const listeners = stream.rawListeners('error');
    const { write } = stream;
    stream.write = (chunk: string | Uint8Array, ...more: unknown[]) => {
      printed[name] += chunk;
      const done = more.at(-1);
      if (typeof done === 'function') setImmediate(() => done());
      return true;
    };
    return () => {
      stream.write = write;
      for (const listener of stream.rawListeners('error')) {
        if (!listeners.includes(listener)) stream.off('error', listener as () => void);
      }
    };
  });
  const { REDIS_URL: _, ...env } = process.env;
  try {
    const code = await runCommandLine(args, { ...env, ...(url === undefined ? {} : { REDIS_URL: url }) }, () => 'any');
    return { code, ...printed };
  } finally {
    for (const undo of restore) undo();
  }
}

/** As {@link runCli}, in a process of its own. */
export async function runProgram(args: readonly string[], url?: string, settings?: CliSettings): Promise<CliResult> {
  const child = startCli(args, url, settings);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data) => {
    stdout += data;
  });
  child.stderr.on('data', (data) => {
    stderr += data;
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, stdout, stderr };
}

/** As {@link runProgram}, while it runs. */
export function startCli(
  args: readonly string[],
  url?: string,
  { preload, output }: CliSettings = {},
): ChildProcessWithoutNullStreams {
  const { REDIS_URL: _, ...env } = process.env;
  const first = preload === undefined ? [] : ['--import', path(preload)];
  const command = [process.execPath, '--no-deprecation', ...first, ...PROGRAM, ...args];
  // Only a shell opens the file as a user's shell would.
  const shell = output === undefined ? [] : ['sh', '-c', `exec "$@" > ${output}`, 'sh'];
  const [program, ...rest] = [...shell, ...command];
  const child = spawn(program, rest, {
    env: { ...env, NODE_OPTIONS: '', ...(url === undefined ? {} : { REDIS_URL: url }) },
  });
  guard(child);
  return child;
}
