// Jest gives each suite a sandbox, and loads all modules into it again: Nest, ioredis, the library, and jest itself.
// That took more time than the tests. Here, the suites of a worker share what Node has loaded once. See test/README.md.
const asyncHooks = require('node:async_hooks');
const { existsSync, readFileSync } = require('node:fs');
const { createRequire, wrap } = require('node:module');
const { dirname } = require('node:path');
const { fileURLToPath, pathToFileURL } = require('node:url');
const { Script } = require('node:vm');
const { TestEnvironment: Sandbox } = require('jest-environment-node');
const { default: SandboxRuntime } = require('jest-runtime');
const { pathFor } = require('./typescript-cache.cjs');

const GLOBALS = Symbol.for('jest-globals-of-this-suite');
let suites = 0;

/** The part of jest-runtime that jest-circus uses. */
class SharedRuntime {
  #environment;
  /** The AsyncLocalStorages of this suite's jest-circus. Each that is on makes every promise of the worker slower. */
  #contexts = [];

  constructor(environment) {
    this.#environment = environment;
  }

  setGlobalsForRuntime(globals) {
    const { moduleMocker } = this.#environment;
    const jest = { fn: moduleMocker.fn.bind(moduleMocker), spyOn: moduleMocker.spyOn.bind(moduleMocker) };
    globalThis[GLOBALS] = { ...globals, jest };
  }

  /** jest-circus keeps the tests of one suite in its modules, so each suite runs their code again. */
  requireInternalModule(path) {
    delete globalThis[Symbol.for('EVENT_HANDLERS')];
    const contexts = this.#contexts;
    class AsyncLocalStorage extends asyncHooks.AsyncLocalStorage {
      constructor(...options) {
        super(...options);
        contexts.push(this);
      }
    }
    const load = createRequire(path);
    const loadForSuite = (name) => (name === 'node:async_hooks' ? { ...asyncHooks, AsyncLocalStorage } : load(name));
    const module = { exports: {} };
    const own = Object.assign(loadForSuite, load);
    compiled(path).call(module.exports, module.exports, own, module, path, dirname(path));
    return module.exports;
  }

  requireModule(path) {
    return require(path);
  }

  unstable_shouldLoadAsEsm() {
    return true;
  }

  async unstable_importModule(path) {
    suites += 1;
    await import(`${pathToFileURL(path)}?suite=${suites}`);
  }

  /** The paths of the source maps, by the addresses of the files. */
  getSourceMaps() {
    return new SourceMaps();
  }

  getAllCoverageInfoCopy() {}

  enterTestCode() {}

  leaveTestCode() {}

  teardown() {
    for (const context of this.#contexts) context.disable();
    delete globalThis[GLOBALS];
  }
}

const functions = new Map();

/** The function that CommonJS makes of a module, compiled once for all suites. */
function compiled(path) {
  if (!functions.has(path)) {
    const script = new Script(wrap(readFileSync(path, 'utf8')), { filename: path });
    functions.set(path, script.runInThisContext());
  }
  return functions.get(path);
}

class SourceMaps extends Map {
  get(address) {
    if (!/\.ts(\?|$)/.test(address)) return undefined;
    const path = address.startsWith('file:') ? fileURLToPath(address) : address.split('?')[0];
    // Called while an error is shown. The file may have been deleted by then.
    return existsSync(path) ? `${pathFor(path, readFileSync(path, 'utf8'))}.map` : undefined;
  }
}

/** Jest calls this function with `new`. */
module.exports = function Runtime(config, environment, ...more) {
  if (environment instanceof Sandbox) return new SandboxRuntime(config, environment, ...more);
  return new SharedRuntime(environment);
};
