import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { BLOCKS, compile, writeBlocks } from './support/compile.js';
import { readPages } from './support/markdown.js';

/** The tables of options, each with the type that must have exactly these keys, and its entry. */
const TABLES = [
  ['docs/configuration.md', 'RedisLockOptions', 'nestjs-redis-lock'],
  ['docs/decorator.md', 'DistributedLockOptions', 'nestjs-redis-lock'],
  ['docs/idempotency.md', 'IdempotentOptions', 'nestjs-redis-lock/idempotency'],
] as const;

const pages = readPages();
const folder = join(BLOCKS, 'options');

/** The names in the first column of the table under `## Options`. */
function documented(path: string): readonly string[] {
  const { text = '' } = pages.find((page) => page.path === path) ?? {};
  const [, section = ''] = /^## Options\n([\s\S]*?)(?=^## )/m.exec(text) ?? [];
  return [...section.matchAll(/^\| (`[^|]*`) \|/gm)].flatMap(([, cell]) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  );
}

/** The text of a module that compiles only if the type has exactly these keys. */
function assertion(type: string, names: readonly string[], entry: string): string {
  return [
    `import type { ${type} } from '${entry}';`,
    `type Documented = ${names.map((name) => `'${name}'`).join(' | ')};`,
    `export const noneIsMissing: [Exclude<keyof ${type}, Documented>] extends [never] ? true : Exclude<keyof ${type}, Documented> = true;`,
    `export const noneIsTooMany: [Exclude<Documented, keyof ${type}>] extends [never] ? true : Exclude<Documented, keyof ${type}> = true;`,
    '',
  ].join('\n');
}

async function check(type: string, names: readonly string[], entry = 'nestjs-redis-lock'): Promise<readonly string[]> {
  const block = { place: type, file: `${type}.ts`, source: assertion(type, names, entry), runs: false };
  await writeBlocks([block], folder);
  return compile([block], folder);
}

describe('the tables of options', () => {
  afterEach(() => rm(folder, { recursive: true, force: true }));

  it.each(TABLES)('%s lists every key of %s, and no other', async (path, type, entry) => {
    expect(await check(type, documented(path), entry)).toEqual([]);
  });

  it('would miss an option, and find one that does not exist', async () => {
    const [missing] = await check('DistributedLockOptions', documented('docs/decorator.md').slice(1));
    expect(missing).toContain('"key"');
    const [extra] = await check('DistributedLockOptions', [...documented('docs/decorator.md'), 'colour']);
    expect(extra).toContain('"colour"');
  });
});
