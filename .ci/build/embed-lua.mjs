// Embeds lib/backends/redis/scripts/**/*.lua into one TypeScript module, so that the scripts survive bundlers and load
// alike from the ESM and the CommonJS build. Run by `npm ci` (prepare), by the build and before the tests.
//
// A script is known by its file name; folders only sort them. It lists everything that it includes, in the order of
// use: `-- @include read-write/why-reader-waits` stands for scripts/includes/read-write/why-reader-waits.lua, which
// includes nothing itself.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

const folder = new URL('../../lib/backends/redis/scripts/', import.meta.url);
const INCLUDE = /^-- @include (\S+)\n/gm;
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
  if (text.match(INCLUDE)) fail(path, 'is an include, and includes another one. Let the scripts list both');
  includes.set(name, { text, defines: definitions(text) });
}
const includeOf = new Map([...includes].flatMap(([name, { defines }]) => defines.map((symbol) => [symbol, name])));

/** Fails unless a script lists exactly the includes that it uses, in an order that works. */
function check(path) {
  const text = read(path);
  const listed = new Set();
  const composed = text.replace(INCLUDE, (_line, name) => {
    const include = includes.get(name);
    if (include === undefined) fail(path, `includes ${name}, but there is no includes/${name}.lua`);
    if (listed.has(name)) fail(path, `includes ${name} twice`);
    checkListed(path, include.text, listed, name);
    listed.add(name);
    return include.text;
  });
  checkListed(path, text, listed);
  for (const name of listed) {
    const { defines, text: own } = includes.get(name);
    const others = composed.replace(own, '');
    if (defines.length > 0 && !defines.some((symbol) => uses(others, symbol)))
      fail(path, `includes ${name}, and does not use it`);
  }
}

/** Fails if a text uses a definition of an include that is not listed before it. */
function checkListed(path, text, listed, own) {
  for (const [symbol, name] of includeOf) {
    if (name === own || listed.has(name) || !uses(text, symbol)) continue;
    fail(path, `uses ${symbol}. Include ${name}${own === undefined ? '' : ` before ${own}`}`);
  }
}

/** The local functions and the constants of an include. */
function definitions(text) {
  const functions = [...text.matchAll(/^local function (\w+)/gm)].map(([, name]) => name);
  const constants = [...text.matchAll(/^local ([A-Z_, ]+) =/gm)].flatMap(([, names]) => names.split(', '));
  return [...functions, ...constants];
}

function uses(text, symbol) {
  const code = text.replace(/--\[\[.*?\]\]/gs, '').replace(/--.*/g, '');
  return new RegExp(`\\b${symbol}\\b`).test(code);
}

function isInclude(path) {
  return path.startsWith('includes/');
}

function read(path) {
  return readFileSync(new URL(path, folder), 'utf8');
}

function fail(path, problem) {
  console.error(`lib/backends/redis/scripts/${path} ${problem}.`);
  process.exit(1);
}

/** A script as an expression: the constants of its includes, and its own text between them. */
function expressionOf(path) {
  // With a group in the pattern, every second part is the name of an include.
  const parts = read(path).split(INCLUDE);
  const terms = parts.map((part, index) => (index % 2 === 0 ? literal(part) : constantOf(part)));
  if (UNNAMED_KEYS.some((include) => parts.includes(include))) terms.unshift(`\`${UNDECLARED_KEYS}\``);
  return terms.filter((term) => term !== '``').join(' + ');
}

/** `read-write/why-reader-waits` is `readWriteWhyReaderWaits`. */
function constantOf(include) {
  return include.replace(/[-/](\w)/g, (_text, letter) => letter.toUpperCase());
}

/**
 * Without its comments, which Redis does not need. Lines stay lines, so that the scripts can be read in the packed
 * library.
 */
function literal(text) {
  const code = text.replace(/^--\[\[.*?\]\]\n/ms, '').replace(/^ *--.*\n/gm, '');
  return `\`${code.replace(/[`\\]|\$\{/g, '\\$&')}\``;
}

const scripts = new Map();
for (const path of paths.filter((path) => !isInclude(path))) {
  const name = basename(path, '.lua');
  if (scripts.has(name)) fail(path, 'has the name of another script');
  check(path);
  scripts.set(name, expressionOf(path));
}
const constants = [...includes].map(([name, { text }]) => `const ${constantOf(name)} = ${literal(text)};\n`);
const entries = [...scripts].map(([name, expression]) => `  ${JSON.stringify(name)}: ${expression},\n`);
const names = [...scripts.keys()].map((name) => JSON.stringify(name)).join(' | ');
const text = `// Generated from scripts/**/*.lua by .ci/build/embed-lua.mjs. Do not edit.
${constants.join('')}
export const SCRIPT_SOURCES: Readonly<Record<${names}, string>> = {
${entries.join('')}};
`;
const target = new URL('../scripts.generated.ts', folder);
// The file is not written if nothing has changed, because a test or compiler may be reading it.
if (!existsSync(target) || readFileSync(target, 'utf8') !== text) {
  writeFileSync(target, text);
}
