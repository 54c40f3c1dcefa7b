// Embeds lib/backends/redis/scripts/*.lua into one TypeScript module, so that the scripts survive bundlers and load
// alike from the ESM and the CommonJS build. Run by `npm ci` (prepare), by the build and before the tests.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';

const folder = new URL('../lib/backends/redis/scripts/', import.meta.url);
const files = readdirSync(folder)
  .filter((file) => file.endsWith('.lua'))
  .sort();
const entries = files.map((file) => {
  const name = file.replace(/\.lua$/, '');
  return `  ${JSON.stringify(name)}: ${JSON.stringify(readFileSync(new URL(file, folder), 'utf8'))},`;
});
const text = `// Generated from scripts/*.lua by .ci/embed-lua.mjs. Do not edit.\nexport const SCRIPT_SOURCES = {\n${entries.join('\n')}\n} as const;\n`;
const target = new URL('../scripts.generated.ts', folder);
// Left alone when nothing changed: a test or compiler may be reading it.
if (!existsSync(target) || readFileSync(target, 'utf8') !== text) {
  writeFileSync(target, text);
}
