import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The library of another commit, built in a temporary folder, with the dependencies that are installed here. */
export interface BuiltLibrary {
  /** The folder that contains `esm/core.js`. */
  readonly folder: string;
  remove(): void;
}

/** @throws Error when there is no such commit, or it does not build */
export function buildBase(ref: string): BuiltLibrary {
  const root = process.cwd();
  const folder = mkdtempSync(join(tmpdir(), 'bench-base-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    const archive = execFileSync('git', ['archive', ref], { cwd: root, maxBuffer: 2 ** 30 });
    execFileSync('tar', ['-x', '-C', folder], { input: archive });
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const built = join(folder, 'built');
    // Older commits have the program one folder up.
    const program = ['.ci/build/build.mjs', '.ci/build.mjs'].find((file) => existsSync(join(folder, file))) ?? '';
    execFileSync(process.execPath, [program, built], { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] });
    return { folder: built, remove };
  } catch (error) {
    remove();
    throw error;
  }
}
