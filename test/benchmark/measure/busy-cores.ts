import { type ChildProcess, spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { guard } from '../../support/process-guard.js';

/**
 * Keeps every core of this machine busy, with a process for each.
 *
 * @returns a function that ends these processes
 */
export function keepCoresBusy(): () => void {
  const start = (): ChildProcess => {
    const child = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
    guard(child);
    return child;
  };
  const children = Array.from({ length: availableParallelism() }, start);
  return () => {
    for (const child of children) child.kill('SIGKILL');
  };
}
