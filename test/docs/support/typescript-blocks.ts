import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CodeBlock, type Page, ROOT } from './markdown.js';

/** The marker in a context that the code of the block replaces. */
const MARKER = '/* the block */';
const IMPORT = /^import [^;]*?from '[^']+';\n/gm;

/** A block as a module of its own. */
export interface BlockModule {
  readonly place: string;
  /** `cron-jobs-12.ts` */
  readonly file: string;
  readonly source: string;
  /** Whether the module exports `run`, which a test runs against a real redis-server. */
  readonly runs: boolean;
}

export function typescriptBlocks(pages: readonly Page[]): readonly BlockModule[] {
  return pages
    .flatMap(({ blocks }) => blocks)
    .filter(({ language, directives }) => ['ts', 'typescript'].includes(language) && !directives.has('skip'))
    .map(toModule);
}

/**
 * A block without a directive is a complete module. `in service` puts it in place of the marker in
 * test/docs/contexts/service.ts, after the block's own imports. `run <expression>` makes it a test: the expression may
 * use what the module declares, `app` and `locks`.
 */
export function toModule({ place, code, directives }: CodeBlock): BlockModule {
  const [path, line] = place.split(':');
  const context = directives.get('in');
  const run = directives.get('run');
  const parts = [context === undefined ? code : inContext(code, context)];
  if (run !== undefined) {
    parts.push(`import type { Running } from '../../support/running.js';`);
    parts.push(`export const run = async ({ app, locks }: Running): Promise<unknown> => (${run});`);
  }
  return {
    place,
    file: `${path.replace(/^docs\/|\.md$/g, '').replaceAll('/', '-')}-${line}.ts`,
    source: `${parts.join('\n')}\nexport {};\n`,
    runs: run !== undefined,
  };
}

function inContext(code: string, context: string): string {
  const imports = code.match(IMPORT) ?? [];
  const given = readFileSync(join(ROOT, 'test/docs/contexts', `${context}.ts`), 'utf8');
  if (!given.includes(MARKER)) throw new Error(`the context '${context}' has no marker ${MARKER}`);
  const known = namesIn(imports.join(''));
  const around = without(given, known).replaceAll("'../support/", "'../../support/");
  return `${imports.join('')}${around.replace(MARKER, () => code.replace(IMPORT, ''))}`;
}

/** The names that import declarations bring in. */
function namesIn(imports: string): ReadonlySet<string> {
  return new Set(imports.match(/\w+/g));
}

/** The context, without the imports that the block has itself. */
function without(source: string, names: ReadonlySet<string>): string {
  return source.replace(/^import (type )?\{([^}]*)\} from ('[^']+');\n/gm, (_, type = '', list: string, from) => {
    const left = list
      .split(',')
      .filter((name) => name.trim() !== '' && !names.has(name.replace(/\btype\b/, '').trim()));
    return left.length === 0 ? '' : `import ${type}{${left.join(',')}} from ${from};\n`;
  });
}
