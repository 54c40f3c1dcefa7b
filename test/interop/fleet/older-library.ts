import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, renameSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { buildBase } from '../../benchmark/pairs/build-base.js';

/** The last commit whose processes know no line. */
export const OLDER = '6046f5f4';
/** The last commit whose processes grant a lock for a second, which has to be confirmed. */
export const CLAIMING = '37d45544';

/** Whether the history of this repository is here. It is not in a shallow clone or in a tarball. */
export function hasOlder(commit = OLDER): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** The folder of an older version, with `esm/core.js`. It is built once. */
export function olderLibrary(commit = OLDER): string {
  const folder = resolve('node_modules/.cache', `library-${commit}`);
  if (existsSync(folder)) return folder;
  const built = buildBase(commit);
  const copy = `${folder}-${process.pid}`;
  try {
    cpSync(built.folder, copy, { recursive: true });
    renameSync(copy, folder);
  } catch (error) {
    // Another test file may have built it meanwhile.
    if (!existsSync(folder)) throw error;
  } finally {
    built.remove();
    rmSync(copy, { recursive: true, force: true });
  }
  return folder;
}
