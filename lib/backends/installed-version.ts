import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/**
 * The oldest version that locks can use of each optional package. As peers of this library, all versions are accepted:
 * npm would otherwise not install it beside an older one, which an application has for something else. So a version is
 * checked when it is used.
 */
const OLDEST = {
  ioredis: '5.4.1',
  iovalkey: '0.4.0',
  redis: '5.0.0',
  '@redis/client': '5.0.0',
  pg: '8.11.0',
  mysql2: '3.9.0',
} as const;

export type OptionalPackage = keyof typeof OLDEST;

/**
 * Says that an installed package is too old: `redis 4.7.1 is too old: locks need redis 5.0.0 or later`. Undefined if it
 * is recent enough, or its version is not known: it is not installed, or is part of a bundle.
 */
export function tooOld(name: OptionalPackage): string | undefined {
  const version = versionOf(name);
  if (version === undefined || isAtLeast(version, OLDEST[name])) return undefined;
  return `${name} ${version} is too old: locks need ${name} ${OLDEST[name]} or later`;
}

/** The same about an object that the user has created, if `isFrom` says that it comes from the installed package. */
export function tooOldFor<T>(name: OptionalPackage, isFrom: (module: T) => boolean): string | undefined {
  const problem = tooOld(name);
  return problem !== undefined && isFrom(fromHere()(name)) ? problem : undefined;
}

const versions = new Map<string, string | undefined>();

function versionOf(name: string): string | undefined {
  if (!versions.has(name)) versions.set(name, readVersion(name));
  return versions.get(name);
}

/** Looks for the file itself, because some packages do not export their package.json. */
function readVersion(name: string): string | undefined {
  try {
    for (let folder = dirname(fromHere().resolve(name)); folder !== dirname(folder); folder = dirname(folder)) {
      const manifest = readManifest(folder);
      if (manifest?.name === name) return manifest.version;
    }
  } catch {} // not installed, or in a bundle
  return undefined;
}

function readManifest(folder: string): { readonly name?: string; readonly version?: string } | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  } catch {
    return undefined;
  }
}

/** Bundlers do not follow it. */
function fromHere(): NodeJS.Require {
  return createRequire(import.meta.url);
}

function isAtLeast(version: string, oldest: string): boolean {
  const [found, needed] = [version, oldest].map((text) => text.split(/[.-]/, 3).map(Number));
  const difference = found.map((part, n) => part - needed[n]).find((part) => part !== 0);
  return difference === undefined || difference > 0;
}
