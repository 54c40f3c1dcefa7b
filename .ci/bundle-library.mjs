// Makes few files of many: a program that imports the library spends most of the time on opening files.
//   cjs/chunks/core.js   what nestjs-redis-lock/core needs, without NestJS: once, for import and for require
//   cjs/ esm/            the entries; chunks/nest.js has what several of them need besides
// So a class of the core is declared once in a process, however it is imported: there is no second LockService, which NestJS would not
// inject. The code keeps its names and its lines, for stack traces and for those who read it; comments are in lib, docstrings in the types.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import { minify } from 'terser';
import { commands, entries } from './entries.mjs';

/** What the compiler's output imports for decorators: the library has it in itself, once. */
const TSLIB = fileURLToPath(import.meta.resolve('tslib/tslib.es6.mjs'));

/** @param modules the folder of what tsc made of lib: ES modules and their types */
export async function bundleLibrary(modules, target) {
  const esm = join(target, 'esm');
  const cjs = join(target, 'cjs');
  declareKind(esm, 'module');
  declareKind(cjs, 'commonjs');
  const code = await open(modules, '.js');
  await write(code, { dir: esm, format: 'es', plugins: [compact(), coreOf('cjs')] });
  await write(code, {
    dir: cjs,
    format: 'cjs',
    exports: 'named',
    esModule: true,
    interop: 'auto',
    plugins: [compact(), withoutCommands()],
  });
  const types = await open(modules, '.d.ts', [dts()]);
  await write(types, { dir: esm, plugins: [coreOf('cjs'), withoutCommands()] });
  await write(types, { dir: cjs, plugins: [withoutCommands()] });
}

/** The nearest package.json tells Node, and TypeScript, of which kind the .js and .d.ts files below it are. */
function declareKind(folder, type) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ type })}\n`);
}

async function open(modules, extension, plugins) {
  const file = (name) => join(modules, `${name}${extension}`);
  const bundle = await rollup({
    input: Object.fromEntries([...entries, ...commands].map((name) => [name, file(name)])),
    plugins: [{ name: 'tslib', resolveId: (specifier) => (specifier === 'tslib' ? TSLIB : null) }, plugins],
    external: (specifier) => !/^[./]|^tslib$/.test(specifier),
    onwarn(warning) {
      throw new Error(`rollup: ${warning.message}`);
    },
  });
  return { bundle, file, extension };
}

function write({ bundle, file, extension }, options) {
  return bundle.write({
    entryFileNames: `[name]${extension}`,
    chunkFileNames: `chunks/[name]${extension}`,
    manualChunks: (id, { getModuleInfo }) => {
      if (reachable(file('core'), getModuleInfo).has(id)) return 'core';
      return reachable(file('index'), getModuleInfo).has(id) ? 'nest' : undefined;
    },
    // An entry does not import what its chunks import.
    hoistTransitiveImports: false,
    minifyInternalExports: false,
    generatedCode: { constBindings: true },
    ...options,
  });
}

/** A module and all that it imports, directly or not. */
function reachable(start, getModuleInfo) {
  const found = new Set([start]);
  for (const id of found) {
    for (const imported of getModuleInfo(id).importedIds) {
      if (!getModuleInfo(imported).isExternal) found.add(imported);
    }
  }
  return found;
}

/** Instead of another core, takes that of a folder beside. */
function coreOf(folder) {
  return {
    name: 'core-of',
    generateBundle(_options, bundle) {
      // Of an entry that only exports what its chunk has, there are both.
      const core = Object.values(bundle).filter(({ name }) => name === 'core');
      const { fileName, exports } = core.find(({ isEntry }) => !isEntry) ?? core[0];
      const names = fileName.endsWith('.d.ts') ? '*' : `{ ${exports.join(', ')} }`;
      const path = posix
        .join(posix.relative(dirname(fileName), '.'), '..', folder, fileName)
        .replace(/\.d\.ts$/, '.js');
      bundle[fileName].code = `export ${names} from '${path}';\n`;
    },
  };
}

/** Types are not written for programs, and programs once. */
function withoutCommands() {
  return {
    name: 'without-commands',
    generateBundle(_options, bundle) {
      for (const [file, { isEntry, name }] of Object.entries(bundle)) {
        if (isEntry && commands.includes(name)) delete bundle[file];
      }
    },
  };
}

/** Takes out comments, and most of the indentation. */
function compact() {
  return {
    name: 'compact',
    async renderChunk(code, _chunk, { format }) {
      const options = { compress: false, mangle: false, module: format === 'es' };
      return (await minify(code, { ...options, format: { beautify: true, indent_level: 1 } })).code;
    },
  };
}
