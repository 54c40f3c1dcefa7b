// Embeds lib/backends/redis/scripts/*.lua into one TypeScript module, so that the scripts survive bundlers and load
// alike from the ESM and the CommonJS build. Run by `npm ci` (prepare), by the build and before the tests.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';

const folder = new URL('../lib/backends/redis/scripts/', import.meta.url);

/** A script with its `-- @include name` lines replaced by includes/name.lua, each once, and what that includes before it. */
function compose(path, included = new Set()) {
  return readFileSync(new URL(path, folder), 'utf8').replace(/^-- @include (\S+)\n/gm, (_line, name) => {
    if (included.has(name)) return '';
    included.add(name);
    return compose(`includes/${name}.lua`, included);
  });
}

const files = readdirSync(folder)
  .filter((file) => file.endsWith('.lua'))
  .sort();
const entries = files.map((file) => {
  const name = file.replace(/\.lua$/, '');
  return `  ${JSON.stringify(name)}: ${JSON.stringify(compose(file))},`;
});
const text = `// Generated from scripts/*.lua by .ci/embed-lua.mjs. Do not edit.\nexport const SCRIPT_SOURCES = {\n${entries.join('\n')}\n} as const;\n`;
const target = new URL('../scripts.generated.ts', folder);
// Left alone when nothing changed: a test or compiler may be reading it.
if (!existsSync(target) || readFileSync(target, 'utf8') !== text) {
  writeFileSync(target, text);
}
