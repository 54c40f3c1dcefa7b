import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { type Page, parsePage, proseOf, ROOT, readPages } from './support/markdown.js';

const LINK = /\]\(([^)\s]+)\)/g;
/** The files in the package. Its pages link to nothing else in the repository. */
const PACKED = /^(README\.md|CHANGELOG\.md|LICENSE|docs\/([\w-]+\.md|llms\.txt|images\/.*))$/;
/** How pages of the package name one that is not in it. */
const NAMED = /`(docs\/internals\/[\w/-]+\.md)`/g;

/** The anchor that GitHub gives a heading. */
function anchorOf(heading: string): string {
  return heading
    .replace(/`|\*/g, '')
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

function anchorsOf(page: Page): ReadonlySet<string> {
  const text = page.text.replace(/^ *(`{3,})[\s\S]*?^ *\1\s*$/gm, '');
  const seen = new Map<string, number>();
  const anchors = [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) => {
    const anchor = anchorOf(heading);
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  });
  return new Set(anchors);
}

function brokenLinks(pages: readonly Page[]): string[] {
  const anchors = new Map(pages.map((page) => [page.path, anchorsOf(page)]));
  const broken = (page: Page, link: string): string | undefined => {
    if (/^[a-z]+:/.test(link)) return undefined;
    const [file, anchor] = link.split('#');
    const target = file === '' ? page.path : normalize(join(dirname(page.path), file));
    if (!anchors.has(target) && !existsSync(join(ROOT, target))) return 'does not exist';
    if (PACKED.test(page.path) && !PACKED.test(target)) return 'is not in the package';
    if (anchor !== undefined && !anchors.get(target)?.has(anchor)) return 'has no such heading';
    return undefined;
  };
  return pages.flatMap((page) =>
    [...proseOf(page).matchAll(LINK)].flatMap(([, link]) => {
      const reason = broken(page, link);
      return reason === undefined ? [] : [`${page.path}: ${link} ${reason}`];
    }),
  );
}

/** The pages that sources and READMEs of these folders name by their path: `docs/internals/decisions/line.md`. */
function pagesNamedIn(...folders: string[]): Map<string, string> {
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  );
  const sources = files.filter((file) => /\.(ts|lua|tla|mjs|md)$/.test(file) && !file.includes('/node_modules/'));
  const named = sources.flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(/\bdocs\/[\w/-]+\.md\b/g)].map(
      ([page]) => [page, file] as const,
    ),
  );
  return new Map(named);
}

/** Pages whose code is neither compiled nor run. */
const others = ['CONTRIBUTING.md', 'SECURITY.md', ...pagesOf('docs/internals/decisions')].map((path) =>
  parsePage(path, readFileSync(join(ROOT, path), 'utf8')),
);

function pagesOf(folder: string): string[] {
  return readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`);
}

const guide = readPages();
const pages = [...guide, ...others];
const DECISIONS = 'docs/internals/decisions/README.md';

describe('the links in README.md, docs/, CONTRIBUTING.md and SECURITY.md', () => {
  it('lead to pages and headings that exist and are packed', () => {
    expect(brokenLinks(pages)).toEqual([]);
  });

  it('would be found broken', () => {
    const text =
      '[a](b.md) [b](#no-heading) [c](internals/proofs.md) [d](page.md#the-title) [e](https://example.com)\n# The title\n';
    expect(brokenLinks([parsePage('docs/page.md', text)])).toEqual([
      'docs/page.md: b.md does not exist',
      'docs/page.md: #no-heading has no such heading',
      'docs/page.md: internals/proofs.md is not in the package',
    ]);
  });

  it('that comments and messages of lib name in words exist, too', () => {
    const named = pagesNamedIn('lib', 'test/spec', 'test/chaos');
    expect(named.keys()).toContain('docs/reliability.md');
    expect([...named].filter(([page]) => !existsSync(join(ROOT, page)))).toEqual([]);
  });

  it('that test/README.md lists by their names alone are suites that exist', () => {
    const text = readFileSync(join(ROOT, 'test/README.md'), 'utf8');
    const lists = text.slice(text.indexOf('## Where are the tests of outages'), text.indexOf('## When you write one'));
    const names = [...lists.matchAll(/`([\w.-]+\/[\w./-]*|[\w-]+-scripts)`/g)].map(([, name]) => name);
    const homes = ['', 'test/', 'test/backends/redis/scripts/'];
    const exists = (name: string) =>
      homes.some((home) => existsSync(join(ROOT, home, name)) || existsSync(join(ROOT, home, `${name}.test.ts`)));
    expect(names).toContain('sql/outages');
    expect(names.filter((name) => !exists(name))).toEqual([]);
  });

  it('are in llms.txt, one for every page of the guide and one for the decisions', () => {
    const text = readFileSync(join(ROOT, 'docs/llms.txt'), 'utf8');
    const listed = [...text.matchAll(LINK)].map(([, link]) => normalize(join('docs', link)));
    for (const [, path] of text.matchAll(NAMED)) listed.push(path);
    expect(listed.sort()).toEqual([...guide.map(({ path }) => path), DECISIONS].sort());
  });

  it('reach every page from README.md', () => {
    const reached = new Set(['README.md']);
    for (const path of reached) {
      const page = pages.find((one) => one.path === path);
      for (const [, link] of page === undefined ? [] : proseOf(page).matchAll(LINK)) {
        const target = normalize(join(dirname(path), link.split('#')[0]));
        if (target.endsWith('.md')) reached.add(target);
      }
      for (const [, target] of page?.text.matchAll(NAMED) ?? []) reached.add(target);
    }
    const unreached = pages.filter(({ path }) => path.startsWith('docs/') && !reached.has(path));
    expect(unreached.map(({ path }) => path)).toEqual([]);
  });
});
