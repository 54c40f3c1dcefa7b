import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './markdown.js';
import type { BlockModule } from './typescript-blocks.js';

/**
 * The folder into which blocks are written as files; it is not committed. It is inside the repository, so that imports
 * of packages work.
 */
export const BLOCKS = join(ROOT, 'test/docs/blocks');

/** Blocks are compiled as strictly as the library, but a reader's example may leave a variable unused. */
const TSCONFIG = { extends: '../../../../tsconfig.json', include: ['./*.ts'], exclude: [] };

export async function writeBlocks(blocks: readonly BlockModule[], folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  for (const { file, source } of blocks) await writeFile(join(folder, file), source);
}

/** What the compiler says about each block, by its place in the page; empty if there are no errors. */
export async function compile(blocks: readonly BlockModule[], folder: string): Promise<readonly string[]> {
  const output = await tsc(folder);
  const errors = output.split('\n').filter((line) => line.trim() !== '');
  const places = new Map(blocks.map(({ file, place }) => [file, place]));
  return errors.map((line) =>
    line.replace(/^\S*?([\w-]+\.ts)(?=\()/, (all, file) => `${places.get(file) ?? all} as ${file}`),
  );
}

function tsc(folder: string): Promise<string> {
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [compiler, '-p', folder, '--pretty', 'false'], { cwd: ROOT }, (error, stdout) => {
      if (error !== null && stdout.trim() === '') reject(error);
      else resolve(stdout);
    });
  });
}
