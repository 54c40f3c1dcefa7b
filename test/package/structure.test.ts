import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Type imports and re-exports included: `from './lease.js'`, `import('./lease.js')`, `import './lease.js'`. */
const IMPORT = /(?:\bfrom\s+|\bimport\s*\(\s*|\bimport\s+)'(\.[^']+)'/g;

/** All files of the library but those that the build makes. */
const files = readdirSync(join(ROOT, 'lib'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !entry.name.includes('.generated.'))
  .map(({ parentPath, name }) => relative(ROOT, join(parentPath, name)));

const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

/** The files of the library that each of its files imports. */
function readImports(): ReadonlyMap<string, readonly string[]> {
  const sources = files.filter((file) => file.endsWith('.ts'));
  const importsOf = (file: string) =>
    [...read(file).matchAll(IMPORT)]
      .map(([, path]) => relative(ROOT, resolve(ROOT, dirname(file), path)).replace(/\.js$/, '.ts'))
      .filter((imported) => sources.includes(imported));
  return new Map(sources.map((file) => [file, importsOf(file)]));
}

/** The shortest way from `start` back to itself, as `a → b → a`. */
function findCircle(imports: ReadonlyMap<string, readonly string[]>, start: string): string | undefined {
  const seen = new Set<string>();
  const ways = [[start]];
  for (const way of ways) {
    for (const next of imports.get(way[way.length - 1]) ?? []) {
      if (next === start) return [...way, start].join(' → ');
      if (!seen.has(next)) ways.push([...way, next]);
      seen.add(next);
    }
  }
  return undefined;
}

describe('the source of the library', () => {
  it('has no import circle, type imports included', () => {
    const imports = readImports();
    const circles = new Map<string, string>();
    for (const file of imports.keys()) {
      const circle = findCircle(imports, file);
      // Each circle is found from every file in it: one of them is enough.
      if (circle !== undefined) circles.set([...new Set(circle.split(' → '))].sort().join(), circle);
    }
    expect([...circles.values()]).toEqual([]);
  });

  it('is read as it is: files that import each other are seen', () => {
    expect(readImports().get('lib/core.ts')).toContain('lib/service/lock-service.ts');
    const circle = new Map([
      ['a', ['b', 'd']],
      ['b', ['c']],
      ['c', ['a']],
    ]);
    expect(findCircle(circle, 'a')).toBe('a → b → c → a');
    expect(findCircle(circle, 'd')).toBeUndefined();
  });
});
