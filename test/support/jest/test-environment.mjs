import { register } from 'node:module';
import { TestEnvironment as Sandbox } from 'jest-environment-node';
import { ModuleMocker } from 'jest-mock';

// A worker would outlive a jest that was killed, and so would the servers that its tests have started.
const end = () => process.exit(1);
process.once('disconnect', end);

// At the end, jest stops listening to its worker, and warns if the worker still runs half a second later. On a busy
// machine, Node.js takes longer than that to take down a heap with a compiler and hundreds of modules. Nothing is left
// to be saved, so the worker ends at once. What a suite started is ended by its guard (support/process-guard.ts).
process.on('removeListener', (event) => {
  if (event === 'message' && process.listenerCount('message') === 0)
    setImmediate(() => process.kill(process.pid, 'SIGKILL'));
});

register('./typescript-hooks.mjs', import.meta.url);

// The engine checks its own state: see lib/engine/invariants.ts.
globalThis[Symbol.for('nestjs-redis-lock.checks')] = true;

/**
 * Jest calls it with `new`. A suite that begins with `@sandbox` replaces things that its worker needs as well, such as
 * timers.
 */
export default function Environment(config, context) {
  return 'sandbox' in context.docblockPragmas ? new Sandbox(config, context) : new SharedEnvironment();
}

/** The worker's own globals, which are restored after each suite. */
class SharedEnvironment {
  global = globalThis;
  moduleMocker = new ModuleMocker(globalThis);
  #before;

  constructor() {
    const { console } = globalThis;
    const { exit, exitCode, env } = process;
    const listeners = new Map(process.eventNames().map((name) => [name, process.rawListeners(name)]));
    this.#before = { console, exit, exitCode, env: { ...env }, cwd: process.cwd(), listeners };
  }

  async setup() {}

  async teardown() {
    const { console, exit, exitCode, env, cwd, listeners } = this.#before;
    this.moduleMocker.restoreAllMocks();
    globalThis.console = console;
    Object.assign(process, { exit, exitCode });
    if (process.cwd() !== cwd) process.chdir(cwd);
    for (const name of Object.keys(process.env)) {
      if (!(name in env)) delete process.env[name];
    }
    Object.assign(process.env, env);
    // Of a suite's listeners, only those that end its child processes are kept.
    for (const name of process.eventNames().filter((name) => name !== 'exit')) {
      const old = new Set(listeners.get(name));
      for (const listener of process.rawListeners(name)) {
        if (!old.has(listener)) process.removeListener(name, listener);
      }
    }
    for (const key of OF_THE_LIBRARY) delete globalThis[key];
  }

  getVmContext() {
    return null;
  }
}

/** What the library stores once per process, for all of its copies. */
const OF_THE_LIBRARY = [Symbol.for('nestjs-redis-lock.memory-store.7')];
