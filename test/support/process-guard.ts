import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Kills `child` and removes `folder`, if given, when this process ends, even by SIGKILL. This works even if the child
 * is stopped. A shell waits until a pipe is closed that only this process holds open. The shell ends with the child.
 */
export function guard(child: ChildProcess, folder = ''): void {
  const script = 'read -r _ || { kill -9 "$1"; rm -rf "$2"; }';
  // Detached, because Ctrl-C in the terminal must not end the guard before it has finished.
  const shell = spawn('sh', ['-c', script, 'guard', String(child.pid), folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  shell.unref();
  (shell.stdin as unknown as { unref(): void }).unref();
  shell.stdin.on('error', () => {});
  child.once('exit', () => shell.stdin.end('over\n'));
}
