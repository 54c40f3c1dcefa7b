import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { guard } from '../process-guard.js';

const LOADER = fileURLToPath(new URL('../jest/typescript-loader.mjs', import.meta.url));

/**
 * Runs a program of this folder in a separate process, until the test ends it.
 *
 * @returns the process and the first line that it printed
 */
export async function startProcess(program: string, ...args: string[]): Promise<{ child: ChildProcess; line: string }> {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const child = spawn(process.execPath, ['--import', LOADER, file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  guard(child);
  const line = await new Promise<string>((resolve, reject) => {
    let text = '';
    child.stdout.on('data', (data) => {
      text += data;
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')));
    });
    child.once('exit', (code) => reject(new Error(`${program} ended with ${code}: ${text}`)));
  });
  // A worker that is done does not wait for a process that the guard is about to end.
  for (const handle of [child, child.stdout] as unknown as { unref(): void }[]) handle.unref();
  return { child, line };
}
