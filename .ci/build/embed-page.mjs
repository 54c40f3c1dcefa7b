// Embeds lib/dashboard/page/* into one TypeScript module, as embed-lua.mjs does with the scripts: the page is wherever
// the library is. Comments and indentation stay here: browsers do not need them. Lines stay lines.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname } from 'node:path';

const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const folder = new URL('../../lib/dashboard/page/', import.meta.url);

const files = readdirSync(folder)
  .sort()
  .map((name) => {
    const type = TYPES[extname(name)];
    if (type === undefined) throw new Error(`lib/dashboard/page/${name}: no content type is known for it`);
    const text = withoutComments(readFileSync(new URL(name, folder), 'utf8'));
    const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 16)}"`;
    return `  ${JSON.stringify(name)}: { type: ${JSON.stringify(type)}, etag: ${JSON.stringify(etag)}, text: \`${text.replace(/[`\\]|\$\{/g, '\\$&')}\` },\n`;
  });

/** Of comments, only those that have lines for themselves. */
function withoutComments(text) {
  return text
    .replace(/^ *\/\*.*?\*\/\n/gms, '')
    .replace(/^ *\/\/.*\n/gm, '')
    .replace(/^ +/gm, '');
}

const text = `// Generated from page/* by .ci/build/embed-page.mjs. Do not edit.
export const PAGE_FILES: Readonly<Record<string, { readonly type: string; readonly etag: string; readonly text: string }>> = {
${files.join('')}};
`;
const target = new URL('../page.generated.ts', folder);
// The file is not written if nothing has changed, because a test or compiler may be reading it.
if (!existsSync(target) || readFileSync(target, 'utf8') !== text) writeFileSync(target, text);
