import { readdirSync } from 'node:fs';
import { load } from './typescript-hooks.mjs';

const ROOT = new URL('../../../', import.meta.url);

/** Fills the cache of JavaScript in a second. In a fresh clone, each of the workers would transpile the library. */
export default async function transpileFirst() {
  const sources = ['lib/', 'test/'].flatMap((folder) => sourcesIn(new URL(folder, ROOT)));
  await Promise.all(sources.map((source) => load(source)));
}

/** The addresses of the TypeScript files in a folder. */
function sourcesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : sourcesIn(new URL(`${entry.name}/`, folder));
    return /(?<!\.d)\.ts$/.test(entry.name) ? [new URL(entry.name, folder).href] : [];
  });
}
