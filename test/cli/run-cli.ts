import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

/** What `npm test` has just built; else the sources, so that dist need not be there. */
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
  /** A module that the process loads first, relative to this file. */
  readonly preload?: string;
  /** The path of a file that gets what the program prints. Default: it is returned. */
  readonly output?: string;
}

/** Runs the program in a process of its own. @param url the variable REDIS_URL */
export async function runCli(args: readonly string[], url?: string, settings?: CliSettings): Promise<CliResult> {
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

/** As {@link runCli}, while it runs. */
export function startCli(
  args: readonly string[],
  url?: string,
  { preload, output }: CliSettings = {},
): ChildProcessWithoutNullStreams {
  const { REDIS_URL: _, ...env } = process.env;
  const first = preload === undefined ? [] : ['--import', path(preload)];
  const command = [process.execPath, '--no-deprecation', ...first, ...PROGRAM, ...args];
  // Only a shell opens the file as a user's would.
  const shell = output === undefined ? [] : ['sh', '-c', `exec "$@" > ${output}`, 'sh'];
  const [program, ...rest] = [...shell, ...command];
  const child = spawn(program, rest, {
    env: { ...env, NODE_OPTIONS: '', ...(url === undefined ? {} : { REDIS_URL: url }) },
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  return child;
}
