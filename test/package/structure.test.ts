import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The lower folders of lib, from the lowest up. The other folders of lib are above them, independent of each other, and
 * the entries (lib/*.ts) above those.
 */
const LAYERS = ['backends', 'engine', 'handles', 'standby', 'service', 'nest'];
/** These folders may import only the port of the backends. */
const PORT_ONLY = ['engine', 'handles'];
/** These folders use the library as a user's code could, through the entries. */
const LIKE_A_USER = ['dashboard', 'idempotency', 'sql'];

/** The port for connections to Redis, and below it its adapters, one folder for each client. */
const LINKS = 'lib/backends/redis/links/';

/** `import … from './lease.js'`, `export … from './lease.js'` and `import './lease.js'`. */
const STATEMENT = /^(?:import|export)\s+(?:[^'";]*?\s*from\s+)?'(\.[^']+)'/gm;
/** `import('./lease.js')` */
const DYNAMIC = /\bimport\(\s*'(\.[^']+)'/g;

/** The other files of the library that a file imports, also those of which it imports only types. */
function importsOf(file: string, text: string): readonly string[] {
  const paths = [STATEMENT, DYNAMIC].flatMap((pattern) => [...text.matchAll(pattern)].map(([, path]) => path));
  return paths.map((path) => relative(ROOT, resolve(ROOT, dirname(file), path)).replace(/\.js$/, '.ts'));
}

/** The clients of Redis that a text imports, by any kind of statement. */
function clientsIn(text: string): readonly string[] {
  return [...text.matchAll(/(?:from|import|require)\s*\(?\s*'(ioredis|iovalkey|redis|@redis\/client)'/g)].map(
    ([, name]) => name,
  );
}

/** The imports of all files of the library, except those that the build generates. */
function readImports(): ReadonlyMap<string, readonly string[]> {
  const files = readdirSync(join(ROOT, 'lib'), { recursive: true })
    .map((file) => `lib/${file}`)
    .filter((file) => file.endsWith('.ts') && !file.includes('.generated.'));
  return new Map(
    files.map((file) => [
      file,
      importsOf(file, readFileSync(join(ROOT, file), 'utf8')).filter((imported) => files.includes(imported)),
    ]),
  );
}

/** Whether an import leads to a lower folder, or stays in its own. */
function leadsDown(from: string, to: string): boolean {
  const [, folder, ...rest] = from.split('/');
  const [, other, ...otherRest] = to.split('/');
  if (rest.length === 0) return true; // an entry
  if (otherRest.length === 0) return LIKE_A_USER.includes(folder);
  if (folder === other) return true;
  if (other === 'backends' && PORT_ONLY.includes(folder)) return otherRest.length === 1;
  const [layer, otherLayer] = [folder, other].map((name) => LAYERS.indexOf(name));
  return otherLayer >= 0 && (layer < 0 || otherLayer < layer);
}

/** Folders whose files and folders import each other in one direction. */
const WITH_FLOORS = [
  'lib',
  'lib/backends',
  'lib/cli',
  'lib/dashboard',
  'lib/engine',
  'lib/handles',
  'lib/nest',
  'lib/service',
  'lib/testing',
];

/** What the files and folders in a folder import of each other. A folder stands for all files in it. */
function importsOfRooms(
  imports: ReadonlyMap<string, readonly string[]>,
  folder: string,
): ReadonlyMap<string, readonly string[]> {
  const roomOf = (file: string) => file.slice(folder.length + 1).split('/')[0];
  const isInside = (file: string) => file.startsWith(`${folder}/`);
  const rooms = new Map<string, readonly string[]>();
  for (const [file, imported] of imports) {
    if (!isInside(file)) continue;
    const room = roomOf(file);
    const others = imported.filter(isInside).map(roomOf);
    rooms.set(room, [...(rooms.get(room) ?? []), ...others.filter((other) => other !== room)]);
  }
  return rooms;
}

/** The circles of imports, each once. */
function findCircles(imports: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const circles = new Map<string, string>();
  for (const start of imports.keys()) {
    const circle = findCircle(imports, start);
    // Each circle is found from everything in it, but one of them is enough.
    if (circle !== undefined) circles.set([...new Set(circle.split(' → '))].sort().join(), circle);
  }
  return [...circles.values()];
}

/** The shortest path of imports, also of types, from `start` back to itself, as `a → b → a`. */
function findCircle(imports: ReadonlyMap<string, readonly string[]>, start: string): string | undefined {
  const seen = new Set<string>();
  const paths = [[start]];
  for (const path of paths) {
    for (const file of imports.get(path[path.length - 1]) ?? []) {
      if (file === start) return [...path, start].join(' → ');
      if (!seen.has(file)) paths.push([...path, file]);
      seen.add(file);
    }
  }
  return undefined;
}

describe('the source of the library', () => {
  it('imports from its upper folders into the lower ones, never upwards', () => {
    const upward = [...readImports()].flatMap(([from, imports]) =>
      imports.filter((file) => !leadsDown(from, file)).map((file) => `${from} → ${file}`),
    );
    expect(upward).toEqual([]);
  });

  it('has no circle of imports, types included', () => {
    expect(findCircles(readImports())).toEqual([]);
  });

  it.each(WITH_FLOORS)('has floors in %s: what is in it imports downwards', (folder) => {
    expect(findCircles(importsOfRooms(readImports(), folder))).toEqual([]);
  });

  it('knows no client of Redis above the port for links', () => {
    const found = [...readImports()].flatMap(([from, imports]) => {
      if (from.startsWith(LINKS)) return [];
      const text = readFileSync(join(ROOT, from), 'utf8');
      const adapters = imports.filter((file) => file.startsWith(LINKS) && file.slice(LINKS.length).includes('/'));
      return [...clientsIn(text), ...adapters].map((name) => `${from} → ${name}`);
    });
    expect(found).toEqual([]);
    expect(clientsIn("import { Redis } from 'ioredis';\nconst client = require('@redis/client');")).toEqual([
      'ioredis',
      '@redis/client',
    ]);
  });

  it('is checked for real: an import upwards, or in a circle, is found', () => {
    expect(readImports().get('lib/core.ts')).toContain('lib/service/lock-service.ts');
    const statements = [
      "import type { A } from './a.js';",
      "import { type B, type C } from './b.js';",
      "export { c, type D } from '../c.js';",
      "import {\n  type E,\n  e,\n} from './e.js';",
      "import './f.js';",
      "export * from './g.js';",
      "export type * from './h.js';",
      "const loaded = await import('./i.js');",
    ];
    expect(importsOf('lib/engine/x.ts', statements.join('\n'))).toEqual([
      'lib/engine/a.ts',
      'lib/engine/b.ts',
      'lib/c.ts',
      'lib/engine/e.ts',
      'lib/engine/f.ts',
      'lib/engine/g.ts',
      'lib/engine/h.ts',
      'lib/engine/i.ts',
    ]);

    const circle = new Map([
      ['a', ['b', 'd']],
      ['b', ['c']],
      ['c', ['a']],
    ]);
    expect(findCircle(circle, 'a')).toBe('a → b → c → a');
    expect(findCircle(circle, 'd')).toBeUndefined();
    expect(findCircles(circle)).toEqual(['c → a → b → c']);

    const rooms = new Map([
      ['lib/a/one.ts', ['lib/b/two.ts', 'lib/a/other.ts']],
      ['lib/b/three.ts', ['lib/a/other.ts']],
      ['elsewhere/c.ts', ['lib/a/one.ts']],
    ]);
    expect(findCircles(importsOfRooms(rooms, 'lib'))).toEqual(['b → a → b']);
  });

  it.each([
    ['lib/engine/a.ts', 'lib/backends/runtime.ts', true],
    ['lib/engine/a.ts', 'lib/backends/redis/in-process/memory-backend.ts', false],
    ['lib/engine/a.ts', 'lib/handles/fair-lock.ts', false],
    ['lib/backends/redis/a.ts', 'lib/engine/errors.ts', false],
    ['lib/service/a.ts', 'lib/backends/redis/redis-backend.ts', true],
    ['lib/nest/a.ts', 'lib/dashboard/board.ts', false],
    ['lib/dashboard/a.ts', 'lib/nest/redis-lock.module.ts', true],
    ['lib/dashboard/a.ts', 'lib/cli/output.ts', false],
    ['lib/health/a.ts', 'lib/core.ts', false],
    ['lib/sql/a.ts', 'lib/backend.ts', true],
    ['lib/sql.ts', 'lib/sql/row-locks.ts', true],
  ])('%s may import %s: %s', (from, to, may) => {
    expect(leadsDown(from, to)).toBe(may);
  });
});
