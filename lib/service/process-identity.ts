import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { ClientIdentity } from '../engine/describe-holder.js';

interface Package {
  readonly name?: unknown;
  readonly version?: unknown;
}

let applicationPackage: Package | undefined;

/**
 * The identity of this process. The application's version comes from its package.json, and so does its name unless one
 * is given.
 */
export function processIdentity(applicationName: string | undefined): ClientIdentity {
  applicationPackage ??= findPackage();
  const { name, version } = applicationPackage;
  return {
    application: applicationName ?? (typeof name === 'string' && name !== '' ? name : 'node'),
    host: hostname(),
    pid: process.pid,
    version: typeof version === 'string' ? version : '',
  };
}

/** The nearest package.json with a name, above the started program or, failing that, above the working directory. */
function findPackage(): Package {
  const program = process.argv[1];
  const folders = program === undefined ? [process.cwd()] : [dirname(resolve(program)), process.cwd()];
  for (const start of folders) {
    if (start.split(/[\\/]/).includes('node_modules')) continue; // started by a tool: nest start, jest, pm2
    for (let folder = start; ; folder = dirname(folder)) {
      const found = readPackage(join(folder, 'package.json'));
      if (found?.name !== undefined) return found;
      if (dirname(folder) === folder) break;
    }
  }
  return {};
}

function readPackage(path: string): Package | undefined {
  try {
    return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Package) : undefined;
  } catch {
    return undefined;
  }
}
