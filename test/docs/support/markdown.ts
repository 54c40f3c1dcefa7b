import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** A fenced block of a page. */
export interface CodeBlock {
  /** `docs/cron-jobs.md:12`, in the form in which editors and compilers show a place. */
  readonly place: string;
  readonly language: string;
  readonly code: string;
  /** What the comment `<!-- docs: … -->` before the block says, by keyword: `in`, `run`, `skip`. */
  readonly directives: ReadonlyMap<string, string>;
}

export interface Page {
  /** The path from the root of the repository: `docs/cron-jobs.md`. */
  readonly path: string;
  readonly text: string;
  readonly blocks: readonly CodeBlock[];
}

const FENCE = /^ *(`{3,})(\w*)\s*$/;
const DIRECTIVES = /^<!-- docs: (.+) -->$/;

/** README.md and every page of docs/ and docs/internals/; `folder` is the root of a repository. */
export function readPages(folder = ROOT): readonly Page[] {
  return ['README.md', ...pagesIn(folder, 'docs'), ...pagesIn(folder, 'docs/internals')]
    .filter((path) => existsSync(join(folder, path)))
    .map((path) => parsePage(path, readFileSync(join(folder, path), 'utf8')));
}

function pagesIn(root: string, folder: string): string[] {
  const path = join(root, folder);
  if (!existsSync(path)) return [];
  const names = readdirSync(path).filter((name) => name.endsWith('.md'));
  return names.sort().map((name) => `${folder}/${name}`);
}

/** @throws Error if a fence is not closed, or a directive is not directly above a block */
export function parsePage(path: string, text: string): Page {
  const blocks: CodeBlock[] = [];
  const lines = text.split('\n');
  let directives: ReadonlyMap<string, string> = new Map();
  for (let i = 0; i < lines.length; i++) {
    const comment = DIRECTIVES.exec(lines[i]);
    const fence = FENCE.exec(lines[i]);
    if (comment) {
      if (!FENCE.test(lines[i + 1] ?? '')) throw new Error(`${path}:${i + 1}: no block follows this directive`);
      directives = parseDirectives(comment[1]);
    } else if (fence) {
      const end = lines.findIndex((line, n) => n > i && line.trim() === fence[1]);
      if (end < 0) throw new Error(`${path}:${i + 1}: this block has no end`);
      const code = `${lines.slice(i + 1, end).join('\n')}\n`;
      blocks.push({ place: `${path}:${i + 2}`, language: fence[2], code, directives });
      directives = new Map();
      i = end;
    }
  }
  return { path, text, blocks };
}

/** `in service; run pay('42')` → in: service, run: pay('42') */
function parseDirectives(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split(/; (?=(?:in|run|skip)\b)/).map((directive) => {
      const [, keyword, value = ''] = /^(\w+) ?(.*)$/.exec(directive.trim()) ?? [];
      if (!['in', 'run', 'skip'].includes(keyword)) throw new Error(`there is no directive '${directive}'`);
      return [keyword, value] as const;
    }),
  );
}

/** The text of a page without its blocks and code spans. */
export function proseOf({ text }: Pick<Page, 'text'>): string {
  return text.replace(/^ *(`{3,})[\s\S]*?^ *\1\s*$/gm, '').replace(/`[^`\n]+`/g, '``');
}
