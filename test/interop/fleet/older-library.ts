import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, renameSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { buildBase } from '../../benchmark/pairs/build-base.js';

/** The last commit whose processes know no line. */
export const OLDER = '6046f5f4';

/** Whether the history of this repository is here. It is not in a shallow clone or in a tarball. */
export function hasOlder(): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${OLDER}^{commit}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** The folder of the older version, with `esm/core.js`. It is built once. */
export function olderLibrary(): string {
  const folder = resolve('node_modules/.cache', `library-${OLDER}`);
  if (existsSync(folder)) return folder;
  const built = buildBase(OLDER);
  const copy = `${folder}-${process.pid}`;
  try {
    cpSync(built.folder, copy, { recursive: true });
    renameSync(copy, folder);
  } finally {
    built.remove();
    rmSync(copy, { recursive: true, force: true });
  }
  return folder;
}
