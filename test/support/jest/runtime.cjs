// Jest gives each suite a sandbox, and loads all modules into it again: Nest, ioredis, the library, and jest itself.
// That took more time than the tests. Here, the suites of a worker share what Node has loaded once. See test/README.md.
const { existsSync, readFileSync } = require('node:fs');
const { fileURLToPath, pathToFileURL } = require('node:url');
const { TestEnvironment: Sandbox } = require('jest-environment-node');
const { default: SandboxRuntime } = require('jest-runtime');
const { pathFor } = require('./typescript-cache.cjs');

const GLOBALS = Symbol.for('jest-globals-of-this-suite');
let suites = 0;

/** The part of jest-runtime that jest-circus uses. */
class SharedRuntime {
  #environment;

  constructor(environment) {
    this.#environment = environment;
  }

  setGlobalsForRuntime(globals) {
    const { moduleMocker } = this.#environment;
    const jest = { fn: moduleMocker.fn.bind(moduleMocker), spyOn: moduleMocker.spyOn.bind(moduleMocker) };
    globalThis[GLOBALS] = { ...globals, jest };
  }

  /** jest-circus keeps the tests of one suite in its modules, so each suite needs new ones. */
  requireInternalModule(path) {
    delete require.cache[path];
    delete globalThis[Symbol.for('EVENT_HANDLERS')];
    return require(path);
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
    delete globalThis[GLOBALS];
  }
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
