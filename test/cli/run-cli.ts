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

/** Runs the program in a process of its own. @param url the variable REDIS_URL */
export async function runCli(args: readonly string[], url?: string): Promise<CliResult> {
  const child = startCli(args, url);
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
export function startCli(args: readonly string[], url?: string): ChildProcessWithoutNullStreams {
  const { REDIS_URL: _, ...env } = process.env;
  const child = spawn(process.execPath, ['--no-deprecation', ...PROGRAM, ...args], {
    env: { ...env, NODE_OPTIONS: '', ...(url === undefined ? {} : { REDIS_URL: url }) },
  });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  return child;
}
