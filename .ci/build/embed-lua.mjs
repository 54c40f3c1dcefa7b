// Embeds lib/backends/redis/scripts/**/*.lua into one TypeScript module, so that the scripts survive bundlers and load
// alike from the ESM and the CommonJS build. Run by `npm ci` (prepare), by the build and before the tests.
//
// A script is known by its file name; folders only sort them. An include is a file below scripts/includes/.
// - `-- @includes` stands for all includes whose functions and constants are used between this mark and the next one,
//   in the order of their first use, each after those that it needs itself. A script whose fast path must not wait for
//   the definitions of the rest has a second mark behind that path.
// - `-- @include acquisition-deadline` stands for an include that defines no function and no constant. It runs where it
//   is named.
//
// Scripts that do the same for several kinds of lock share a template, a file below scripts/templates/. Such a script
// begins with `-- @template renew` and has only what differs. This comes where the template says `-- @kind`.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { translateScripts } from './translate-lua.mjs';

const folder = new URL('../../lib/backends/redis/scripts/', import.meta.url);
/** Either mark. The name of an include that is run is captured. */
const MARK = /^-- @include(?:s| (\S+))\n/gm;
/** The name of the template is captured. */
const TEMPLATE = /^-- @template (\S+)\n/m;
const KIND = /^ *-- @kind\n/m;
/** What uses keys that are not in KEYS: the leases of other readers, and the line of a lock. */
const UNNAMED_KEYS = ['read-write/read-lease', 'line/line-of'];
/** An instruction for Dragonfly, and a comment for Redis. */
const UNDECLARED_KEYS = '--!df flags=allow-undeclared-keys\\n';

const paths = readdirSync(folder, { recursive: true })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => path.endsWith('.lua'))
  .sort();

const includes = new Map();
for (const path of paths.filter(isInclude)) {
  const name = path.slice('includes/'.length, -'.lua'.length);
  const text = read(path);
  if (text.match(MARK)) fail(path, 'is an include, and includes another one. That is found out without a mark');
  includes.set(name, { text, defines: definitions(text) });
}
const includeOf = new Map([...includes].flatMap(([name, { defines }]) => defines.map((symbol) => [symbol, name])));

/** A script as a list of its own texts and of its includes, in order. `line`: of the mark that an include stands for. */
function compose(path) {
  const parts = [];
  const included = new Set();
  let line = 1;
  const include = (name) => {
    included.add(name);
    for (const needed of usedIn(includes.get(name).text)) if (!included.has(needed)) include(needed);
    parts.push({ include: name, line });
  };
  // With a group in the pattern, every second part is a mark: the name of an include, or undefined.
  const split = textOf(path).split(MARK);
  for (let n = 0; n < split.length; n += 2) {
    const [mark, own] = [split[n - 1], split[n]];
    if (mark !== undefined) include(checkedStatement(path, mark));
    const missing = usedIn(own).filter((name) => !included.has(name));
    if (n > 0 && mark === undefined) for (const name of missing) if (!included.has(name)) include(name);
    if (n === 0 || mark !== undefined)
      for (const name of missing) fail(path, `uses what ${name} defines, and has no mark -- @includes before that`);
    if (own !== '') parts.push({ text: own });
    line += own.split('\n').length;
  }
  return parts;
}

/** What a script says, within its template if it has one. */
function textOf(path) {
  const own = read(path);
  const [mark, name] = own.match(TEMPLATE) ?? [];
  if (name === undefined) return own;
  if (!paths.includes(`templates/${name}.lua`)) fail(path, `needs templates/${name}.lua, but there is no such file`);
  return read(`templates/${name}.lua`).replace(KIND, () => own.replace(mark, ''));
}

/** The name of an include that a script runs. */
function checkedStatement(path, name) {
  const include = includes.get(name);
  if (include === undefined) fail(path, `includes ${name}, but there is no includes/${name}.lua`);
  if (include.defines.length > 0) fail(path, `names ${name}, whose definitions -- @includes finds`);
  return name;
}

