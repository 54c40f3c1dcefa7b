import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Kills `child`, also when it is stopped, and removes `folder`, if it has one, when this process ends, in whatever way,
 * SIGKILL included: a shell waits for the end of a pipe that only this process holds open. It goes away with the child.
 */
export function guard(child: ChildProcess, folder = ''): void {
  const script = 'read -r _ || { kill -9 "$1"; rm -rf "$2"; }';
  // Detached: a Ctrl-C in the terminal must not end the guard before its work is done.
  const shell = spawn('sh', ['-c', script, 'guard', String(child.pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  shell.unref();
  (shell.stdin as unknown as { unref(): void }).unref();
  shell.stdin.on('error', () => {});
  child.once('exit', () => shell.stdin.end('over\n'));
}
