import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The name of the thread's file beside the file into which an application was bundled. */
const BESIDE_BUNDLE = 'nestjs-redis-lock-thread';

const REMEDY = `If the application is bundled, leave nestjs-redis-lock out of the bundle, or bundle nestjs-redis-lock/thread into a file ${BESIDE_BUNDLE}.js beside it. See docs/blocked-event-loop.md`;

/** @throws Error that says what to do if there is no file for the thread */
export function findThreadFile(): string {
  const here = thisFile();
  const file = here === undefined ? undefined : (inPackage(here) ?? besideBundle(here) ?? inNodeModules(here));
  if (file === undefined) throw new Error(`there is no file for the thread. ${REMEDY}`);
  return file;
}

function thisFile(): string | undefined {
  try {
    return fileURLToPath(import.meta.url);
  } catch {
    return process.argv[1]; // a bundler has replaced what is known of the file
  }
}

/** Beside the sources, or beside the folder of the chunk in which this code is. */
function inPackage(here: string): string | undefined {
  const folder = dirname(here);
  const isOurs = here.endsWith('.ts') || (basename(folder) === 'chunks' && basename(here) === 'core.js');
  const file = join(dirname(folder), here.endsWith('.ts') ? 'thread.ts' : 'thread.js');
  return isOurs && existsSync(file) ? file : undefined;
}

function besideBundle(here: string): string | undefined {
  const files = ['.js', '.cjs', '.mjs'].map((extension) => join(dirname(here), BESIDE_BUNDLE + extension));
  return files.find((file) => existsSync(file));
}

/** The package is installed, although this copy of it is in a bundle. */
function inNodeModules(here: string): string | undefined {
  try {
    return createRequire(here).resolve('nestjs-redis-lock/thread');
  } catch {
    return undefined;
  }
}
