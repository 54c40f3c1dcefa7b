// Makes few files of many: a program that imports the library spends most of the time on opening files.
//   cjs/chunks/core.js   what nestjs-redis-lock/core needs, and what uses no package
//   cjs/chunks/dashboard.js   what one entry needs besides, without NestJS
//   cjs/chunks/nest.js   what uses NestJS, in esm/chunks too
//   cjs/chunks/open-server.js   the server in this process, which is loaded where locks are kept in memory
// What does not use NestJS is there once, for import and for require: the files in esm pass it on. So a class of it is
// declared once in a process, however it is imported: there is no second LockService, which NestJS would not inject.
// What uses NestJS 12, which consists of ES modules, has to be one itself for jest. Functions, classes and lines stay,
// for stack traces; comments are in lib, docstrings in the types.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import { minify } from 'terser';
import { commands, entries } from './entries.mjs';

/** What the compiler's output imports for decorators: the library contains it once. */
const TSLIB = fileURLToPath(import.meta.resolve('tslib/tslib.es6.mjs'));

/** @param modules the folder with tsc's output for lib: ES modules and their types */
export async function bundleLibrary(modules, target) {
  const esm = join(target, 'esm');
  const cjs = join(target, 'cjs');
  declareKind(esm, 'module');
  declareKind(cjs, 'commonjs');
  const code = await open(modules, '.js', [...entries, ...commands]);
  const shared = new Set();
  await write(code, { dir: esm, format: 'es', plugins: [compact(), passedOnFrom('cjs', shared)] });
  await write(code, {
    dir: cjs,
    format: 'cjs',
    exports: 'named',
    esModule: true,
    interop: 'auto',
    dynamicImportInCjs: false,
    plugins: [compact(), namesBeside(), withoutCommands()],
  });
  // Only what programs import needs types.
  const types = await open(modules, '.d.ts', entries, [dts()]);
  // For `await using` with leases, in programs that compile for an older target or have older types of Node.js.
  const banner = '/// <reference lib="esnext.disposable" />';
  await write(types, { dir: esm, banner, plugins: [typesPassedOnFrom('cjs', shared), optionalTypes()] });
  await write(types, { dir: cjs, banner, plugins: [optionalTypes()] });
}

/** Node.js and TypeScript take the format of .js and .d.ts files from the nearest package.json. */
function declareKind(folder, type) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ type })}\n`);
}

async function open(modules, extension, names, plugins) {
  const file = (name) => join(modules, `${name}${extension}`);
  const bundle = await rollup({
    input: Object.fromEntries(names.map((name) => [name, file(name)])),
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
      const uses = (name) => reachable(file(name), getModuleInfo).has(id);
      const own = [...reachable(id, getModuleInfo)];
      if (uses('core')) return 'core';
      // What needs no package is there once, too. For types, rollup-plugin-dts does not allow that.
      if (uses('index') && extension === '.js' && !usesPackages(own, getModuleInfo)) return 'core';
      if (uses('index')) return 'nest';
      if (usesNest(own, getModuleInfo)) return undefined;
      return entries.filter(uses).join('-') || undefined;
    },
    // An entry does not import what its chunks import.
    hoistTransitiveImports: false,
    minifyInternalExports: false,
    generatedCode: { constBindings: true },
    ...options,
  });
}

/** A module and everything that it imports, directly or indirectly. */
function reachable(start, getModuleInfo) {
  const found = new Set([start]);
  for (const id of found) {
    for (const imported of getModuleInfo(id).importedIds) {
      if (!getModuleInfo(imported).isExternal) found.add(imported);
    }
  }
  return found;
}

/** Whether one of these modules imports a package of ES modules: NestJS 12. */
function usesNest(ids, getModuleInfo) {
  return ids.some((id) => getModuleInfo(id).importedIds.some((imported) => imported.startsWith('@nestjs/')));
}

/** Whether one of these modules imports a package that applications without NestJS may not have. */
function usesPackages(ids, getModuleInfo) {
  const isPackage = (id) => getModuleInfo(id).isExternal && !id.startsWith('node:');
  return ids.some((id) => getModuleInfo(id).importedIds.some(isPackage));
}

/** The chunks of a bundle that are written once. */
function sharedChunks(bundle, getModuleInfo) {
  const isShared = ({ name, moduleIds, imports }) =>
    !commands.includes(name) &&
    !usesNest(moduleIds, getModuleInfo) &&
    imports.every((file) => bundle[file] === undefined || isShared(bundle[file]));
  return Object.values(bundle).filter(isShared);
}

/**
 * Instead of code that is written once, passes on that of a folder beside. Adds the names of such files to `shared`.
 */
function passedOnFrom(folder, shared) {
  return {
    name: 'passed-on-from',
    generateBundle(_options, bundle) {
      for (const { fileName, exports, isEntry, isDynamicEntry } of sharedChunks(bundle, this.getModuleInfo)) {
        if (isDynamicEntry) {
          delete bundle[fileName];
          continue;
        }
        const file = besides(folder, fileName);
        bundle[fileName].code = `export { ${exports.join(', ')} } from '${isEntry ? file : namesFile(file)}';\n`;
        shared.add(fileName);
      }
    },
  };
}

/** The types of code that is written once are written once too. */
function typesPassedOnFrom(folder, shared) {
  return {
    name: 'types-passed-on-from',
    generateBundle(_options, bundle) {
      for (const { fileName } of Object.values(bundle)) {
        const code = fileName.replace(/\.d\.ts$/, '.js');
        if (shared.has(code)) bundle[fileName].code = `export * from '${besides(folder, code)}';\n`;
      }
    },
  };
}

/**
 * If ioredis is not installed, its types are `any` instead of an error, because an application may have only
 * node-redis.
 */
function optionalTypes() {
  return {
    name: 'optional-types',
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle)) {
        chunk.code = chunk.code?.replace(/^import .* from 'ioredis';$/gm, '// @ts-ignore: an optional peer\n$&');
      }
    },
  };
}

/** How a file imports the file with the same name in another format's folder. */
function besides(folder, file) {
  return posix.join(posix.relative(dirname(file), '.'), '..', folder, file);
}

/**
 * Beside a chunk that is written once, a file that passes on what it exports. Node.js looks for the names of what it
 * imports from CommonJS in its text, which is short there.
 */
function namesBeside() {
  return {
    name: 'names-beside',
    generateBundle(_options, bundle) {
      for (const { fileName, exports } of sharedChunks(bundle, this.getModuleInfo).filter(
        (chunk) => !chunk.isEntry && !chunk.isDynamicEntry,
      )) {
        const lines = exports.map((name) => `exports.${name} = chunk.${name};\n`);
        const source = `'use strict';\nconst chunk = require('./${posix.basename(fileName)}');\n${lines.join('')}`;
        this.emitFile({ type: 'asset', fileName: namesFile(fileName), source });
      }
    },
  };
}

function namesFile(file) {
  return file.replace(/\.js$/, '-names.js');
}

/** A program is written once. */
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

/**
 * Removes comments and indentation. All names and lines stay, because this code is read when applications are
 * debugged.
 */
function compact() {
  return {
    name: 'compact',
    async renderChunk(code, { isDynamicEntry }) {
      const options = { compress: false, mangle: false, module: false };
      // Nobody debugs the translated scripts.
      const whole = { compress: true, mangle: true, toplevel: true };
      if (isDynamicEntry) return (await minify(code, { ...options, ...whole, format: { ecma: 2020 } })).code;
      return (await minify(code, { ...options, format: { beautify: true, indent_level: 0, ecma: 2020 } })).code;
    },
  };
}