/** The includes whose definitions a text uses, in the order of their first use. */
function usedIn(text) {
  const code = text
    .replace(/--\[\[.*?\]\]/gs, '')
    .replace(/--.*/g, '')
    .replace(/'(?:[^'\\]|\\.)*'/g, "''");
  const names = [...code.matchAll(/\b[A-Za-z_]\w*/g)].map(([symbol]) => includeOf.get(symbol));
  return [...new Set(names)].filter((name) => name !== undefined);
}

/** The local functions and the constants of an include. */
function definitions(text) {
  const functions = [...text.matchAll(/^local function (\w+)/gm)].map(([, name]) => name);
  const constants = [...text.matchAll(/^local ([A-Z_, ]+) =/gm)].flatMap(([, names]) => names.split(', '));
  return [...functions, ...constants];
}

function isInclude(path) {
  return path.startsWith('includes/');
}

function isScript(path) {
  return !isInclude(path) && !path.startsWith('templates/');
}

function read(path) {
  return readFileSync(new URL(path, folder), 'utf8');
}

function fail(path, problem) {
  console.error(`lib/backends/redis/scripts/${path} ${problem}.`);
  process.exit(1);
}

/** A script as an expression: the constants of its includes, and its own text between them. */
function expressionOf(parts) {
  const terms = parts.map(({ text, include }) => (include === undefined ? literal(text) : constantOf(include)));
  if (parts.some(({ include }) => UNNAMED_KEYS.includes(include))) terms.unshift(`\`${UNDECLARED_KEYS}\``);
  return terms.filter((term) => term !== '``').join(' + ');
}

/** `read-write/why-reader-waits` is `readWriteWhyReaderWaits`. */
function constantOf(include) {
  return include.replace(/[-/](\w)/g, (_text, letter) => letter.toUpperCase());
}

/**
 * Without its comments and its indentation, which Redis does not need. Lines stay lines, so that the scripts can be read in
 * the packed library.
 */
function literal(text) {
  const code = text
    .replace(/^--\[\[.*?\]\]\n/gms, '')
    .replace(/^ *--.*\n/gm, '')
    .replace(/^ +/gm, '');
  return `\`${code.replace(/[`\\]|\$\{/g, '\\$&')}\``;
}

const scripts = new Map();
for (const path of paths.filter(isScript)) {
  const name = basename(path, '.lua');
  if (scripts.has(name)) fail(path, 'has the name of another script');
  scripts.set(name, { path, text: textOf(path), parts: compose(path) });
}
const constants = [...includes].map(([name, { text }]) => `const ${constantOf(name)} = ${literal(text)};\n`);
const entries = [...scripts].map(([name, { parts }]) => `  ${JSON.stringify(name)}: ${expressionOf(parts)},\n`);
const names = [...scripts.keys()].map((name) => JSON.stringify(name)).join(' | ');
write(
  '../scripts.generated.ts',
  `// Generated from scripts/**/*.lua by .ci/build/embed-lua.mjs. Do not edit.
${constants.join('')}
export const SCRIPT_SOURCES: Readonly<Record<${names}, string>> = {
${entries.join('')}};
`,
);
write(
  '../in-process/translated-scripts.generated.ts',
  `// @ts-nocheck
// Generated from scripts/**/*.lua by .ci/build/translate-lua.mjs. Do not edit.
import type { TranslatedScripts } from './in-process-server.js';

export const TRANSLATED_SCRIPTS: TranslatedScripts = ${translated()};
`,
);

/** All scripts as JavaScript. */
function translated() {
  const included = new Map([...includes].map(([name, { text }]) => [name, { path: `includes/${name}.lua`, text }]));
  const whole = [...scripts].map(([name, { path, text, parts }]) => {
    const marks = parts.filter(({ include }) => include !== undefined);
    return [name, { path, text, includes: marks.map(({ include, line }) => ({ name: include, line })) }];
  });
  return translateScripts(included, new Map(whole));
}

/** A file is not written if nothing has changed, because a test or compiler may be reading it. */
function write(path, text) {
  const target = new URL(path, folder);
  if (!existsSync(target) || readFileSync(target, 'utf8') !== text) writeFileSync(target, text);
}
