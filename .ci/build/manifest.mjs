// npm pack and npm publish read package.json after `prepack` and before `postpack`:
//   node .ci/build/manifest.mjs publish [folder]    leaves in package.json only what users of the package need
//   node .ci/build/manifest.mjs restore [folder]    brings the whole file back
// npm does not run `postpack` if packing fails or is interrupted. So a process waits for the end of npm, and restores the
// file then:
//   node .ci/build/manifest.mjs restore-after <pid> [folder]
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Fields for developers of the library. An installation of the package must not run any script. */
const OURS = ['scripts', 'devDependencies', 'overrides', 'allowScripts'];

const [step, ...rest] = process.argv.slice(2);
const npm = step === 'restore-after' ? Number(rest.shift()) : undefined;
const [folder = fileURLToPath(new URL('../..', import.meta.url))] = rest;
const path = resolve(folder, 'package.json');
const whole = resolve(folder, 'dist/package.json'); // not published

if (step === 'publish') {
  const text = readFileSync(path, 'utf8');
  mkdirSync(join(folder, 'dist'), { recursive: true });
  writeFileSync(whole, text);
  const manifest = JSON.parse(text);
  for (const field of OURS) delete manifest[field];
  if (process.env.npm_lifecycle_event === 'prepack') restoreAfterNpm();
  writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
} else if (step === 'restore') {
  restore();
} else if (step === 'restore-after') {
  const timer = setInterval(() => {
    if (isRunning(npm)) return;
    clearInterval(timer);
    restore();
  }, 50);
}

function restore() {
  if (existsSync(whole)) renameSync(whole, path);
}

/**
 * Our parent is the shell that npm has started, or npm itself if the shell has replaced itself by this script. Without
 * `ps`, as on Windows, nothing is started; then `git restore package.json` helps.
 */
function restoreAfterNpm() {
  const { stdout } = spawnSync('ps', ['-o', 'ppid=,comm=', '-p', String(process.ppid)], { encoding: 'utf8' });
  const [, grandparent, command] = /^\s*(\d+)\s+(.*\S)/.exec(stdout ?? '') ?? [];
  if (command === undefined) return;
  // The title of npm is `npm publish`, which ends like a shell.
  const pid = /^\S*sh$/.test(command) ? grandparent : process.ppid;
  const args = [fileURLToPath(import.meta.url), 'restore-after', String(pid), folder];
  spawn(process.execPath, args, { detached: true, stdio: 'ignore' }).unref();
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch ({ code }) {
    return code === 'EPERM';
  }
}
