// Caches the JavaScript of TypeScript files, so that only the first of many processes has to compile them.
const { createHash } = require('node:crypto');
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { version } = require('@swc/core/package.json');

const FOLDER = join(__dirname, '../../../node_modules/.cache/typescript-of-tests');

/** @returns the path of the JavaScript; its source map has the same name and `.map` */
function pathFor(filename, source) {
  const key = createHash('sha1').update(`${version}\0${filename}\0`).update(source).digest('hex');
  return join(FOLDER, `${key}.js`);
}

/** @returns undefined if it is not in the cache */
function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

function write(path, text) {
  mkdirSync(FOLDER, { recursive: true });
  // Several processes write the same file at the same time, and none may read half of it.
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, text);
  renameSync(draft, path);
}

module.exports = { pathFor, read, write };
