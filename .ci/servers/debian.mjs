// Servers of other Debian releases than this machine's. Their packages and libraries are unpacked in
// node_modules/.cache, and nothing is installed.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { root } from '../jest-run.mjs';

const CACHE = join(root, 'node_modules/.cache/servers');

/** What follows the name of a program that a script starts. */
const UNPACKED = '.unpacked';

/**
 * A folder like `/`, with these programs in it. It is downloaded once.
 *
 * @param suite such as 'trixie'
 * @param packages those with the programs, without the libraries that they need
 * @param programs paths in the folder: 'usr/bin/redis-server'
 * @throws Error if there is no apt-get, or the mirror cannot be reached
 */
export function provideDebian({ suite, packages, programs }) {
  const folder = join(CACHE, `${suite}-${packages[0]}`);
  if (programs.every((program) => existsSync(join(folder, program + UNPACKED)))) return folder;
  const unfinished = `${folder}.${process.pid}`;
  try {
    unpack(suite, packages, unfinished);
    rmSync(folder, { recursive: true, force: true });
    renameSync(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  for (const program of programs) replaceByScript(folder, program);
  return folder;
}

function unpack(suite, packages, folder) {
  for (const path of ['lists/partial', 'cache/archives/partial', 'debs']) {
    mkdirSync(join(folder, path), { recursive: true });
  }
  const source = join(folder, 'sources.list');
  writeFileSync(source, `deb [trusted=yes] ${mirror()} ${suite} main\n`);
  const options = [
    ...['-o', `Dir::State::Lists=${join(folder, 'lists')}`],
    ...['-o', `Dir::Etc::SourceList=${source}`, '-o', 'Dir::Etc::SourceParts=/dev/null'],
    ...['-o', `Dir::Cache=${join(folder, 'cache')}`, '-o', 'APT::Sandbox::User=root'],
  ];
  run('apt-get', [...options, '-q', 'update']);
  const only = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'].map((kind) => `--no-${kind}`);
  const needed = run('apt-cache', [...options, 'depends', '--recurse', ...only, ...packages]);
  // What the packages need to be set up, such as Perl, a program does not need to run.
  const libraries = needed.split('\n').filter((line) => /^(lib|zlib1g)[\w.+-]*$/.test(line));
  const debs = join(folder, 'debs');
  run('apt-get', [...options, '-q', 'download', ...new Set([...packages, ...libraries])], debs);
  for (const deb of readdirSync(debs)) run('dpkg', ['-x', join(debs, deb), folder]);
  for (const path of ['lists', 'cache', 'debs']) rmSync(join(folder, path), { recursive: true });
}

/** The mirror that this machine uses itself. On other systems with apt-get, such as Ubuntu, Debian's own. */
function mirror() {
  const folder = '/etc/apt/sources.list.d';
  const files = [
    '/etc/apt/sources.list',
    ...(existsSync(folder) ? readdirSync(folder) : []).map((name) => join(folder, name)),
  ];
  const texts = files.filter(existsSync).map((file) => readFileSync(file, 'utf8'));
  const found = texts.map((text) => /^(?:deb (?:\[.*?\] )?|URIs: )(https?:\S*debian\/?)(?=\s|$)/m.exec(text)?.[1]);
  return found.find(Boolean) ?? 'https://deb.debian.org/debian';
}

/**
 * Starts the program with the loader and the libraries of its release, whatever this machine has. It is told the path
 * of the script as its own, because PostgreSQL looks for its other programs and its files from there.
 */
function replaceByScript(folder, program) {
  const places = readdirSync(join(folder, 'usr/lib')).filter((name) => name.endsWith('-linux-gnu'));
  const libraries = join(folder, 'usr/lib', places[0]);
  const loader = readdirSync(libraries).find((name) => /^ld-linux-.*\.so\.\d$/.test(name));
  const script = join(folder, program);
  const words = [join(libraries, loader), '--argv0', script, '--library-path', libraries, script + UNPACKED];
  renameSync(script, script + UNPACKED);
  writeFileSync(script, `#!/bin/sh\nexec ${words.map((word) => `'${word}'`).join(' ')} "$@"\n`);
  chmodSync(script, 0o755);
}

function run(program, args, cwd) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8', timeout: 240_000 });
  if (error?.code === 'ENOENT') throw new Error(`there is no ${program} on the PATH`);
  if (status !== 0) throw error ?? new Error(stderr.trim().split('\n').at(-1));
  return stdout;
}
