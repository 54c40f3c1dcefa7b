// Each file of lib is an entry of the package: lib/sql.ts is `nestjs-redis-lock/sql`, lib/index.ts the package itself,
// and lib/cli.ts, where there is one, its command.
//   node .ci/build/entries.mjs    writes what follows from that to package.json: exports, typesVersions, bin
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const COMMAND = 'cli';

const files = readdirSync(new URL('../../lib/', import.meta.url))
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -'.ts'.length))
  .sort();

/** The entries that programs import. */
export const entries = files.filter((name) => name !== COMMAND);

/** The entries that are programs. */
export const commands = files.filter((name) => name === COMMAND);

/** The fields of package.json that describe the entries. */
export function packageFields() {
  const others = entries.filter((name) => name !== 'index');
  return {
    exports: {
      '.': conditions('index'),
      ...Object.fromEntries(others.map((name) => [`./${name}`, conditions(name)])),
      './package.json': './package.json',
    },
    // For `moduleResolution: node10`, which does not support exports.
    typesVersions: { '*': Object.fromEntries(others.map((name) => [name, [`./dist/cjs/${name}.d.ts`]])) },
    bin: commands.length === 0 ? undefined : { 'nestjs-redis-lock': `dist/esm/${COMMAND}.js` },
  };
}

function conditions(name) {
  const of = (kind) => ({ types: `./dist/${kind}/${name}.d.ts`, default: `./dist/${kind}/${name}.js` });
  return { import: of('esm'), require: of('cjs') };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = new URL('../../package.json', import.meta.url);
  const before = JSON.parse(readFileSync(target, 'utf8'));
  writeFileSync(target, `${JSON.stringify({ ...before, ...packageFields() }, undefined, 2)}\n`);
}
