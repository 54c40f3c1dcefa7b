import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';

/**
 * Kills `child` and removes `folder`, if given, when this process ends, even by SIGKILL. This works even if the child
 * is stopped. A shell waits until a pipe is closed that only this process holds open.
 */
export function guard(child: ChildProcess, folder = ''): void {
  const { pid } = child;
  if (pid === undefined) return;
  // Each suite of a jest worker has its own copy of this module.
  const shared = globalThis as { [SHELL]?: Writable };
  shared[SHELL] ??= startShell();
  const shell = shared[SHELL];
  shell.write(`add ${pid} ${folder}\n`);
  child.once('exit', () => shell.write(`drop ${pid}\n`));
}

/** One shell guards all children of this process: to start a process takes a large one like a jest worker long. */
const SHELL = Symbol.for('shell-that-guards-the-children');

const SCRIPT = `
set -f
children=''
newline='
'
while IFS=' ' read -r verb pid folder; do
  IFS=$newline
  others=''
  for child in $children; do
    [ "\${child%% *}" = "$pid" ] || others="$others$child$newline"
  done
  children=$others
  [ "$verb" = drop ] || children="$children$pid $folder$newline"
done
IFS=$newline
for child in $children; do
  kill -9 "\${child%% *}"
  rm -rf "\${child#* }"
done`;

function startShell(): Writable {
  // Detached, because Ctrl-C in the terminal must not end the guard before it has finished.
  const shell = spawn('sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  shell.unref();
  (shell.stdin as unknown as { unref(): void }).unref();
  shell.stdin.on('error', () => {});
  return shell.stdin;
}
